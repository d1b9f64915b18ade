"""Many runs in one table: read from their directories, chosen, compared with a baseline, averaged, held to a gate."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from streamgroup.base.discover import suggest
from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.schema import SCHEMA_VERSION
from streamgroup.metrics.names import METRICS
from streamgroup.study.columns import DEFAULTS, KINDS, OPTION_COLUMNS
from streamgroup.study.conditions import grouping_is, matches, parse_conditions

__all__ = ["check_gate", "load_runs", "run_directories", "summarize"]

_MARKER = "run.json"
# Where runs lie within a directory that holds several: beside one another, or as the cells of a sweep.
_PLACES = ("*", "cells/*")
_POLARS: dict[type, pl.DataType] = {bool: pl.Boolean(), int: pl.Int64(), str: pl.String()}
_NOT_OPTIONS = {"schema_version", *METRICS}


def load_runs(paths: Iterable[str | Path]) -> pl.DataFrame:
    """Read the summaries of run directories, or of all runs in directories that hold several: one row a run.

    A run that is named twice counts once. A run that is older than an option has that option's default. Two
    traces of one name are told apart by the start of their fingerprints.
    UsageError for a path that is no run and holds none, DataError for a run that is damaged or of another version.
    """
    loaded = [_load(run) for run in run_directories(paths)]
    frame = pl.concat([one for one, _ in loaded], how="diagonal_relaxed")
    frame = frame.with_columns(pl.Series("_fingerprint", [mark for _, mark in loaded], dtype=pl.String))
    several = pl.col("_fingerprint").n_unique().over("trace") > 1
    told_apart = pl.format("{}@{}", "trace", pl.col("_fingerprint").str.slice(0, 8))
    return frame.with_columns(pl.when(several).then(told_apart).otherwise("trace").alias("trace")).drop("_fingerprint")


def run_directories(paths: Iterable[str | Path]) -> list[Path]:
    """Find the runs that paths name or hold, each once, in the order of `load_runs`; UsageError as there."""
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        for run in _runs_in(path):
            found.setdefault(run.resolve(), run)
    if not found:
        raise UsageError("no run to read", "name run directories, as replay -o makes them")
    return list(found.values())


def _runs_in(path: Path) -> list[Path]:
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        raise UsageError(f"run {path} {what}", "name a run directory, as replay -o makes them")
    if (path / _MARKER).is_file():
        return [path]
    # Hidden directories are runs that are being written.
    runs = sorted(
        marker.parent
        for place in _PLACES
        for marker in path.glob(f"{place}/{_MARKER}")
        if not marker.parent.name.startswith(".")
    )
    if not runs:
        raise UsageError(f"{path} is no run and holds none: there is no {_MARKER}", "name a run directory")
    return runs


def _load(run: Path) -> tuple[pl.DataFrame, str]:
    hint = "make the run again"
    try:
        manifest = json.loads((run / _MARKER).read_bytes())
        version, fingerprint = manifest["schema_version"], str(manifest["trace"]["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{run / _MARKER} is not the record of a run", hint) from None
    if version != SCHEMA_VERSION:
        raise DataError(f"{run}: tables of version {version}, this program reads {SCHEMA_VERSION}", hint)
    path = run / "summary.parquet"
    try:
        frame = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise DataError(f"{path} {reason}", hint) from None
    if frame.height != 1 or not {"trace", "grouping", "workers"} <= set(frame.columns):
        raise DataError(f"{path} is not the summary of one run", hint)
    return _with_all_options(frame), fingerprint


def _with_all_options(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the options that there were not when the run was made, and put all in the order of today's tables."""
    missing = {name: default for name, default in DEFAULTS.items() if name not in frame.columns}
    frame = frame.with_columns(
        pl.lit(default, dtype=_POLARS[KINDS[name]]).alias(name) for name, default in missing.items()
    )
    first = [name for name in OPTION_COLUMNS if name in frame.columns]
    return frame.select(*first, pl.exclude(first))


def summarize(
    frame: pl.DataFrame,
    *,
    by: Sequence[str] = (),
    metrics: Sequence[str] = (),
    where: str | None = None,
    relative_to: str | None = None,
) -> pl.DataFrame:
    """Choose, compare and average runs.

    Without `by`: one row a run, its options and then the metrics (all, or those in `metrics`). With `by`: one row
    for each combination of those columns, in order, the number of `runs` and the mean of each metric over the runs
    that have it. `where` keeps the runs that meet all its conditions. `relative_to` names a grouping: each metric
    gets a column `<metric>_vs_<grouping>`, its ratio to the run of that grouping with all other options equal, null
    where there is none or its metric is 0; baselines need not meet `where`. UsageError for names that do not exist.
    """
    known = [name for name in METRICS if name in frame.columns]
    chosen = list(dict.fromkeys(metrics)) or known
    _must_be_among(chosen, known, "--metrics: there is no metric")
    options = [name for name in frame.columns if name not in _NOT_OPTIONS]
    _must_be_among(by, options, "--by: there is no option column")
    if relative_to is not None:
        frame = _with_ratios(frame, chosen, options, relative_to)
        chosen = [name for metric in chosen for name in (metric, f"{metric}_vs_{relative_to}") if name in frame.columns]
    if where is not None:
        conditions = parse_conditions(where, frame.schema, "--where")
        frame = frame.filter(*(matches(condition) for condition in conditions))
    if not by:
        return frame.select(*options, *chosen)
    grouped = frame.group_by(list(dict.fromkeys(by)), maintain_order=True)
    return grouped.agg(pl.len().cast(pl.Int64).alias("runs"), *(pl.col(name).mean() for name in chosen)).sort(
        list(dict.fromkeys(by)), maintain_order=True
    )


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
    # Null options are equal to null options, which a join on the columns themselves would not say.
    same = pl.struct([name for name in options if name != "grouping"]).struct.json_encode().alias("_same")
    bases = baseline.select(same, *(pl.col(name).alias(f"_base_{name}") for name in metrics))
    joined = frame.with_columns(same).join(
        bases.unique("_same", keep="first", maintain_order=True), on="_same", how="left", maintain_order="left"
    )
    ratios = [
        pl.when(pl.col(f"_base_{name}") != 0)
        .then(pl.col(name).cast(pl.Float64) / pl.col(f"_base_{name}"))
        .alias(f"{name}_vs_{relative_to}")
        for name in metrics
    ]
    return joined.with_columns(ratios).drop("_same", *(f"_base_{name}" for name in metrics))


def check_gate(frame: pl.DataFrame, text: str) -> list[str]:
    """Say in one line each where a `--fail-on` condition is true: the list is empty when the gate holds.

    Of several conditions with commas between them, each is a gate of its own. A metric that is null cannot be
    judged, so it does not hold the gate either, nor does a table without rows. UsageError for a bad condition.
    """
    conditions = parse_conditions(text, frame.schema, "--fail-on")
    if frame.is_empty():
        return [f"--fail-on {text}: there is no run to judge"]
    found = []
    for condition in conditions:
        judged = frame.with_columns(matches(condition).alias("_true"))
        for row in judged.filter(pl.col("_true").fill_null(True)).iter_rows(named=True):
            where = _place(row, condition.column)
            if row["_true"] is None:
                found.append(f"{where}: {condition.column} is null, so {condition} cannot be judged")
            else:
                found.append(f"{where}: {condition.column} is {row[condition.column]}, and {condition} fails")
    return found


def _place(row: dict[str, Any], column: str) -> str:
    """Name a row by what tells it from others: its options but the judged column."""
    named = [
        f"{name} {row[name]}" for name in ("trace", "grouping", "workers", "seed") if name in row and name != column
    ]
    return ", ".join(named) or "the runs"
