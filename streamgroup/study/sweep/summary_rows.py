"""The rows of a sweep: the options of a cell, its status, and every metric."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from streamgroup.base.arrow_numpy import column
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.metrics.metric_names import METRICS
from streamgroup.study.run_option_columns import KINDS, OPTION_COLUMNS

__all__ = ["as_table", "row_of"]

_ARROW = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


def row_of(name: str, options: Mapping[str, Any], found: Mapping[str, Any] | None, error: str | None) -> dict[str, Any]:
    """Return the row of a cell: its options, its id, its `status` (ok or failed) and `error`, the metrics that it has.

    `found` is the row of its run, None for one that failed.
    """
    metrics = {name: None if found is None else found[name] for name in METRICS}
    status = "failed" if found is None else "ok"
    fate = {"cell": name, "status": status, "error": error}
    return {**options, **fate, **metrics, "schema_version": SCHEMA_VERSION}


def as_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table with the same column types whatever is null; other columns follow the trace."""
    kinds: dict[str, type] = {name: KINDS[name] for name in OPTION_COLUMNS}
    kinds |= dict.fromkeys(("cell", "status", "error"), str)
    kinds |= dict(METRICS)
    more = [name for name in (rows[0] if rows else ()) if name not in {*kinds, "schema_version"}]
    extra = {name: pa.array([row[name] for row in rows]) for name in more}
    made = {name: column([row[name] for row in rows], _ARROW[kind]) for name, kind in kinds.items()}
    return pa.table(
        {"trace": made["trace"], **extra, **made, "schema_version": pa.array([SCHEMA_VERSION] * len(rows), pa.int32())}
    )
