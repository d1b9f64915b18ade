"""What a run directory says of itself, in `run.json`."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.schema_version import SCHEMA_VERSION
from streamgroup.replay.scenario.options import ReplayOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AGAIN", "MARKER", "TABLES", "read_record", "read_tables", "recorded_options"]

MARKER = "run.json"
TABLES = ("summary", "windows", "workers", "loads", "latency", "keys", "lag")
AGAIN = "make the run again"


def read_record(run: Path) -> dict[str, Any]:
    """Read `run.json` of a run directory; DataError where it is damaged or of another version of the tables."""
    try:
        record: dict[str, Any] = json.loads((run / MARKER).read_bytes())
        version, _ = record["schema_version"], str(record["trace"]["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise DataError(f"{run / MARKER} is not the record of a run", AGAIN) from None
    if version != SCHEMA_VERSION:
        raise DataError(f"{run}: tables of version {version}, this program reads {SCHEMA_VERSION}", AGAIN)
    return record


def read_tables(run: Path) -> tuple[dict[str, "pa.Table"], dict[str, Any]]:
    """Read the tables of a run by name, and its record; UsageError where there is none, DataError as there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not (run / MARKER).is_file():
        raise UsageError(f"{run} is no run: there is no {MARKER}", "name a run directory, as replay -o makes them")
    record = read_record(run)
    tables = {}
    for name in TABLES:
        path = run / f"{name}.parquet"
        try:
            tables[name] = pq.read_table(path, partitioning=None)
        except (OSError, pa.ArrowException):
            raise DataError(f"{path} cannot be read", AGAIN) from None
    return tables, record


def recorded_options(record: dict[str, Any]) -> ReplayOptions:
    """Return the options of a run's record, where several texts of an option are one, with spaces between."""
    fields = {field.name: field for field in dataclasses.fields(ReplayOptions)}
    given: dict[str, Any] = {
        name: tuple(value.split() if value else ()) if fields[name].type == tuple[str, ...] else value
        for name, value in record["options"].items()
        if name in fields
    }
    # What the capacity file says is among the options themselves.
    return ReplayOptions(**{**given, "capacity": None})
