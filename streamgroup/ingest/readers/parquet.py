"""Parquet files, as pandas, Spark or any other tool wrote them: one split a row group."""

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.storage import locate
from streamgroup.ingest.numbers import to_float
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Split, find_columns
from streamgroup.ingest.readers.protocol import Reader as Base
from streamgroup.ingest.times import KNOWN, guess_format, resolve_format

__all__ = ["Reader"]

_BATCH_ROWS = 128 << 10
_HEAD_ROWS = 1000


def _open(path: str) -> pq.ParquetFile:
    place = locate(path)
    try:
        source = place.open_input()
        return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=not place.is_local)
    except (pa.ArrowException, OSError) as error:
        place.blame(error)
        raise DataError(f"{path}: not a whole Parquet file ({str(error).splitlines()[0]})", "get it again") from None


def _plain(column: Any) -> Any:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _value_type(field: pa.Field) -> pa.DataType:
    return field.type.value_type if pa.types.is_dictionary(field.type) else field.type


def _texts(array: Any) -> Any:
    """Turn a column of numbers or texts into texts; timestamps and dates stay."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return array
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        array = array.cast(pa.float64())
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_string(kind)):
        array = array.cast(pa.string())
    return array.cast(pa.binary())


@contextlib.contextmanager
def _legible(path: str) -> Iterator[None]:
    """Tell damage of a file as an error of the data."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        locate(path).blame(error)
        raise DataError(f"{path}: cannot be read ({str(error).splitlines()[0]})", "get it again") from None


class Reader(Base):
    """Parquet: `line` is the row, from 1. Timestamps of any unit are read, ns too (floored to us)."""

    unused = ("delimiter", "header", "encoding", "multiline")
    about = "Parquet files; integer, boolean, string and binary keys"
    defaults: ClassVar = Defaults(time=("timestamp", "time", "ts"), key=("key",))

    def plan(self, path: str) -> list[tuple[int, int | None]]:
        """Give each row group as a split of its own."""
        with _open(path) as file:
            return [(group, group + 1) for group in range(file.metadata.num_row_groups)]

    def layout(self, path: str) -> Layout:
        """Check the types of the columns asked for, and guess the form of times that are numbers or texts."""
        opts = self.options
        with _open(path) as file:
            shape = file.schema_arrow
            names = tuple(shape.names)
            layout = Layout(
                names=names,
                **find_columns(opts, self.defaults, names, path),
            )
            self._check(shape, layout, path)
            form = resolve_format(opts.time_format)
            if form is None:
                with _legible(path):
                    head = next(file.iter_batches(_HEAD_ROWS, columns=[names[layout.time]]), None)
                column = _texts(_plain(head.column(0))) if head is not None else pa.array([], pa.binary())
                kind = _value_type(shape.field(layout.time))
                numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
                form = guess_format(column, numeric=numeric) if pa.types.is_binary(column.type) else KNOWN
        return layout._replace(time_format=form)

    @staticmethod
    def _check(shape: pa.Schema, layout: Layout, path: str) -> None:
        types = pa.types
        text = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        allowed = {
            "key": (*text, types.is_integer, types.is_boolean),
            "time": (
                *text,
                types.is_integer,
                types.is_floating,
                types.is_decimal,
                types.is_timestamp,
                types.is_date,
            ),
            "cost": (types.is_integer, types.is_floating, types.is_decimal),
            "value": (types.is_integer, types.is_floating, types.is_decimal),
            "weight": (types.is_integer, types.is_floating, types.is_decimal),
        }
        for what, checks in allowed.items():
            number = getattr(layout, what)
            if number < 0:
                continue
            field = shape.field(number)
            kind = _value_type(field)
            if not any(check(kind) for check in checks):
                raise UsageError(f"{path}: column {field.name!r} is {kind}: no {what} can be made of it", "cast it")

    def batches(self, split: Split, layout: Layout) -> Iterator[Parsed]:
        """Read one row group in batches."""
        wanted = [layout.time, layout.key, layout.cost, layout.value, layout.weight]
        names = sorted({layout.names[number] for number in wanted if number >= 0})
        at, left = 0, split.rows
        with _open(split.path) as file:
            groups = [split.start]
            with _legible(split.path):
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=names, use_threads=False):
                    if left is not None:
                        batch = batch.slice(0, left)
                        left -= batch.num_rows
                    if batch.num_rows:
                        yield self._parsed(batch, layout, at)
                    at += batch.num_rows

    @staticmethod
    def _parsed(batch: pa.RecordBatch, layout: Layout, at: int) -> Parsed:
        def get(number: int) -> Any:
            return _plain(batch.column(layout.names[number]))

        key = get(layout.key)
        if pa.types.is_boolean(key.type):
            key = pc.if_else(key, "true", "false")
        return Parsed(
            rows=batch.num_rows,
            lines=batch.num_rows,
            consumed=batch.nbytes,
            line=np.arange(at + 1, at + batch.num_rows + 1),
            time=_texts(get(layout.time)),
            key=_texts(key),
            cost=pa.array(to_float(get(layout.cost))) if layout.cost >= 0 else None,
            value=pa.array(to_float(get(layout.value))) if layout.value >= 0 else None,
            text=lambda row: ",".join(str(batch.column(name)[row].as_py()) for name in batch.schema.names).encode(),
            rejects=[],
            filtered={},
            weight=pa.array(to_float(get(layout.weight))) if layout.weight >= 0 else None,
        )
