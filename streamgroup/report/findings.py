"""The sentences of a report: what was compared, the best and worst groupings, caveats."""

from collections.abc import Iterator

import polars as pl

from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData

__all__ = ["caveats", "compared", "verdicts"]

_KEYS_PER_WORKER = 10


def compared(data: ReportData) -> list[str]:
    """Describe what was compared: traces, groupings, workers, seeds, sources and arrivals."""
    runs = data.runs
    lines = [
        f"{_count(runs.height, 'run')} of {_count(runs['grouping'].n_unique(), 'grouping')}: "
        f"{_listed(runs['grouping'])}.",
        f"{_plural(runs['trace'], 'Trace')}: {_listed(runs['trace'])}. "
        f"Workers: {_listed(runs['workers'])}. Sources: {_listed(runs['sources'])}.",
        f"Arrivals: {_listed(runs['arrivals'])}. {_plural(runs['seed'], 'Seed')}: {_listed(runs['seed'])}.",
    ]
    left_out = runs["grouping"].n_unique() - len(data.groupings)
    if left_out:
        lines.append(
            f"Charts show {len(data.groupings)} groupings, the best of each family by p99 latency; "
            f"{left_out} more are in the tables."
        )
    left_out = runs["condition"].n_unique() - len(data.conditions)
    if left_out:
        lines.append(
            f"Charts show {len(data.conditions)} conditions; {left_out} more are in the tables "
            "(--where chooses others)."
        )
    return lines


def verdicts(data: ReportData) -> list[str]:
    """Name the best and the worst grouping of each charted condition, never a mean without its maximum."""
    lines = []
    for part in data.focus.partition_by("condition", maintain_order=True):
        found = part.group_by("grouping").agg(
            pl.col("latency_p99_ms").mean().alias("p99"),
            pl.col("latency_max_ms").max().alias("maximum"),
            pl.col("replication_factor").mean().alias("replication"),
            pl.col("replication_factor").max().alias("replication_max"),
            pl.col("peak_to_mean").mean().alias("peak"),
            pl.col("peak_to_mean").max().alias("peak_max"),
        )
        place = f"{part['condition'][0]}, {_count(part['workers'][0], 'worker')}"
        sentences = [
            *_best_and_worst(found, "p99", "p99 latency", "{p99} ms (maximum {maximum} ms)"),
            *_best_and_worst(
                found, "peak", "load of the most loaded worker", "{peak} times the mean (at most {peak_max})"
            ),
            *_best_and_worst(
                found, "replication", "replication", "{replication} workers a key (at most {replication_max})"
            ),
        ]
        if sentences:
            lines.append(f"{place}: {'; '.join(sentences)}.")
    return lines


def _best_and_worst(found: pl.DataFrame, column: str, what: str, template: str) -> Iterator[str]:
    rows = found.filter(pl.col(column).is_not_null()).sort(column, "grouping").to_dicts()
    names = [row.pop("grouping") for row in rows]
    figures = [template.format(**{name: number(value) for name, value in row.items()}) for row in rows]
    if len(rows) == 1:
        yield f"{what} {figures[0]}"
    elif rows:
        yield f"{what} lowest with {names[0]}: {figures[0]}, highest with {names[-1]}: {figures[-1]}"


def caveats(data: ReportData) -> list[str]:
    """Return caveats on the figures, one line each."""
    runs, total = data.runs, data.runs.height
    lines = list(data.notes)
    full = runs.filter(pl.col("offered_load") > 1)
    if full.height:
        lines.append(
            f"{full.height} of {total} runs were offered more than their workers can serve, up to "
            f"{number(100 * _most(full, 'offered_load'))} %: their queues only grow, so latencies say little."
        )
    idle = runs.filter(pl.col("offered_load") < 0.01)
    if idle.height:
        lines.append(
            f"{idle.height} of {total} runs were offered less than 1 % of what their workers can serve: "
            "hardly a tuple waits, so latencies say little."
        )
    for column, what in (("dropped", "dropped, as a queue was full"), ("lost", "lost in crashes")):
        some = runs.filter(pl.col(column) > 0)
        if some.height:
            lines.append(
                f"{some.height} of {total} runs had tuples {what}, up to {number(_most(some, column))} in one run."
            )
    for trace in data.traces:
        most = _most(runs.filter(pl.col("trace") == trace.name), "workers")
        if trace.keys < _KEYS_PER_WORKER * most:
            lines.append(
                f"{trace.name} has {_count(trace.keys, 'key')} for up to {_count(int(most), 'worker')}: with fewer "
                f"than {_KEYS_PER_WORKER} a worker, some may get nothing whatever the grouping of keys."
            )
    return lines


def _most(frame: pl.DataFrame, column: str) -> float:
    return max((float(value) for value in frame[column].drop_nulls()), default=0.0)


def _count(many: int, what: str) -> str:
    return f"{many:,} {what}" if many == 1 else f"{many:,} {what}s"


def _plural(values: pl.Series, what: str) -> str:
    return what if values.n_unique() == 1 else f"{what}s"


def _listed(values: pl.Series) -> str:
    found = values.unique().sort().to_list()
    sentences = [str(value) for value in found[:24]]
    return ", ".join(sentences) + (f" and {len(found) - 24} more" if len(found) > 24 else "")
