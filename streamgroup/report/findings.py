"""The sentences of a report: what was compared, the best and worst groupings, caveats."""

from collections.abc import Sequence

import polars as pl

from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.study.advise.grouping_sentences import costs, count, merits, take
from streamgroup.study.advise.recommendation import Row, Targets, choose

__all__ = ["caveats", "compared", "verdicts"]

_KEYS_PER_WORKER = 10
_KEY_GROUPING = "kg"
# What the rule of `advise` takes into account.
_NEEDED = (
    "latency_p99_ms", "latency_mean_ms", "latency_max_ms", "peak_to_mean", "replicas", "replication_factor",
    "state_entries_max",
)  # fmt: skip
_ORACLES = ("full_knowledge", "oracle")


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
    if data.traces and (runs["arrivals"] != "trace").any():
        which = "" if (runs["arrivals"] != "trace").all() else " of some runs"
        lines.append(
            f"Times: --arrivals replaced those of the trace{which}. Charts of the trace are over its own times, charts "
            "over time over those of the runs."
        )
    lines += [f"{letter}: {text}." for letter, text in data.letters.items()]
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
    """Recommend a grouping for each charted condition and number of workers, by the rule and in the words of `advise`.

    Figures are means over seeds, with their least and largest beside them; the maximum latency is that of any seed.
    Groupings that use information no source has are not recommended.
    """
    lines: list[str] = []
    runs = data.charted.sort("condition", "workers", "grouping")
    for part in runs.partition_by("condition", "workers", maintain_order=True):
        workers = int(part["workers"][0])
        found = part.filter(~pl.col("grouping").cast(pl.String).str.split(":").list.first().is_in(_ORACLES))
        groups = found.partition_by("grouping", maintain_order=True)
        rows = [row for place, group in enumerate(groups) if (row := _row(group, place)) is not None]
        if rows:
            lines.append(f"{part['condition'][0]}: {_verdict(rows, workers)}")
    return lines


def _verdict(rows: Sequence[Row], workers: int) -> str:
    kg = next((row for row in rows if row.grouping == _KEY_GROUPING), None)
    if len(rows) == 1:
        return f"{merits(rows[0], None, 'seed')} {costs(rows[0], None)}"
    choice = choose(rows, Targets())
    best = choice.recommended
    if choice.rule == "throughput":
        head = f"No grouping keeps up with {count(workers)}. The best of them is {best.grouping}"
    else:
        head = take(best.grouping, workers)
    said = merits(best, kg, "seed").removeprefix(f"{best.grouping}: ")
    if kg is None or best.grouping == kg.grouping:
        return f"{head}: {said} {costs(best, None)}"
    other = merits(kg, None, "seed").removeprefix(f"{kg.grouping}: ")
    return f"{head}: {said} {kg.grouping}: {other} {costs(best, kg)}"


def _row(runs: pl.DataFrame, order: int) -> Row | None:
    """Return the figures of one grouping over its seeds, `order` being its place among the others.

    None where a metric that the rule needs is missing.
    """
    if any(name not in runs.columns or runs[name].null_count() for name in _NEEDED):
        return None
    peaks = runs["peak_to_mean" if runs["work_peak_to_mean"].null_count() else "work_peak_to_mean"]
    loads = None if runs["offered_load"].null_count() else runs["offered_load"]
    p99, peak = _spread(runs["latency_p99_ms"]), _spread(runs["peak_to_mean"])
    most = (None, None, None) if loads is None else _spread(loads * peaks)
    return Row(
        grouping=str(runs["grouping"][0]),
        order=order,
        latency_p99_ms=p99[0],
        latency_p99_low_ms=p99[1],
        latency_p99_high_ms=p99[2],
        latency_mean_ms=_spread(runs["latency_mean_ms"])[0],
        latency_max_ms=_spread(runs["latency_max_ms"])[2],
        peak_to_mean=peak[0],
        peak_to_mean_low=peak[1],
        peak_to_mean_high=peak[2],
        worker_load_mean=None if loads is None else _spread(loads)[0],
        worker_load_max=most[0],
        worker_load_max_low=most[1],
        worker_load_max_high=most[2],
        replicas=round(_spread(runs["replicas"])[0]),
        replication_factor=_spread(runs["replication_factor"])[0],
        state_entries_max=round(_spread(runs["state_entries_max"])[2]),
        # At most 1, as an aggregator that has too much to do works on after the last arrival.
        aggregator_load_max=_largest(runs, "aggregator_utilization_max"),
        result_delay_mean_ms=_largest(runs, "result_delay_ms_mean"),
        result_delay_p99_ms=_largest(runs, "result_delay_ms_p99"),
    )


def _largest(runs: pl.DataFrame, metric: str) -> float | None:
    """Return the largest value of a metric that not all runs have, None where one has not."""
    return None if metric not in runs.columns or runs[metric].null_count() else _spread(runs[metric])[2]


def _spread(values: pl.Series) -> tuple[float, float, float]:
    """Return the mean, the least and the largest of values, none of them null."""
    known = [float(value) for value in values]
    return sum(known) / len(known), min(known), max(known)


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
