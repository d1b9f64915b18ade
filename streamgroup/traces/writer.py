"""Writes traces, in this process and in Spark tasks: same rows, same bytes.

Encodings were measured (Zipf 1.2, two columns, two cores): timestamps as deltas and plain key ids under zstd
take 2.6 bytes a tuple and decode at 85 M tuples/s; plain or dictionary-encoded columns 3.1 bytes at 50 M.
Splitting the bytes of key ids would be faster still (124 M), but old readers cannot open integers stored so.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamgroup.base.arrow_numpy import arrow
from streamgroup.base.errors import DataError
from streamgroup.base.storage.places import Place, locate
from streamgroup.traces import schema
from streamgroup.traces.key_bytes import as_binary, split_texts

__all__ = [
    "Columns",
    "KeyColumns",
    "PartStats",
    "block_digest",
    "blocks",
    "cost_ns",
    "fingerprint",
    "join_stats",
    "whole_ns",
    "write_keys",
    "write_keys_part",
    "write_part",
    "write_rejects",
]

_PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": False,
    "store_schema": False,
}
_TUPLE_ENCODING = {"timestamp": "DELTA_BINARY_PACKED", "parent": "DELTA_BINARY_PACKED"}
_KEY_ENCODING = {"key_id": "DELTA_BINARY_PACKED", "count": "DELTA_BINARY_PACKED"}
_NULL_LENGTH = b"\xff\xff\xff\xff"


class Columns(NamedTuple):
    """A segment of tuples, arrays of one length: timestamp in us, key ids, and what else the tuples carry."""

    timestamp: NDArray[np.int64]
    key_id: NDArray[np.uint32]
    cost: NDArray[np.float32] | None = None
    value: NDArray[np.float64] | None = None
    weight: NDArray[np.float64] | None = None
    parent: NDArray[np.int64] | None = None


class PartStats(NamedTuple):
    """What was written: rows, the sha256 of each block, its span in us (None if empty), its cost in ns."""

    rows: int
    block_digests: list[bytes]
    first_timestamp: int | None
    last_timestamp: int | None
    total_cost_ns: int | None


class KeyColumns(NamedTuple):
    """A segment of the dictionary in id order: key bytes (arrow binary, null = null key), counts, hashes."""

    key: pa.Array
    count: NDArray[np.int64]  # type: ignore[assignment]
    hash_lo: NDArray[np.int64]
    hash_hi: NDArray[np.int64]


_Chunk = TypeVar("_Chunk", Columns, KeyColumns)

_DTYPES: dict[str, np.dtype[Any]] = {
    "timestamp": np.dtype("<i8"),
    "key_id": np.dtype("<u4"),
    "cost": np.dtype("<f4"),
    "value": np.dtype("<f8"),
    "weight": np.dtype("<f8"),
    "parent": np.dtype("<i8"),
}


def _present(columns: Columns) -> tuple[str, ...]:
    return tuple(name for name in Columns._fields if getattr(columns, name) is not None)


def block_digest(columns: Columns) -> bytes:
    """Digest one block of at most 2^20 rows: sha256 of its columns one after the other, little-endian."""
    digest = hashlib.sha256()
    for name in _present(columns):
        digest.update(np.ascontiguousarray(getattr(columns, name), dtype=_DTYPES[name]).data)
    return digest.digest()


def fingerprint(block_digests: Iterable[bytes], keys: Iterable[bytes | pa.LargeBinaryArray | None]) -> str:
    """Name a trace by its content: sha256 of the block digests, then of the dictionary in id order, in hex.

    Each key is its length as uint32, little-endian, and its bytes; the null key is only 0xFFFFFFFF. Keys come one by
    one or in arrow arrays of many.
    """
    digest = hashlib.sha256()
    for block in block_digests:
        digest.update(block)
    for key in keys:
        digest.update(_frame_all(key) if isinstance(key, pa.Array) else _frame(key))
    return digest.hexdigest()


def _frame(key: bytes | None) -> bytes:
    return _NULL_LENGTH if key is None else len(key).to_bytes(4, "little") + key


def _frame_all(keys: pa.LargeBinaryArray) -> bytes | memoryview:
    """Put the length of each key before its bytes."""
    if keys.null_count or not len(keys):
        return b"".join(map(_frame, keys.to_pylist()))
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    first, last = int(ends[0]), int(ends[-1])
    framed = np.empty(last - first + 4 * len(keys), np.uint8)
    is_key = np.ones(len(framed), np.bool_)
    heads = ends[:-1] - first + 4 * np.arange(len(keys))
    for byte in range(4):
        is_key[heads + byte] = False
        framed[heads + byte] = np.diff(ends) >> 8 * byte & 0xFF
    framed[is_key] = np.frombuffer(data, np.uint8)[first:last] if last > first else 0
    return framed.data


def whole_ns(cost: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return costs in us as whole ns, halves to even, as floats: an int64 does not hold every float32."""
    # A float32 times 1000 is exact in float64 (24 + 10 bits), so this is the only rounding.
    each: NDArray[np.float64] = np.rint(cost.astype(np.float64) * 1000.0)
    return each


def cost_ns(cost: NDArray[np.float32]) -> int:
    """Sum costs given in us as whole ns; exact, however large."""
    each = whole_ns(cost)
    if not len(each) or each.max() * len(each) < 2.0**62:
        return int(each.astype(np.int64).sum())
    return sum(map(int, each.tolist()))


def _check(columns: Columns, first_row: int, last: int | None) -> None:
    """Refuse what no trace may hold; the callers reject such rows themselves, so this is a second check."""
    stamps = columns.timestamp
    late = np.flatnonzero(stamps[1:] < stamps[:-1])
    if last is not None and stamps[0] < last:
        raise DataError(f"tuple {first_row} is earlier than the one before it")
    if len(late):
        raise DataError(f"tuple {first_row + int(late[0]) + 1} is earlier than the one before it")
    if columns.parent is not None and (columns.parent[1:] < columns.parent[:-1]).any():
        row = int(np.argmax(columns.parent[1:] < columns.parent[:-1])) + 1
        raise DataError(f"tuple {first_row + row} has a smaller parent than the one before it")
    if columns.cost is not None:
        bad = np.flatnonzero(~((columns.cost >= 0) & (columns.cost < np.inf)))
        if len(bad):
            raise DataError(f"tuple {first_row + int(bad[0])}: cost {columns.cost[bad[0]]} is not a service time")


def blocks(chunks: Iterable[Columns], rows: int) -> Iterator[Columns]:
    """Cut a stream of any chunking into blocks of `rows` rows (the last may be shorter); at least one."""
    names: tuple[str, ...] = ()

    def checked() -> Iterator[Columns]:
        nonlocal names
        for chunk in chunks:
            present = _present(chunk)
            names = names or present
            if present != names:
                raise ValueError(f"chunks with other columns: {present} after {names}")
            if any(len(getattr(chunk, name)) != len(chunk.timestamp) for name in names):
                raise ValueError("columns of different lengths")
            yield chunk

    empty = True
    for pieces in _cut(checked(), rows):
        yield _join(pieces)
        empty = False
    if empty:
        # Even without a row a block has the columns.
        yield Columns(**{name: np.empty(0, _DTYPES[name]) for name in names or ("timestamp", "key_id")})


def _cut(chunks: Iterable[_Chunk], rows: int) -> Iterator[list[_Chunk]]:
    """Cut chunks of any size into lists of pieces that have `rows` rows together; the last list may have fewer."""
    pieces: list[_Chunk] = []
    free = rows
    for chunk in chunks:
        size, start = len(chunk[0]), 0
        while start < size:
            stop = min(start + free, size)
            cut: Any = (None if column is None else column[start:stop] for column in chunk)
            pieces.append(type(chunk)(*cut))
            free -= stop - start
            start = stop
            if not free:
                yield pieces
                pieces, free = [], rows
    if pieces:
        yield pieces


def _join(pieces: list[Columns]) -> Columns:
    arrays: dict[str, Any] = {}
    for name in _present(pieces[0]):
        parts = [np.asarray(getattr(piece, name), dtype=_DTYPES[name]) for piece in pieces]
        arrays[name] = np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts))
    return Columns(**arrays)


def write_part(path: Place | Path, chunks: Iterable[Columns]) -> PartStats:
    """Write one part of `tuples/` from its rows in stream order: at most PART_ROWS, in chunks of any size.

    A part begins at a multiple of PART_ROWS, so its blocks are the trace's blocks. The bytes depend on the
    rows alone. Raises DataError for a timestamp that goes back or a cost that is negative, NaN or infinite.
    """
    place = locate(path)
    with place.writing() as sink:
        return _write_part(place.name, sink, chunks)


def _write_part(name: str, sink: BinaryIO, chunks: Iterable[Columns]) -> PartStats:
    writer: pq.ParquetWriter | None = None
    digests: list[bytes] = []
    rows, total = 0, 0
    first: int | None = None
    last: int | None = None
    has_cost = False
    try:
        for block in blocks(chunks, schema.ROW_GROUP_ROWS):
            size = len(block.timestamp)
            if writer is None:
                has_cost = block.cost is not None
                arrow_schema = schema.tuples_schema(
                    cost=has_cost,
                    value=block.value is not None,
                    weight=block.weight is not None,
                    parent=block.parent is not None,
                )
                writer = pq.ParquetWriter(sink, arrow_schema, column_encoding=_encoding(arrow_schema), **_PARQUET)
            if not size:
                continue
            if rows + size > schema.PART_ROWS:
                raise ValueError(f"{name}: more than {schema.PART_ROWS} rows")
            _check(block, rows, last)
            first = int(block.timestamp[0]) if first is None else first
            last = int(block.timestamp[-1])
            if block.cost is not None:
                total += cost_ns(block.cost)
            digests.append(block_digest(block))
            table = pa.Table.from_arrays(
                [arrow(getattr(block, name)) for name in arrow_schema.names], schema=writer.schema
            )
            writer.write_table(table, row_group_size=schema.ROW_GROUP_ROWS)
            rows += size
    finally:
        if writer is not None:
            writer.close()
    return PartStats(rows, digests, first, last, total if has_cost else None)


def _encoding(arrow_schema: pa.Schema) -> dict[str, str]:
    return {name: _TUPLE_ENCODING.get(name, "PLAIN") for name in arrow_schema.names}


def join_stats(parts: Iterable[PartStats]) -> PartStats:
    """Add up the parts of a trace in their order; DataError when one begins before its predecessor ends."""
    rows, digests, total = 0, list[bytes](), 0
    first: int | None = None
    last: int | None = None
    has_cost = False
    for part in parts:
        if part.first_timestamp is not None:
            if last is not None and part.first_timestamp < last:
                raise DataError(f"tuple {rows} is earlier than the one before it")
            first = part.first_timestamp if first is None else first
            last = part.last_timestamp
        rows += part.rows
        digests += part.block_digests
        has_cost |= part.total_cost_ns is not None
        total += part.total_cost_ns or 0
    return PartStats(rows, digests, first, last, total if has_cost else None)


def write_keys_part(path: Place | Path, first_id: int, columns: KeyColumns, *, key_bytes: bool = False) -> None:
    """Write one part of `keys/`: the keys with ids first_id, first_id + 1, ...

    `key_bytes` says whether the dictionary has that column, on which all its parts must agree: true when any
    key of the whole dictionary is not valid UTF-8. ValueError when such a key comes without it.
    """
    keys = as_binary(columns.key)
    texts, odd = split_texts(keys)
    if odd is not None and not key_bytes:
        raise ValueError("a key that is not UTF-8 in a dictionary without key_bytes")
    arrow_schema = schema.keys_schema(key_bytes=key_bytes)
    arrays: dict[str, pa.Array] = {
        "key_id": arrow(np.arange(first_id, first_id + len(keys), dtype=np.uint32)),
        "key": texts,
        "key_bytes": pa.nulls(len(keys), pa.large_binary()) if odd is None else odd,
        "count": arrow(np.asarray(columns.count, dtype=np.uint64)),
        "hash_lo": arrow(np.asarray(columns.hash_lo, dtype=np.int64)),
        "hash_hi": arrow(np.asarray(columns.hash_hi, dtype=np.int64)),
    }
    table = pa.Table.from_arrays([arrays[name] for name in arrow_schema.names], schema=arrow_schema)
    encoding = {name: _KEY_ENCODING.get(name, "PLAIN") for name in arrow_schema.names}
    with locate(path).writing() as sink:
        pq.write_table(table, sink, row_group_size=schema.KEY_PART_ROWS, column_encoding=encoding, **_PARQUET)


def write_keys(directory: Place | Path, chunks: Iterable[KeyColumns], *, key_bytes: bool = False) -> int:
    """Write all of `keys/` (made if missing) from the dictionary in id order; return the number of keys."""
    folder = locate(directory)
    written = 0
    binary = (chunk._replace(key=as_binary(chunk.key)) for chunk in chunks)
    for part, pieces in enumerate(_cut(binary, schema.KEY_PART_ROWS)):
        keys, *numbers = zip(*pieces, strict=True)
        columns = KeyColumns(pa.concat_arrays(keys), *map(np.concatenate, numbers))
        write_keys_part(folder / schema.part_name(part), written, columns, key_bytes=key_bytes)
        written += len(columns.key)
    if not written:
        # One part without rows.
        none = np.empty(0, np.int64)
        write_keys_part(
            folder / schema.part_name(0), 0, KeyColumns(as_binary([]), none, none, none), key_bytes=key_bytes
        )
    return written


def write_rejects(path: Place | Path, rejects: pa.Table) -> None:
    """Write one part of `rejects/`: rows that could not be read, with file, line, reason and text."""
    with locate(path).writing() as sink:
        pq.write_table(rejects.select(schema.REJECTS_SCHEMA.names).cast(schema.REJECTS_SCHEMA), sink, **_PARQUET)
