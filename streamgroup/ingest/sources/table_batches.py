"""Turns record batches of a table's canonical columns into parsed batches, as a reader does; without Spark."""

import datetime as dt
import json
import math
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamgroup.ingest.parsing.columns_as_text import as_texts
from streamgroup.ingest.parsing.numbers import to_float
from streamgroup.ingest.pipeline.composite_keys import NOT_UTF8, composite
from streamgroup.ingest.readers.protocol import Layout, Parsed, Reject
from streamgroup.ingest.sources.table_options import SparkSourceOptions

__all__ = ["PARTITION", "Column", "Table", "batches", "key_columns", "parsed", "partition_of"]

PARTITION = "partition"


class Column(NamedTuple):
    """A part of the key: its expression as given, and its type as engines know it (`string`, `long`, ...)."""

    name: str
    type: str


class Table(NamedTuple):
    """What a task needs to know of a table to read its record batches; `keys` has a column for each part of the key."""

    options: SparkSourceOptions
    layout: Layout
    keys: tuple[Column, ...]


def key_columns(options: SparkSourceOptions) -> list[str]:
    """Name the canonical columns of the key: `key`, or `key_0`, `key_1`, ... of a composite one."""
    return ["key"] if len(options.key) == 1 else [f"key_{number}" for number in range(len(options.key))]


def partition_of(batch: pa.RecordBatch) -> int:
    """Return the number of the partition that a batch with rows is of."""
    return int(batch.column(PARTITION)[0].as_py())


def batches(record_batches: Iterable[pa.RecordBatch], options: SparkSourceOptions) -> Iterator[Parsed]:
    """Read the batches of one partition; `line` numbers its rows from 1."""
    before = 0
    for batch in record_batches:
        if batch.num_rows:
            yield parsed(batch, options, before)
        before += batch.num_rows


def parsed(batch: pa.RecordBatch, options: SparkSourceOptions, before: int = 0) -> Parsed:
    """Return a batch of canonical columns, `before` rows of its partition before it, as a reader would.

    A row with a part of its key that is not UTF-8 is rejected. `text(row)` is the row as JSON: what the expressions
    gave, by their texts.
    """
    line = np.arange(before + 1, before + batch.num_rows + 1)
    columns = {name: _plain(batch.column(name)) for name in batch.schema.names if name != PARTITION}
    names = key_columns(options)
    rejects: list[Reject] = []
    if len(names) == 1:
        key = as_texts(columns["key"])
    else:
        nulls = pa.array([text.encode() for text in options.null_values], pa.binary())
        key, misfit = composite([columns[name] for name in names], nulls)
        if misfit.any():
            written = _row_text(columns, options)
            rejects = [Reject(int(line[row]), NOT_UTF8, written(row)) for row in np.flatnonzero(misfit).tolist()]
            kept = pa.array(~misfit)
            line, key = line[~misfit], key.filter(kept)
            columns = {name: column.filter(kept) for name, column in columns.items()}

    def number(name: str) -> Any:
        return pa.array(to_float(columns[name])) if name in columns else None

    return Parsed(
        rows=batch.num_rows,
        lines=batch.num_rows,
        consumed=batch.nbytes,
        line=line,
        time=as_texts(columns["time"]),
        key=key,
        cost=number("cost"),
        value=number("value"),
        weight=number("weight"),
        text=_row_text(columns, options),
        rejects=rejects,
        filtered={},
    )


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _row_text(columns: dict[str, Any], options: SparkSourceOptions) -> Callable[[int], bytes]:
    """Return a function that writes a row as JSON: a member for each expression, named by its text."""
    keys = dict(zip(key_columns(options), options.key, strict=True))

    def text(row: int) -> bytes:
        content = {
            keys.get(name) or str(getattr(options, name)): _value(column, row) for name, column in columns.items()
        }
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

    return text


def _value(column: Any, row: int) -> Any:
    """Return a value as JSON has it; times as ISO 8601, numbers that JSON lacks and decimals as texts."""
    cell = column[row]
    if pa.types.is_timestamp(column.type):
        # Python's own times end with the year 9999.
        if not cell.is_valid:
            return None
        return str(np.datetime64(cell.cast(pa.int64()).as_py(), column.type.unit)) + "Z" * (column.type.tz is not None)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        cell = cell.cast(pa.binary())
    value = cell.as_py()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (dt.date, Decimal)) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
