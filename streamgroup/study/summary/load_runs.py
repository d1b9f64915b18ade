"""Reads runs and the cells of sweeps from their directories into one table."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.metrics.metric_names import METRICS
from streamgroup.study.generator_parameter_columns import generator_columns
from streamgroup.study.read_run import MARKER, read_record
from streamgroup.study.read_table import column_fault, read_table
from streamgroup.study.run_option_columns import DEFAULTS, KINDS, OPTION_COLUMNS

__all__ = ["CODE_COLUMNS", "STATUS_COLUMNS", "load_pair", "load_runs", "run_directories"]

# Columns of the cells of a sweep, besides those of a run.
STATUS_COLUMNS = ("status", "error")
# Columns that distinguish runs whose options are equal, there where needed: the directory of the run, version and
# digest of the program, digest of the grouping's code and of the files that options name.
CODE_COLUMNS = ("run", "program", "code")

_HOW = "name directories that replay -o or sweep -o made"
_SWEEP = "sweep.json"
_SUMMARY = "summary.parquet"
# Where runs lie within a directory that holds several: beside one another, or as the cells of a sweep.
_PLACES = ("*", "cells/*")
_POLARS: dict[type, pl.DataType] = {bool: pl.Boolean(), int: pl.Int64(), str: pl.String()}
_METRIC_KINDS: dict[type, pl.DataType] = {int: pl.Int64(), float: pl.Float64(), str: pl.String()}
_MARKS = ("_fingerprint", "_program", "_own", "_run")
_DIGITS = 8
# What an option was before there was such an option, where that is not its default of today.
_BEFORE = {"hot_threshold": "own"}


def load_runs(paths: Iterable[str | Path], *, failed: bool = False) -> pl.DataFrame:
    """Read the summaries of run directories, or of all runs in directories that hold several: one row a run.

    A run that is named twice counts once. A run that is older than an option has what applied then: the default of
    the option, but `own` for `hot_threshold`. Two traces of one name are distinguished by the start of their
    fingerprints. With `failed` the cells of sweeps that failed come behind the runs, as rows without metrics; if there
    is a sweep, all rows have `status` (ok or failed) and `error`.
    Runs with equal options have their directory in `run`. Where runs of one grouping were made by different versions
    or code, or with different content of a file of the same name, `program` and `code` say which.
    UsageError for a path that is no run and holds none, DataError for what is damaged or of another version.
    """
    places = list(dict.fromkeys(map(Path, paths)))
    lost = {place: _failed_cells(place) for place in places if failed and (place / _SWEEP).is_file()}
    runs = run_directories(places)
    if not runs and not lost:
        raise UsageError("no run to read: every cell failed", "look at the errors with summarize")
    frame = _read(runs) if runs else pl.DataFrame(schema=_schema())
    if not lost:
        return frame
    frame = frame.with_columns(status=pl.lit("ok"), error=pl.lit(None, pl.String))
    failures = pl.concat(lost.values(), how="diagonal_relaxed").unique(maintain_order=True, keep="first")
    return pl.concat([frame, failures], how="diagonal_relaxed")


def load_pair(old: Iterable[str | Path], new: Iterable[str | Path]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the runs of two sides, whose traces have one name in both if they are the same; UsageError as `load_runs`.

    A run may be on both sides.
    """
    sides = [run_directories(old), run_directories(new)]
    for side in sides:
        if not side:
            raise UsageError("no run to read: every cell failed", "look at the errors with summarize")
    frame = _read([*sides[0], *sides[1]])
    count = len(sides[0])
    return frame[:count], frame[count:]


def run_directories(paths: Iterable[str | Path]) -> list[Path]:
    """Find the runs that paths name or hold, each once, in the order of `load_runs`; UsageError as there.

    A sweep of which every cell failed holds none, and is no error.
    """
    found: dict[Path, Path] = {}
    places = list(map(Path, paths))
    for path in places:
        for run in _runs_in(path):
            found.setdefault(run.resolve(), run)
    if not places:
        raise UsageError("no run to read", _HOW)
    return list(found.values())


def _runs_in(path: Path) -> list[Path]:
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        raise UsageError(f"run {path} {what}", _HOW)
    if (path / MARKER).is_file():
        return [path]
    # Hidden directories are runs that are being written.
    runs = sorted(
        marker.parent
        for place in _PLACES
        for marker in path.glob(f"{place}/{MARKER}")
        if not marker.parent.name.startswith(".")
    )
    if not runs and not ((path / _SWEEP).is_file() and _failed_cells(path).height):
        raise UsageError(f"{path} is no run and holds none: there is no {MARKER}", _HOW)
    asked = _asked(path / _SWEEP)
    return sorted(runs, key=lambda run: asked.get(run.name, len(asked)))


def _asked(sweep: Path) -> dict[str, int]:
    """Return the place of each cell in what a sweep was asked for; nothing where that is unknown."""
    try:
        return {str(cell["id"]): place for place, cell in enumerate(json.loads(sweep.read_bytes())["cells"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _read(runs: Sequence[Path]) -> pl.DataFrame:
    records = [read_record(run) for run in runs]
    marks = [_mark(record, run) for record, run in zip(records, runs, strict=True)]
    made = generator_columns([record["trace"].get("generator") for record in records])
    # Tables of one kind are put together before they are completed: that takes a while for each, not for each run.
    kinds: dict[tuple[object, ...], list[int]] = {}
    summaries = _summaries(runs)
    for place, summary in enumerate(summaries):
        kinds.setdefault(tuple(summary.schema.items()), []).append(place)
    parts = [
        _with_all_options(pl.concat([summaries[place] for place in places])).with_columns(
            pl.Series("_place", places),
            *(pl.Series(name, [marks[place][name] for place in places], pl.String) for name in _MARKS),
        )
        for places in kinds.values()
    ]
    frame = pl.concat(parts, how="diagonal_relaxed").sort("_place")
    several = pl.col("_fingerprint").n_unique().over("trace") > 1
    told_apart = pl.format("{}@{}", "trace", pl.col("_fingerprint").str.slice(0, 8))
    frame = frame.with_columns(pl.when(several).then(told_apart).otherwise("trace").alias("trace"))
    frame = frame.select("trace", *(pl.Series(name, values) for name, values in made.items()), pl.exclude("trace"))
    return _with_code(frame).drop("_place", *_MARKS)


def _mark(record: Mapping[str, Any], run: Path) -> dict[str, str | None]:
    """Return what distinguishes runs besides their options: the trace, the program, and the grouping's code together
    with the content of the files that options name.
    """
    code, outside = record.get("code", {}), record.get("grouping", {}).get("file_digest")
    version = record.get("versions", {}).get("streamgroup")
    # What was measured in an engine and what was simulated are never averaged.
    engine = f"in {record['engine']['name']}" if "engine" in record else None
    program = " ".join(str(part) for part in (version, code.get("program", "")[:_DIGITS], engine) if part)
    own = str(code.get("grouping") or outside or "")
    files = {**record.get("grouping", {}).get("file_digests", {}), **record.get("option_digests", {})}
    # Of an application and of the aggregators' grouping, see `make_run_record.outside_code`.
    others = ("app_digest", "aggregator_grouping_digest", "aggregator_grouping_files")
    files |= {name: record[name] for name in others if name in record}
    if files:
        own = hashlib.sha256(json.dumps([own, files], sort_keys=True).encode()).hexdigest()
    return {
        "_fingerprint": str(record["trace"]["fingerprint"]), "_program": program, "_own": own[:_DIGITS],
        "_run": os.fsencode(run).decode("utf-8", "backslashreplace"),
    }  # fmt: skip


def _with_code(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of `CODE_COLUMNS` that are needed to distinguish runs, after the trace."""
    options = [name for name in OPTION_COLUMNS if name in frame.columns]
    several = {name: pl.col(name).n_unique().over("grouping") > 1 for name in ("_program", "_own")}
    found = frame.select(**several, again=pl.struct(options).is_duplicated())
    made = {
        "run": pl.col("_run"),
        "program": pl.col("_program"),
        "code": pl.when(several["_own"]).then("_own"),
    }
    needed = dict(zip(made, ("again", "_program", "_own"), strict=True))
    kept = [made[name].alias(name) for name in CODE_COLUMNS if found[needed[name]].any()]
    return frame.select("trace", *kept, pl.exclude("trace")) if kept else frame


def _summaries(runs: Sequence[Path]) -> list[pl.DataFrame]:
    """Read the summary of each run: all at once where they are of one kind, which is twice as fast."""
    try:
        whole = pl.read_parquet([run / _SUMMARY for run in runs], glob=False, include_file_paths="_path")
        same = whole.height == len(runs) == whole["_path"].n_unique() and column_fault("summary", whole.schema) is None
        if same and ("schema_version" not in whole.columns or (whole["schema_version"] == SCHEMA_VERSION).all()):
            return list(whole.drop("_path").iter_slices(1))
    except (OSError, pl.exceptions.PolarsError):
        pass
    return [read_table(run, "summary") for run in runs]


def _failed_cells(sweep: Path) -> pl.DataFrame:
    """Read which cells of a sweep failed; those that were run since are left out."""
    path = sweep / _SUMMARY
    if not path.is_file():
        return pl.DataFrame(schema=_schema()).with_columns(
            pl.lit(None, pl.String).alias(name) for name in STATUS_COLUMNS
        )
    try:
        frame = pl.read_parquet(path, glob=False).filter(pl.col("status") != "ok")
        if "cell" in frame.columns:
            done = [(sweep / "cells" / str(cell) / MARKER).is_file() for cell in frame["cell"]]
            frame = frame.filter(~pl.Series(done, dtype=pl.Boolean))
        known = [name for name in (*OPTION_COLUMNS, *METRICS, *STATUS_COLUMNS) if name in frame.columns]
        return _with_all_options(frame.select(known)).cast(
            {name: kind for name, kind in {**_schema(), "error": pl.String()}.items() if name in known}
        )
    except (OSError, pl.exceptions.PolarsError):
        raise DataError(f"{path} is not the summary of a sweep", "make the sweep again") from None


def _schema() -> dict[str, pl.DataType]:
    options = {name: _POLARS[KINDS[name]] for name in OPTION_COLUMNS}
    return {**options, **{name: _METRIC_KINDS[kind] for name, kind in METRICS.items()}}


def _with_all_options(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the options that there were not when the run was made, and put all in the order of today's tables."""
    missing = {name: value for name, value in {**DEFAULTS, **_BEFORE}.items() if name not in frame.columns}
    frame = frame.with_columns(pl.lit(value, dtype=_POLARS[KINDS[name]]).alias(name) for name, value in missing.items())
    first = [name for name in OPTION_COLUMNS if name in frame.columns]
    return frame.select(*first, pl.exclude(first))
