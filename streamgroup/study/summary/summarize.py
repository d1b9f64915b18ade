"""Many runs in one table: filtered, compared with a baseline, averaged, checked against conditions."""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from streamgroup.base.errors import UsageError
from streamgroup.base.output_formats import for_people
from streamgroup.base.spelling_hint import suggest
from streamgroup.metrics.metric_names import METRICS, TEXTS
from streamgroup.study.summary.averages import averaged
from streamgroup.study.summary.column_conditions import Condition, grouping_is, matches, parse_conditions
from streamgroup.study.summary.load_runs import CODE_COLUMNS, STATUS_COLUMNS, load_runs, run_directories
from streamgroup.study.summary.matching_runs import with_partner

__all__ = ["check_gate", "load_runs", "run_directories", "summarize"]

_NOT_OPTIONS = {"schema_version", *STATUS_COLUMNS, *METRICS}


def summarize(
    frame: pl.DataFrame,
    *,
    by: Sequence[str] = (),
    metrics: Sequence[str] = (),
    where: str | None = None,
    relative_to: str | None = None,
) -> pl.DataFrame:
    """Choose, compare and average runs.

    Without `by`: one row a run, its options (and of sweeps `status` and `error`) and then the metrics (all, or those in
    `metrics`). With `by`: one row for each combination of those columns, in order, with the number of `runs` and each
    metric's mean, least, largest and interval over the runs that have it (see `averaged`). Runs of one grouping that
    were made by different code are never averaged: `program` or `code` is one more such column then. `where` keeps the
    runs that meet all its conditions. `relative_to` names a grouping: each metric gets a column
    `<metric>_vs_<grouping>`, its ratio to the run of that grouping with all other options equal (the seeds only if its
    results depend on them), null where there is none or its metric is 0; baselines need not meet `where`. With `by`
    these are averaged, too: the mean of the ratios of pairs, not a ratio of means. UsageError for names that do not
    exist.
    """
    known = [name for name in METRICS if name in frame.columns]
    chosen = list(dict.fromkeys(metrics)) or known
    _must_be_among(chosen, known, "--metrics: there is no metric")
    options = [name for name in frame.columns if name not in _NOT_OPTIONS]
    _must_be_among(by, options, "--by: there is no option column")
    if relative_to is not None:
        frame = _with_ratios(frame, [name for name in chosen if name not in TEXTS], options, relative_to)
        chosen = [name for metric in chosen for name in (metric, f"{metric}_vs_{relative_to}") if name in frame.columns]
    if where is not None:
        conditions = parse_conditions(where, frame.schema, "--where")
        frame = frame.filter(*(matches(condition) for condition in conditions))
    if by:
        return averaged(frame, [*by, *_mixed(frame, by)], chosen)
    return frame.select(*options, *(name for name in STATUS_COLUMNS if name in frame.columns), *chosen)


def _mixed(frame: pl.DataFrame, by: Sequence[str]) -> list[str]:
    """Name the columns without which a group of `by` would hold runs of one grouping made by different code."""
    found: list[str] = []
    for name in ("program", "code"):
        if name in frame.columns and name not in by:
            groups = frame.select((pl.col(name).n_unique().over(*dict.fromkeys([*by, "grouping"])) > 1).any())
            found += [name] if groups.item() else []
    return found


def _must_be_among(names: Iterable[str], known: Sequence[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"{what} {name!r}", suggest(name, known))


def _with_ratios(frame: pl.DataFrame, metrics: Sequence[str], options: Sequence[str], relative_to: str) -> pl.DataFrame:
    baseline = frame.filter(grouping_is(relative_to))
    variants = baseline["grouping"].unique().sort().to_list()
    if not variants:
        raise UsageError(
            f"--relative-to: there is no run of {relative_to!r}", suggest(relative_to, frame["grouping"].unique())
        )
    if len(variants) > 1:
        raise UsageError(f"--relative-to: {relative_to!r} is several: {', '.join(variants)}", "name one in full")
    # Of another grouping the code differs anyhow; a run is compared with one of the same program.
    names = [name for name in options if name not in ("grouping", "run", "code")]
    joined = with_partner(frame, baseline, names, {name: f"_base_{name}" for name in metrics})
    ratios = [
        pl.when(pl.col(f"_base_{name}") != 0)
        .then(pl.col(name).cast(pl.Float64) / pl.col(f"_base_{name}"))
        .alias(f"{name}_vs_{relative_to}")
        for name in metrics
    ]
    return joined.with_columns(ratios).drop(*(f"_base_{name}" for name in metrics))


def check_gate(frame: pl.DataFrame, text: str) -> list[str]:
    """Return a line for each row where a `--fail-on` condition is true: the list is empty when the gate holds.

    Of several conditions with commas between them, each is a gate of its own. A metric that is null cannot be
    judged, so it does not hold the gate either, nor does a cell that failed, a group with one, or a table without rows.
    UsageError for a bad condition.
    """
    conditions = parse_conditions(text, frame.schema, "--fail-on")
    if frame.is_empty():
        return [f"--fail-on {text}: there is no run to judge"]
    found = [f"{_place(row)}: {_failure(row)}, so {text} cannot be judged" for row in _with_failures(frame)]
    for condition in conditions:
        judged = frame.filter(~_has_failed(frame)).with_columns(matches(condition).alias("_true"))
        for row in judged.filter(pl.col("_true").fill_null(True)).iter_rows(named=True):
            where = _place(row, condition.column)
            if row["_true"] is None:
                found.append(f"{where}: {condition.column} is null, so {condition} cannot be judged")
            else:
                found.append(f"{where}: {condition.column} is {_against(row[condition.column], condition)}")
    return found


def _against(value: Any, condition: Condition) -> str:
    """Write a value that breaks a condition, and what was allowed."""
    limit = "null" if condition.value is None else for_people(condition.value)
    shown = for_people(value)
    if shown == limit and value != condition.value:
        shown, limit = repr(value), repr(condition.value)
    if condition.sign in ("<", "<="):
        return f"{shown}, at least {limit} is asked for"
    return f"{shown}, limit {limit}" if ">" in condition.sign else f"{shown}, and {condition} is ruled out"


def _has_failed(frame: pl.DataFrame) -> pl.Expr:
    if "failed" in frame.columns:
        return pl.col("failed") > 0
    return pl.col("status") != "ok" if "status" in frame.columns else pl.lit(False)


def _with_failures(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return frame.filter(_has_failed(frame)).to_dicts()


def _failure(row: dict[str, Any]) -> str:
    count = row.get("failed", 1)
    return f"failed with {row['error']!r}" if count == 1 else f"{count} runs failed, one with {row['error']!r}"


def _place(row: dict[str, Any], column: str | None = None) -> str:
    """Name a row by what identifies it: its options but the judged column."""
    names = ("trace", "grouping", "workers", "seed", *CODE_COLUMNS)
    named = [f"{name} {row[name]}" for name in names if name != column and row.get(name) is not None]
    return ", ".join(named) or "the runs"
