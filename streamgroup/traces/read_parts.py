"""The Parquet files of a trace: finds them, checks their columns, decodes them to arrays of fixed types."""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamgroup.base.arrow_numpy import numbers
from streamgroup.base.errors import DataError
from streamgroup.base.storage.filesystems import cause
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.traces import layout
from streamgroup.traces.timestamps import to_micros

__all__ = [
    "TUPLE_COLUMNS",
    "DecodeUnit",
    "Part",
    "columns_of",
    "decode",
    "decode_units",
    "key_faults",
    "list_parts",
    "open_part",
    "open_parts",
    "read_part",
    "tuple_faults",
]

# Footers that are fetched from an object store at once.
_AT_ONCE = 16

TUPLE_COLUMNS = ("timestamp", "key_id", "cost", "value", "weight", "parent")


class Part(NamedTuple):
    """An open Parquet file: its place, its label in messages, its footer, its columns, its rows."""

    path: StoragePath
    label: str
    metadata: pq.FileMetaData
    schema: pa.Schema
    rows: int


class DecodeUnit(NamedTuple):
    """Row groups that are decoded together, and the place of their rows in the part."""

    groups: list[int]
    first: int
    rows: int


def list_parts(trace: StoragePath | Path, folder: str) -> list[StoragePath]:
    """Lists the Parquet files of a folder of a trace by name; hidden ones (`.`, `_`) are not part of it."""
    places = (entry.place for entry in (locate(trace) / folder).entries())
    return [place for place in places if place.name.endswith(".parquet") and place.name[0] not in "._"]


def open_part(path: StoragePath | Path) -> Part:
    """Reads a file's footer; DataError when it is not (all of) a Parquet file."""
    place = locate(path)
    label = f"{place.parent.name}/{place.name}"
    with _opened(place, f"{label}: not a whole Parquet file") as file:
        return Part(place, label, file.metadata, file.schema_arrow, file.metadata.num_rows)


def open_parts(places: Sequence[StoragePath]) -> list[Part]:
    """Reads the footers of files, of an object store several at once; DataError for the first that is damaged."""
    if len(places) < 2 or places[0].is_local:
        return [open_part(place) for place in places]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="footers") as pool:
        return list(pool.map(open_part, places))


@contextlib.contextmanager
def _opened(place: StoragePath, fault: str, metadata: pq.FileMetaData | None = None) -> Iterator[pq.ParquetFile]:
    """Opens a file; `fault` is the error message when it cannot be read, unless it is the store that fails."""
    try:
        # Of an object store the columns of a row group are fetched together, ahead of decoding.
        with (
            place.open_input() as source,
            pq.ParquetFile(source, metadata=metadata, pre_buffer=not place.is_local) as file,
        ):
            yield file
    except (pa.ArrowException, OSError) as error:
        place.blame(error)
        raise DataError(f"{fault} ({cause(error)})", "make the trace again") from None


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _fields(part: Part, wanted: dict[str, tuple[Any, str, bool]]) -> list[str]:
    faults = []
    for name, (allowed, words, required) in wanted.items():
        index = part.schema.get_field_index(name)
        if index < 0:
            if name in part.schema.names:
                faults.append(f"{part.label}: column {name} twice")
            elif required:
                faults.append(f"{part.label}: no column {name} (it has {', '.join(part.schema.names) or 'none'})")
        elif not allowed(_plain(part.schema.field(index).type)):
            kind = part.schema.field(index).type
            faults.append(f"{part.label}: column {name} is {kind}, not {words}")
    return faults


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_int64(kind) or pa.types.is_timestamp(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_bytes(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def tuple_faults(part: Part) -> list[str]:
    """List what is wrong with the columns of a part of `tuples/`."""
    number = (_is_number, "a number", False)
    return _fields(
        part,
        {
            "timestamp": (_is_time, "int64 or a timestamp", True),
            "key_id": (pa.types.is_integer, "an integer", True),
            "cost": number,
            "value": number,
            "weight": number,
            "parent": (pa.types.is_integer, "an integer", False),
        },
    )


def key_faults(part: Part) -> list[str]:
    """List what is wrong with the columns of a part of `keys/`."""
    faults = _fields(
        part,
        {
            "key_id": (pa.types.is_integer, "an integer", True),
            "key": (_is_text, "a string (cast it)", True),
            "key_bytes": (_is_bytes, "binary", False),
            "count": (pa.types.is_integer, "an integer", True),
            "hash_lo": (pa.types.is_int64, "int64", False),
            "hash_hi": (pa.types.is_int64, "int64", False),
        },
    )
    if ("hash_lo" in part.schema.names) != ("hash_hi" in part.schema.names):
        faults.append(f"{part.label}: one of hash_lo and hash_hi without the other")
    return faults


def columns_of(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return the columns that a tuple has; DataError when the parts do not agree on the optional ones."""
    found = [tuple(name for name in TUPLE_COLUMNS if name in part.schema.names) for part in parts]
    for part, names in zip(parts, found, strict=True):
        if names != found[0]:
            raise DataError(
                f"{part.label} has {', '.join(names)}, but {parts[0].label} has {', '.join(found[0])}",
                "give all parts the same columns",
            )
    return found[0]


def decode_units(part: Part) -> Iterator[DecodeUnit]:
    """Cut a part into runs of row groups of at most 2^20 rows together (a larger group stays alone)."""
    groups: list[int] = []
    first, rows = 0, 0
    for group in range(part.metadata.num_row_groups):
        size = part.metadata.row_group(group).num_rows
        if groups and rows + size > layout.BLOCK_ROWS:
            yield DecodeUnit(groups, first, rows)
            groups, first, rows = [], first + rows, 0
        groups.append(group)
        rows += size
    if rows:
        yield DecodeUnit(groups, first, rows)


def read_part(part: Part, groups: list[int] | None, columns: Sequence[str]) -> pa.Table:
    """Read columns of some row groups of a part (all for None); DataError when the file is damaged."""
    chosen = list(range(part.metadata.num_row_groups)) if groups is None else groups
    with _opened(part.path, f"{part.label}: cannot be read", part.metadata) as file:
        table: pa.Table = file.read_row_groups(chosen, columns=list(columns), use_threads=False)
        return table


def _array(column: pa.ChunkedArray) -> pa.Array:
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def decode(part: Part, unit: DecodeUnit, columns: Sequence[str], offset: int) -> dict[str, NDArray[Any]]:
    """Decode columns of a unit of `tuples/` into read-only arrays of the trace's types.

    `offset` is the place of the part's first row in the stream, for errors: DataError names the row of a
    null, or of a value that does not fit.
    """
    table = read_part(part, unit.groups, columns)
    result: dict[str, NDArray[Any]] = {}
    for name in columns:
        array = _array(table.column(name))
        if array.null_count:
            row = offset + unit.first + int(np.argmin(array.is_valid().to_numpy(zero_copy_only=False)))
            raise DataError(f"{part.label}: tuple {row} has no {name}", "every tuple needs all columns")
        try:
            values = _CONVERT[name](array)
        except _MisfitError as misfit:
            row = offset + unit.first + misfit.row
            raise DataError(f"{part.label}: tuple {row}: {name} {misfit.what}") from None
        values.flags.writeable = False
        result[name] = values
    return result


class _MisfitError(Exception):
    def __init__(self, row: int, what: str) -> None:
        super().__init__(what)
        self.row = row
        self.what = what


def _timestamps(array: pa.Array) -> NDArray[Any]:
    kind = array.type
    # As in `hash_and_show_keys.as_binary`: a cast imports pyarrow.compute.
    of_64_bits = pa.types.is_timestamp(kind) or pa.types.is_int64(kind)
    values: NDArray[np.int64] = numbers(array.view(pa.int64()) if of_64_bits else array.cast(pa.int64()))
    if not pa.types.is_timestamp(kind):
        return values
    micros, misfit = to_micros(values, kind.unit)
    if misfit.any():
        raise _MisfitError(int(np.argmax(misfit)), "does not fit into microseconds")
    return micros


def _key_ids(array: pa.Array) -> NDArray[Any]:
    values = numbers(array)
    if values.dtype == np.uint32:
        return values
    wrong = (values < 0) | (values > 0xFFFF_FFFF)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise _MisfitError(row, f"{values[row]} is not between 0 and 2^32 - 1")
    return values.astype(np.uint32)


def _parents(array: pa.Array) -> NDArray[Any]:
    values = numbers(array)
    if values.dtype == np.uint64 and len(values) and int(values.max()) >= 1 << 63:
        row = int(values.argmax())
        raise _MisfitError(row, f"{values[row]} is over 2^63 - 1")
    return values.astype(np.int64)


def _floats(dtype: Any) -> Any:
    def convert(array: pa.Array) -> NDArray[Any]:
        with np.errstate(over="ignore"):  # a cost that overflows float32 becomes infinite, which is refused later
            return np.asarray(numbers(array), dtype=dtype)

    return convert


_CONVERT: dict[str, Any] = {
    "timestamp": _timestamps,
    "key_id": _key_ids,
    "cost": _floats(np.float32),
    "value": _floats(np.float64),
    "weight": _floats(np.float64),
    "parent": _parents,
}
