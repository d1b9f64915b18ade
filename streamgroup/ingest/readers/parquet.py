"""Parquet files, as pandas, Spark or any other tool wrote them: one split per row group."""

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.parsing.columns_as_text import as_texts
from streamgroup.ingest.parsing.numbers import to_float
from streamgroup.ingest.parsing.times import KNOWN, TimeFormat, guess_format, resolve_format
from streamgroup.ingest.readers.options import Parquet
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Split, find_columns
from streamgroup.ingest.readers.protocol import Reader as Base

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


def _to_plain(column: Any) -> Any:
    """Return a column as one array of a plain type: no dictionary, no view, no extension; an UUID as its 36 letters."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array.type, pa.BaseExtensionType):
        uuid = getattr(array.type, "extension_name", "") == "arrow.uuid"
        return _uuids(array.storage) if uuid else _to_plain(array.storage)
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    if pa.types.is_null(array.type):
        return array.cast(pa.binary())
    return array.cast(_value_type(array)) if _value_type(array) != array.type else array


def _value_type(column: Any) -> pa.DataType:
    """Return the type of a column's (or field's) values as `_to_plain` makes them."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind) else kind


# Where the digits of a UUID stand among its 36 letters.
_DIGITS = np.array([place for place in range(36) if place not in (8, 13, 18, 23)])


def _uuids(array: Any) -> Any:
    filled = pc.fill_null(array.cast(pa.binary()), bytes(16))
    digits = np.frombuffer(b"".join(filled.to_pylist()).hex().encode(), np.uint8)
    letters = np.full((len(array), 36), ord("-"), np.uint8)
    letters[:, _DIGITS] = digits.reshape(len(array), 32)
    bounds = np.arange(len(array) + 1, dtype=np.int32) * 36
    texts = pa.Array.from_buffers(
        pa.binary(), len(array), [None, pa.py_buffer(bounds), pa.py_buffer(letters.tobytes())]
    )
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.binary())) if array.null_count else texts


def _number(array: Any) -> Any:
    """Return numbers as float64; a duration has a unit of its own and becomes microseconds."""
    if pa.types.is_duration(array.type):
        per_micro = {"s": 1e-6, "ms": 1e-3, "us": 1.0, "ns": 1e3}[array.type.unit]
        return pa.array(to_float(array.cast(pa.int64())) / per_micro)
    return pa.array(to_float(array))


def _part_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "int" if kind.bit_width <= 32 and kind != pa.uint32() else "long"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "bytes" if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else "string"


def _time(batch: pa.RecordBatch, layout: Layout) -> Any:
    def column(number: int) -> Any:
        plain = _to_plain(batch.column(layout.names[number]))
        return plain if layout.time_parts else as_texts(plain)

    return layout.time_of(column, batch.num_rows)


@contextlib.contextmanager
def _read_errors(path: str) -> Iterator[None]:
    """Raise errors of a damaged file as a DataError."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        locate(path).blame(error)
        raise DataError(f"{path}: cannot be read ({str(error).splitlines()[0]})", "get it again") from None


class Reader(Base):
    """Parquet: `line` is the row, from 1. Timestamps of any unit are read, ns too (floored to us)."""

    Options: ClassVar = Parquet
    joins: ClassVar[tuple[str, ...]] = ("time", "key")
    about = "Parquet files; integer, boolean, string and binary keys"
    defaults: ClassVar = Defaults(time=("timestamp", "time", "ts"), key=("key",))

    def plan(self, path: str) -> list[tuple[int, int | None]]:
        """Return each row group as a split of its own."""
        with _open(path) as file:
            return [(group, group + 1) for group in range(file.metadata.num_row_groups)]

    def layout(self, path: str) -> Layout:
        """Check the types of the columns asked for, and guess the form of times that are numbers or texts."""
        opts = self.options
        with _open(path) as file:
            schema = file.schema_arrow
            names = tuple(schema.names)
            layout = Layout(names=names, **find_columns(opts, self.defaults, names, path))
            self._check(schema, layout, path)
            timed = layout.cost >= 0 and pa.types.is_duration(schema.field(layout.cost).type)
            if timed and opts.cost_unit != "us":
                raise UsageError(f"{path}: a duration has a unit of its own", "leave --cost-unit out")
            form = resolve_format(opts.time_format)
            if form is None and layout.time >= 0:
                form = self._guess(file, layout, path)
        types = tuple(_part_type(_value_type(schema.field(number))) for number in layout.key_parts)
        return layout._replace(time_format=form or KNOWN, key_types=types)

    @staticmethod
    def _guess(file: pq.ParquetFile, layout: Layout, path: str) -> TimeFormat:
        columns = layout.time_parts or (layout.time,)
        with _read_errors(path):
            head = next(file.iter_batches(_HEAD_ROWS, columns=[layout.names[number] for number in columns]), None)
        column = pa.array([], pa.binary()) if head is None else _time(head, layout)
        kind = _value_type(file.schema_arrow.field(layout.time))
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        numeric = numeric and len(columns) == 1
        return guess_format(column, numeric=numeric) if pa.types.is_binary(column.type) else KNOWN

    @staticmethod
    def _check(schema: pa.Schema, layout: Layout, path: str) -> None:
        types = pa.types
        number = (types.is_integer, types.is_floating, types.is_decimal)
        text = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        time = (*text, *number, types.is_timestamp, types.is_date, types.is_null)
        allowed: dict[str, tuple[tuple[int, ...], Any]] = {
            "key": (layout.key_parts or (layout.key,), (*text, types.is_integer, types.is_boolean, types.is_null)),
            "time": (layout.time_parts or (layout.time,), (*time, types.is_time) if layout.time_parts else time),
            "cost": ((layout.cost,), (*number, types.is_duration)),
            "value": ((layout.value,), number),
            "weight": ((layout.weight,), number),
            "condition of --where": (layout.where, (*time, types.is_boolean)),
        }
        for what, (places, checks) in allowed.items():
            for place in places:
                field = schema.field(place) if place >= 0 else None
                if field is not None and not any(check(_value_type(field)) for check in checks):
                    what_is_wrong = f"{path}: column {field.name!r} is {field.type}: no {what} can be made of it"
                    raise UsageError(what_is_wrong, "cast it")

    def batches(self, split: Split, layout: Layout) -> Iterator[Parsed]:
        """Read one row group in batches."""
        wanted = [layout.time, layout.key, layout.cost, layout.value, layout.weight]
        wanted += [*layout.time_parts, *layout.key_parts, *layout.where]
        names = sorted({layout.names[number] for number in wanted if number >= 0})
        at, left = 0, split.rows
        with _open(split.path) as file:
            groups = [split.start]
            with _read_errors(split.path):
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
            return _to_plain(batch.column(layout.names[number]))

        def number_of(number: int) -> Any:
            return _number(get(number))

        return Parsed(
            rows=batch.num_rows,
            lines=batch.num_rows,
            consumed=batch.nbytes,
            line=np.arange(at + 1, at + batch.num_rows + 1),
            time=_time(batch, layout),
            key=layout.key_of(get if layout.key_parts else lambda number: as_texts(get(number))),
            **layout.optional_of(number_of, get),
            text=lambda row: ",".join(str(batch.column(name)[row].as_py()) for name in batch.schema.names).encode(),
            rejects=[],
            filtered={},
        )
