"""Reads the key dictionary of a trace: ids, keys, counts and hashes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.base.arrow_numpy import numbers
from streamgroup.base.errors import DataError
from streamgroup.traces.hash_and_show_keys import as_binary, hash_keys
from streamgroup.traces.read_parts import Part, read_part

__all__ = [
    "Dictionary",
    "KeyTable",
    "hashes",
    "in_id_order",
    "iterate_keys",
    "key_chunks",
    "load_table",
    "lookup",
    "packed",
    "repeated_keys",
]

# Keys that are Python objects at a time.
_AT_ONCE = 1 << 16


class Dictionary(NamedTuple):
    """Counts and hashes (h1 and h2) of the keys by key id; read-only."""

    count: NDArray[np.int64]  # type: ignore[assignment]
    hash_lo: NDArray[np.int64]
    hash_hi: NDArray[np.int64]


class KeyTable(NamedTuple):
    """The dictionary in id order. `sorted_rows`: the files have that order too; hashes None if absent."""

    count: NDArray[np.int64]  # type: ignore[assignment]
    hash_lo: NDArray[np.int64] | None
    hash_hi: NDArray[np.int64] | None
    sorted_rows: bool


def _integers(table: pa.Table, part: Part, name: str) -> NDArray[Any]:
    column = table.column(name)
    if column.null_count:
        raise DataError(f"{part.label}: a row has no {name}", "every key needs its id and its count")
    array = numbers(column)
    if array.dtype == np.uint64 and len(array) and array.max() > np.uint64(2**63 - 1):
        raise DataError(f"{part.label}: {name} {array.max()} is too large")
    values = array.astype(np.int64, copy=False)
    if name in ("key_id", "count") and len(values) and values.min() < 0:
        raise DataError(f"{part.label}: {name} {values.min()} is negative")
    return values


def load_table(parts: Sequence[Part]) -> KeyTable:
    """Read ids, counts and hashes of the whole dictionary; DataError if the ids are not 0..K-1, each once."""
    with_hashes = all("hash_lo" in part.schema.names for part in parts)
    names = ["key_id", "count", *(["hash_lo", "hash_hi"] if with_hashes else [])]
    columns: dict[str, list[NDArray[np.int64]]] = {name: [] for name in names}
    for part in parts:
        table = read_part(part, None, names)
        for name in names:
            columns[name].append(_integers(table, part, name))
    arrays = {name: np.concatenate([np.empty(0, np.int64), *found]) for name, found in columns.items()}
    ids = arrays.pop("key_id")
    expected = np.arange(len(ids), dtype=np.int64)
    in_order = bool(np.array_equal(ids, expected))
    if not in_order:
        order = np.argsort(ids, kind="stable")
        wrong = np.flatnonzero(ids[order] != expected)
        if len(wrong):
            at = int(wrong[0])
            found = int(ids[order][at])
            what = f"key_id {found} twice" if found < at else f"no key_id {at}"
            raise DataError(f"keys: {what}; the ids must be 0 to {len(ids) - 1}, each once", "number them anew")
        arrays = {name: array[order] for name, array in arrays.items()}
    for array in arrays.values():
        array.flags.writeable = False
    return KeyTable(arrays["count"], arrays.get("hash_lo"), arrays.get("hash_hi"), in_order)


def key_chunks(parts: Sequence[Part]) -> Iterator[tuple[NDArray[np.int64], pa.LargeBinaryArray]]:
    """Yield (key ids, key bytes) row group by row group, in file order; null is the null key."""
    for part in parts:
        names = [name for name in ("key_id", "key", "key_bytes") if name in part.schema.names]
        for group in range(part.metadata.num_row_groups):
            table = read_part(part, [group], names)
            yield _integers(table, part, "key_id"), _bytes(table)


def iterate_keys(parts: Sequence[Part]) -> Iterator[bytes | None]:
    """Yield all keys in file order, which is that of the ids in a trace of this program's; None is the null key."""
    for _, keys in key_chunks(parts):
        for start in range(0, len(keys), _AT_ONCE):
            yield from keys.slice(start, _AT_ONCE).to_pylist()


def _bytes(table: pa.Table) -> pa.LargeBinaryArray:
    keys = _flat(table.column("key"))
    if "key_bytes" not in table.column_names:
        return keys
    import pyarrow.compute as pc  # its import takes longer than opening a trace, and few traces need it

    return pc.coalesce(_flat(table.column("key_bytes")), keys)


def _flat(column: pa.ChunkedArray) -> pa.LargeBinaryArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return as_binary(column)


def lookup(parts: Sequence[Part], ids: Sequence[int]) -> list[bytes | None]:
    """Return the bytes of some keys (None for the null key); reads the dictionary in pieces, until all are found.

    KeyError for ids that are not there.
    """
    distinct, which = np.unique(np.asarray(ids, dtype=np.int64), return_inverse=True)
    found: list[bytes | None] = [None] * len(distinct)
    left = len(distinct)
    for have, keys in key_chunks(parts):
        if not left:
            break
        place = np.minimum(np.searchsorted(distinct, have), len(distinct) - 1)
        rows = np.flatnonzero(distinct[place] == have)
        for at, value in zip(place[rows].tolist(), _values(keys, rows), strict=True):
            found[at] = value
        left -= len(rows)
    if left:
        raise KeyError(f"{left} of {len(distinct)} ids are not in the dictionary")
    return [found[at] for at in which.tolist()]


def _values(keys: pa.LargeBinaryArray, rows: NDArray[np.int64]) -> Iterator[bytes | None]:
    """Yield the keys of some rows; by their offsets, as Arrow makes one object after the other slowly."""
    _, offsets, data = keys.buffers()
    begin = np.frombuffer(offsets, np.int64, len(keys) + 1, 8 * keys.offset)
    whole = memoryview(b"" if data is None else data)
    missing = keys.is_null().to_numpy(zero_copy_only=False)[rows] if keys.null_count else np.zeros(len(rows), bool)
    for first, last, null in zip(begin[rows].tolist(), begin[rows + 1].tolist(), missing.tolist(), strict=True):
        yield None if null else bytes(whole[first:last])


def hashes(parts: Sequence[Part], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute (hash_lo, hash_hi) of all keys by id, for a dictionary that does not hold them."""
    lo, hi = np.empty(count, np.int64), np.empty(count, np.int64)
    for ids, keys in key_chunks(parts):
        lo[ids], hi[ids] = hash_keys(keys)
    return lo, hi


def in_id_order(parts: Sequence[Part], table: KeyTable) -> Iterator[bytes | None]:
    """Yield all keys by ascending id; a dictionary whose rows are not in that order is held in memory."""
    if table.sorted_rows:
        yield from iterate_keys(parts)
        return
    chunks = list(key_chunks(parts))
    order = np.argsort(np.concatenate([ids for ids, _ in chunks]), kind="stable")
    for keys in pa.chunked_array([keys for _, keys in chunks]).take(pa.array(order)).chunks:
        yield from keys.to_pylist()


def packed(parts: Sequence[Part], table: KeyTable) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
    """Return the bytes of all keys by id, joined: data uint8[...], start int64[K + 1], the id of the null key or -1.

    Nothing becomes a Python object on the way. The null key has no bytes.
    """
    chunks = list(key_chunks(parts))
    if not table.sorted_rows:
        order = np.argsort(np.concatenate([ids for ids, _ in chunks]), kind="stable")
        keys = pa.chunked_array([keys for _, keys in chunks]).take(pa.array(order)).combine_chunks()
        chunks = [(order, keys)]
    data, start, null, total = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)], -1, 0
    count = 0
    for _, keys in chunks:
        if keys.null_count:
            valid = np.unpackbits(np.frombuffer(keys.buffers()[0], np.uint8), bitorder="little")
            null = count + int(np.argmin(valid[keys.offset : keys.offset + len(keys)]))
            keys = keys.fill_null(b"")
        offsets = np.frombuffer(keys.buffers()[1], np.int64, len(keys) + 1, 8 * keys.offset)
        if offsets[-1] > offsets[0]:
            data.append(np.frombuffer(keys.buffers()[2], np.uint8, int(offsets[-1] - offsets[0]), int(offsets[0])))
        start.append(offsets[1:] - offsets[0] + total)
        total += int(offsets[-1] - offsets[0])
        count += len(keys)
    return np.concatenate(data), np.concatenate(start), null


def repeated_keys(parts: Sequence[Part]) -> list[bytes | None]:
    """Return the keys that stand in the dictionary more than once (at most ten of them)."""
    chunks = [keys for _, keys in key_chunks(parts)]
    if sum(map(len, chunks)) < 2:
        return []
    counted = pa.chunked_array(chunks).value_counts()
    twice = np.flatnonzero(counted.field("counts").to_numpy() > 1)
    return [counted.field("values")[row].as_py() for row in twice[:10].tolist()]
