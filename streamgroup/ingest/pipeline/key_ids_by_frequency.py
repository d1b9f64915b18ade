"""Builds the key dictionary: counts over all segments, ids by frequency, and the ids for the keys of each segment.

Keys are shared between tasks by ranges of their bytes. A range adds up its keys and sorts them in the order of the
dictionary; the numbers of keys of each count in all ranges then give the ids.
"""

import itertools
import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.ingest.pipeline.arrow_blocks import Row, block, rows_of
from streamgroup.ingest.pipeline.tuple_segments import Segment, check_unchanged_segment
from streamgroup.ingest.runners.protocol import Frame
from streamgroup.traces.hash_and_show_keys import hash_keys, not_utf8

__all__ = ["Dictionary", "Ids", "assign_ids", "choose_key_ranges", "count_keys", "send_ids", "send_keys_to_ranges"]

I64 = NDArray[np.int64]

# Keys (summed over segments) that one task adds up, about, and their maximum size in memory.
RANGE_KEYS = 1 << 20
RANGE_BYTES = 256 << 20
# Keys of a block of a range.
BLOCK_KEYS = 1 << 17
MAX_IDS = 1 << 32


class Ids(NamedTuple):
    """Ids of the keys of a range, which are sorted by their count: int64[distinct counts] arrays.

    The first `upto[0]` keys have ids from `start[0]` on, those up to `upto[1]` ids from `start[1]` on, and so on.
    `before` is the number of keys in the ranges before.
    """

    upto: I64
    start: I64
    before: int

    def of(self, rank: Any) -> NDArray[np.uint32]:
        """Return the id of the keys at some places of the range."""
        rank = np.asarray(rank, np.int64)
        index = np.searchsorted(self.upto, rank, "right")
        begin = np.concatenate([[0], self.upto[:-1]])
        ids: NDArray[np.uint32] = (self.start[index] + rank - begin[index]).astype(np.uint32)
        return ids


class Dictionary(NamedTuple):
    """The dictionary as the driver sees it: keys, the count of id 0, whether a key is not UTF-8, ids by range."""

    keys: int
    top: int
    not_text: bool
    ids: list[Ids]


class _Keys(Sequence[bytes]):
    """An arrow array of bytes as a sequence to bisect."""

    def __init__(self, keys: pa.Array) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: Any) -> Any:
        return self._keys[index].as_py()


def choose_key_ranges(segments: list[Segment], tasks: int) -> list[bytes]:
    """Choose borders between ranges that have about the same number of the sampled keys."""
    samples = sorted({sample for segment in segments for sample in segment.samples})
    keys, taken = (sum(getattr(segment, name) for segment in segments) for name in ("keys", "key_bytes"))
    wanted = max(tasks, keys // RANGE_KEYS, taken // RANGE_BYTES)
    step = max(1, len(samples) // wanted)
    return samples[step::step][: wanted - 1]


def send_keys_to_ranges(frame: Frame, segments: list[Segment], borders: list[bytes]) -> Frame:
    """Send the keys of each segment's dictionary to their ranges."""
    digests = {segment.number: segment.digest for segment in segments}
    return frame.of("dictionary").map(partial(_send_keys, digests, borders)).exchange(len(borders) + 1)


def _send_keys(
    digests: dict[int, int], borders: list[bytes], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for row in rows_of(batches):
        check_unchanged_segment(row, digests)
        columns = row.columns()
        # The null key is first, so that it is in the first range.
        nulls = columns.column("key").null_count
        view = _Keys(columns.column("key").slice(nulls))
        places = [0, *(nulls + bisect_left(view, border) for border in borders), columns.num_rows]
        for number, (start, stop) in enumerate(itertools.pairwise(places)):
            if start < stop:
                yield block("keys", _slice(columns, start, stop), to=number, segment=row.segment)


def _slice(columns: pa.RecordBatch, start: int, stop: int) -> dict[str, Any]:
    cut = columns.slice(start, stop - start)
    return dict(zip(cut.schema.names, cut.columns, strict=True))


def count_keys(frame: Frame, *, by_bytes: bool) -> Frame:
    """Add up the keys of each range over all segments.

    Gives blocks of kind `table` (keys and counts, in the order of the dictionary), `counts` (how many keys have each
    count, descending), and `ranks`: the place in this order of each key that a segment has in the range, if asked for
    also that in the order of bytes.
    """
    return frame.map(partial(_count, by_bytes))


def _count(by_bytes: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sorted(rows_of(batches), key=lambda row: (row.to, row.segment))
    for number, group in itertools.groupby(rows, key=lambda row: row.to):
        yield from _count_range(by_bytes, number, list(group))


def _count_range(by_bytes: bool, number: int, rows: list[Row]) -> Iterator[pa.RecordBatch]:
    tables = [row.columns() for row in rows]
    encoded = pa.concat_arrays([table.column("key") for table in tables]).dictionary_encode(null_encoding="encode")
    code = encoded.indices.to_numpy()
    counts = np.zeros(len(encoded.dictionary), np.int64)
    np.add.at(counts, code, np.concatenate([table.column("count").to_numpy() for table in tables]))
    keys = encoded.dictionary
    sorted_keys = pc.array_sort_indices(keys, null_placement="at_start").to_numpy()
    # The null key comes before others of its count, keys of one count in the order of their bytes.
    order = sorted_keys[np.argsort(-counts[sorted_keys], kind="stable")]
    ranks = {"rank": _inverse(order)[code]} | ({"place": _inverse(sorted_keys)[code]} if by_bytes else {})
    at = 0
    for row, table in zip(rows, tables, strict=True):
        own = {name: column[at : at + table.num_rows] for name, column in ranks.items()}
        yield block("ranks", own, to=number, segment=row.segment)
        at += table.num_rows
    ordered, counts = keys.take(pa.array(order)), counts[order]
    not_text = bool(not_utf8(ordered.cast(pa.large_binary())))
    value, size = np.unique(-counts, return_counts=True)
    stats = json.dumps([len(counts), not_text])
    yield block("counts", {"count": -value, "keys": size}, to=number, stats=stats)
    for start in range(0, len(ordered), BLOCK_KEYS):
        part = ordered.slice(start, BLOCK_KEYS)
        low, high = hash_keys(part)
        columns = {"key": part, "count": counts[start : start + BLOCK_KEYS], "hash_lo": low, "hash_hi": high}
        yield block("table", columns, to=number, place=start)


def _inverse(order: Any) -> NDArray[np.uint32]:
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    return place


def assign_ids(frame: Frame) -> Dictionary:
    """Find the ids of all ranges from their counts: by count descending, then by range; dense from 0."""
    rows = sorted(frame.stats("counts"), key=lambda row: row.to)
    stats = [json.loads(row.stats or "") for row in rows]
    keys = sum(number for number, _ in stats)
    if keys > MAX_IDS:
        raise DataError(f"{keys} distinct keys are more than the 2^32 of a trace", "use --sample-keys")
    found = [tuple(column.to_numpy() for column in row.columns().columns) for row in rows]
    counts, index = np.unique(np.concatenate([-count for count, _ in found]), return_inverse=True)
    total = np.zeros(len(counts), np.int64)
    np.add.at(total, index, np.concatenate([size for _, size in found]))
    # The next id of each count.
    free = np.cumsum(total) - total
    ids: dict[int, Ids] = {}
    before = 0
    for row, (count, size) in zip(rows, found, strict=True):
        at = np.searchsorted(counts, -count)
        ids[row.to] = Ids(np.cumsum(size), free[at], before)
        free[at] += size
        before += int(size.sum())
    none = Ids(np.zeros(0, np.int64), np.zeros(0, np.int64), 0)
    whole = [ids.get(number, none) for number in range(max(ids) + 1)]
    return Dictionary(keys, int(-counts[0]), any(not_text for _, not_text in stats), whole)


def send_ids(frame: Frame, ids: list[Ids], group_of: dict[int, int]) -> Frame:
    """Turn the ranks of segments into blocks of kind `ids`, for the group of each segment.

    Where there is a place in the order of bytes, `by_bytes` is that among all keys.
    """
    return frame.of("ranks").map(partial(_send_ids, ids, group_of))


def _send_ids(ids: list[Ids], group_of: dict[int, int], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for row in rows_of(batches):
        columns, own = row.columns(), ids[row.to]
        given: dict[str, Any] = {"id": own.of(columns.column("rank").to_numpy())}
        if "place" in columns.schema.names:
            given["by_bytes"] = (own.before + columns.column("place").to_numpy().astype(np.int64)).astype(np.uint32)
        yield block("ids", given, to=group_of[row.segment], segment=row.segment, place=row.to)
