"""Reads a run directory: what `run.json` records, and the tables."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.replay.scenario.options import ReplayOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "AGAIN", "MARKER", "MORE_TABLES", "TABLES", "other_version", "read_record", "read_tables", "recorded_options",
    "table_names",
]  # fmt: skip

MARKER = "run.json"
TABLES = ("summary", "windows", "workers", "loads", "latency", "keys", "lag")
# Tables that only some runs have: the digests in the record say which.
MORE_TABLES = ("trials", "results")
AGAIN = "make the run again"


def read_record(run: Path) -> dict[str, Any]:
    """Read `run.json` of a run directory; DataError where it is damaged or of another version of the tables."""
    path = run / MARKER
    try:
        record: dict[str, Any] = json.loads(path.read_bytes())
        version = record["schema_version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise DataError(f"{path} is not the record of a run", AGAIN) from None
    if version != SCHEMA_VERSION:
        raise other_version(run, version)
    # Not before it is needed: making the models takes longer than a small replay.
    from streamgroup.study.run_record import first_fault

    reason = first_fault(record)
    if reason is not None:
        raise DataError(f"{path} is not the record of a run: {reason}", AGAIN)
    return record


def other_version(place: Path, version: Any) -> DataError:
    """Return the error for a run, or a table, of another version than this program reads."""
    is_later = isinstance(version, int) and version > SCHEMA_VERSION
    hint = f"update streamgroup, as a later version wrote it, or {AGAIN} with this one" if is_later else AGAIN
    return DataError(f"{place}: tables of version {version}, this program reads {SCHEMA_VERSION}", hint)


def table_names(record: Mapping[str, Any]) -> list[str]:
    """Name the tables that a run has."""
    digests = record.get("table_digests")
    return [*TABLES, *(name for name in MORE_TABLES if isinstance(digests, dict) and name in digests)]


def read_tables(run: Path) -> tuple[dict[str, "pa.Table"], dict[str, Any]]:
    """Read the tables of a run by name, and its record; UsageError where there is none, DataError as there."""
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    from streamgroup.study.read_table import check_table

    if not (run / MARKER).is_file():
        raise UsageError(f"{run} is no run: there is no {MARKER}", "name a run directory, as replay -o makes them")
    record = read_record(run)
    tables = {}
    for name in table_names(record):
        path = run / f"{name}.parquet"
        try:
            # Of a relative path Arrow would take what is before a colon for the scheme of a URL.
            tables[name] = pq.read_table(path.absolute(), partitioning=None)
        except (OSError, pa.ArrowException):
            raise DataError(f"{path} cannot be read", AGAIN) from None
        check_table(path, pl.DataFrame(tables[name]))
    return tables, record


def recorded_options(run: Path, record: dict[str, Any]) -> ReplayOptions:
    """Return the options of a run's record, where several texts of an option are one, with spaces between.

    Where the rate was searched, they are those of the run at the rate found. DataError where options are missing.
    """
    fields = {field.name: field for field in dataclasses.fields(ReplayOptions)}
    recorded = record.get("options", {})
    for name in ("grouping", "workers"):
        if name not in recorded:
            raise DataError(f"{run / MARKER} is not the record of a run: options.{name}: it is missing", AGAIN)
    given: dict[str, Any] = {
        name: tuple(value.split() if value else ()) if fields[name].type == tuple[str, ...] else value
        for name, value in recorded.items()
        if name in fields
    }
    search = record.get("rate_search")
    if isinstance(search, dict) and isinstance(search.get("arrivals"), str):
        given |= {"arrivals": search["arrivals"], "max_p99": None}
    if given.get("arrivals") != "saturate":
        # Earlier versions recorded it although it meant nothing, which is refused today.
        given.pop("max_pending", None)
    # What the capacity file says is among the options themselves.
    return ReplayOptions(**{**given, "capacity": None})
