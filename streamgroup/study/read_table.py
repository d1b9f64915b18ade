"""Reads a table of a run, and checks its version and the columns that are read of it."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from streamgroup.base.errors import DataError
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.metrics.metric_names import METRICS
from streamgroup.study.read_run import AGAIN, other_version
from streamgroup.study.run_option_columns import KINDS

__all__ = ["check_table", "column_fault", "read_table"]

# Columns that every run has. Others were added later, or are null in some runs.
_REQUIRED: dict[str, tuple[str, ...]] = {
    "summary": ("trace", "grouping", "workers"),
    "windows": ("window", "start_s", "tuples"),
    "workers": ("worker", "tuples"),
    "loads": ("window", "worker", "tuples"),
    "latency": ("at_least_ms", "tuples"),
    "keys": ("key", "count", "share", "workers"),
    "lag": ("time_s", "worker", "backlog_tuples", "backlog_s"),
}
_SUMMARY: dict[str, type] = {**KINDS, **METRICS, "schema_version": int}


def read_table(run: Path, name: str) -> pl.DataFrame:
    """Read a table of a run by its name; DataError where it is not there, damaged, or as `check_table` has it."""
    path = run / f"{name}.parquet"
    try:
        frame = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise DataError(f"{path} {reason}", AGAIN) from None
    check_table(path, frame)
    return frame


def check_table(path: Path, frame: pl.DataFrame) -> None:
    """Check the content of a table's file; DataError for another version, a missing column and one of another type."""
    is_summary = path.stem == "summary"
    fault = column_fault(path.stem, frame.schema)
    if fault is not None:
        raise DataError(f"{path}{' is not the summary of one run' if is_summary else ''}: {fault}", AGAIN)
    if "schema_version" in frame.columns:
        others = [version for version in frame["schema_version"].unique() if version != SCHEMA_VERSION]
        if others:
            raise other_version(path, others[0])
    if is_summary and frame.height != 1:
        raise DataError(f"{path} is not the summary of one run", AGAIN)


def column_fault(table: str, schema: Mapping[str, pl.DataType]) -> str | None:
    """Say which column of a table is missing or holds other values than a run's; None where all is well."""
    for name in _REQUIRED.get(table, ()):
        if name not in schema:
            return f"the column {name} is missing"
    for name, kind in schema.items():
        is_known = name in _SUMMARY if table == "summary" else table in _REQUIRED
        if not is_known or kind == pl.Null():
            continue
        is_text = _SUMMARY[name] is str if table == "summary" else name == "key"
        if is_text and kind != pl.String():
            return f"the column {name} holds {kind}, not texts"
        if not is_text and not (kind.is_numeric() or kind == pl.Boolean()):
            return f"the column {name} holds {kind}, not numbers"
    return None
