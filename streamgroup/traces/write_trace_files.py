"""Writes traces, in this process and in Spark tasks: same rows, same bytes.

Encodings were measured (Zipf 1.2, two columns, two cores): timestamps as deltas and plain key ids under zstd
take 2.6 bytes a tuple and decode at 85 M tuples/s; plain or dictionary-encoded columns 3.1 bytes at 50 M.
Splitting the bytes of key ids would be faster still (124 M), but old readers cannot open integers stored so.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgroup.base.arrow_numpy import arrow
from streamgroup.base.errors import DataError
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.traces import layout
from streamgroup.traces.costs_in_ns import cost_ns
from streamgroup.traces.fingerprint import block_digest
from streamgroup.traces.hash_and_show_keys import as_binary, split_texts
from streamgroup.traces.tuple_blocks import Columns, KeyColumns, blocks, cut_chunks

__all__ = ["PartStats", "join_stats", "write_keys", "write_keys_part", "write_part", "write_rejects"]

_PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": False,
    "store_schema": False,
}
_TUPLE_ENCODING = {"timestamp": "DELTA_BINARY_PACKED", "parent": "DELTA_BINARY_PACKED"}
_KEY_ENCODING = {"key_id": "DELTA_BINARY_PACKED", "count": "DELTA_BINARY_PACKED"}


class PartStats(NamedTuple):
    """What was written: rows, the sha256 of each block, its span in us (None if empty), its cost in ns."""

    rows: int
    block_digests: list[bytes]
    first_timestamp: int | None
    last_timestamp: int | None
    total_cost_ns: int | None


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


def write_part(path: StoragePath | Path, chunks: Iterable[Columns]) -> PartStats:
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
        for block in blocks(chunks, layout.ROW_GROUP_ROWS):
            size = len(block.timestamp)
            if writer is None:
                has_cost = block.cost is not None
                arrow_schema = layout.tuples_schema(
                    cost=has_cost,
                    value=block.value is not None,
                    weight=block.weight is not None,
                    parent=block.parent is not None,
                )
                writer = pq.ParquetWriter(sink, arrow_schema, column_encoding=_encoding(arrow_schema), **_PARQUET)
            if not size:
                continue
            if rows + size > layout.PART_ROWS:
                raise ValueError(f"{name}: more than {layout.PART_ROWS} rows")
            _check(block, rows, last)
            first = int(block.timestamp[0]) if first is None else first
            last = int(block.timestamp[-1])
            if block.cost is not None:
                total += cost_ns(block.cost)
            digests.append(block_digest(block))
            table = pa.Table.from_arrays(
                [arrow(getattr(block, name)) for name in arrow_schema.names], schema=writer.schema
            )
            writer.write_table(table, row_group_size=layout.ROW_GROUP_ROWS)
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


def write_keys_part(path: StoragePath | Path, first_id: int, columns: KeyColumns, *, key_bytes: bool = False) -> None:
    """Write one part of `keys/`: the keys with ids first_id, first_id + 1, ...

    `key_bytes` says whether the dictionary has that column, on which all its parts must agree: true when any
    key of the whole dictionary is not valid UTF-8. ValueError when such a key comes without it.
    """
    keys = as_binary(columns.key)
    texts, odd = split_texts(keys)
    if odd is not None and not key_bytes:
        raise ValueError("a key that is not UTF-8 in a dictionary without key_bytes")
    arrow_schema = layout.keys_schema(key_bytes=key_bytes)
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
        pq.write_table(table, sink, row_group_size=layout.KEY_PART_ROWS, column_encoding=encoding, **_PARQUET)


def write_keys(directory: StoragePath | Path, chunks: Iterable[KeyColumns], *, key_bytes: bool = False) -> int:
    """Write all of `keys/` (made if missing) from the dictionary in id order; return the number of keys."""
    folder = locate(directory)
    written = 0
    binary = (chunk._replace(key=as_binary(chunk.key)) for chunk in chunks)
    for part, pieces in enumerate(cut_chunks(binary, layout.KEY_PART_ROWS)):
        keys, *numbers = zip(*pieces, strict=True)
        columns = KeyColumns(pa.concat_arrays(keys), *map(np.concatenate, numbers))
        write_keys_part(folder / layout.part_name(part), written, columns, key_bytes=key_bytes)
        written += len(columns.key)
    if not written:
        # One part without rows.
        none = np.empty(0, np.int64)
        write_keys_part(
            folder / layout.part_name(0), 0, KeyColumns(as_binary([]), none, none, none), key_bytes=key_bytes
        )
    return written


def write_rejects(path: StoragePath | Path, rejects: pa.Table) -> None:
    """Write one part of `rejects/`: rows that could not be read, with file, line, reason and text."""
    with locate(path).writing() as sink:
        pq.write_table(rejects.select(layout.REJECTS_SCHEMA.names).cast(layout.REJECTS_SCHEMA), sink, **_PARQUET)
