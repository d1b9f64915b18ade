"""The key dictionary: counts over all segments, ids by frequency, and each segment's way to the ids.

Keys are shared between tasks by ranges of their bytes (buckets). A bucket adds up its keys and puts them in the order
of the dictionary; how many keys of each count the others hold then tells where each of its keys stands among all.
What tasks tell each other lies in the scratch directory; the driver sees a few numbers a task.
"""

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgroup.base.errors import DataError
from streamgroup.ingest.segments import Scratch, Segment, map_array, map_table, write_array, write_table
from streamgroup.ingest.tasks import run_all
from streamgroup.traces.keys import hash_keys, not_utf8
from streamgroup.traces.writer import KeyColumns

__all__ = ["Bucket", "Dictionary", "count_keys", "keys_between", "map_segments"]

# Keys (summed over segments) that one task adds up, about, and what they may take in memory.
BUCKET_KEYS = 1 << 20
BUCKET_BYTES = 256 << 20
# Keys below which buckets, and segments, share a task.
TASK_KEYS = 1 << 18
MAX_IDS = 1 << 32


class Bucket(NamedTuple):
    """A range of keys [low, high) (None: no bound; the null key is in the first) that one task looks after."""

    number: int
    low: bytes | None
    high: bytes | None


class Dictionary(NamedTuple):
    """The dictionary as the driver sees it: buckets, keys, the count of id 0, whether a key is not UTF-8."""

    buckets: list[Bucket]
    keys: int
    top: int
    odd: bool


class _Keys(Sequence[bytes]):
    """An arrow array of bytes as a sequence to bisect."""

    def __init__(self, keys: pa.Array) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: Any) -> Any:
        return self._keys[index].as_py()


def _cut_buckets(segments: list[Segment], tasks: int) -> list[Bucket]:
    """Cut the space of keys so that about the same number of the sampled keys lies in each bucket."""
    samples = sorted({sample for segment in segments for sample in segment.samples})
    keys, taken = (sum(getattr(segment, name) for segment in segments) for name in ("keys", "key_bytes"))
    wanted = max(tasks, keys // BUCKET_KEYS, taken // BUCKET_BYTES)
    step = max(1, len(samples) // wanted)
    borders = [None, *samples[step::step][: wanted - 1], None]
    return [Bucket(number, *pair) for number, pair in enumerate(itertools.pairwise(borders))]


def _bounds(keys: pa.Array, bucket: Bucket) -> tuple[int, int]:
    """Find a bucket's stretch in sorted keys (null first)."""
    nulls = int(keys.null_count)
    view = _Keys(keys.slice(nulls))
    start = 0 if bucket.low is None else nulls + bisect_left(view, bucket.low)
    stop = len(keys) if bucket.high is None else nulls + bisect_left(view, bucket.high)
    return start, stop


def _file(scratch: Scratch, kind: str, number: int) -> Path:
    return scratch.folder(kind) / f"{number:08d}.npy"


def _count_bucket(scratch: Scratch, segments: list[int], bucket: Bucket) -> tuple[int, int, bool]:
    """Add up a bucket's keys over all segments, order and hash them; tells keys, highest count, not UTF-8."""
    slices = []
    for segment in segments:
        table = map_table(scratch.dictionary(segment))
        start, stop = _bounds(table.column("key"), bucket)
        slices.append(table.slice(start, stop - start))
    offsets = np.cumsum([0, *(len(table) for table in slices)])
    encoded = pa.concat_arrays([table.column("key") for table in slices]).dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy()
    counts = np.zeros(len(encoded.dictionary), np.int64)
    np.add.at(counts, codes, np.concatenate([table.column("count").to_numpy() for table in slices]))
    names = encoded.dictionary
    # The null key before others of its count: false is before true.
    both = pa.table({"key": names, "count": pa.array(counts), "named": names.is_valid()})
    sort_keys = [("count", "descending"), ("named", "ascending"), ("key", "ascending")]
    order = pc.sort_indices(both, sort_keys=sort_keys).to_numpy()
    # Where each key of each slice stands in this order; keys that nothing uses any more stand at the end.
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    write_array(_file(scratch, "places", bucket.number), place[codes])
    write_array(_file(scratch, "offsets", bucket.number), offsets)
    order = order[: int(np.count_nonzero(counts))]
    keys = encoded.dictionary.take(pa.array(order)).cast(pa.large_binary())
    low, high = hash_keys(keys)
    columns = {"key": keys, "count": counts[order], "hash_lo": low, "hash_hi": high}
    write_table(scratch.folder("buckets") / f"{bucket.number:08d}.arrow", columns)
    write_array(_file(scratch, "histograms", bucket.number), np.stack(np.unique(counts[order], return_counts=True)))
    return len(order), int(counts[order[0]]) if len(order) else 0, bool(not_utf8(keys))


def _rank_bucket(scratch: Scratch, buckets: int, number: int) -> None:
    """Give each key of a bucket its id: after all of a higher count, and of its count in buckets before."""
    histograms = [map_array(_file(scratch, "histograms", other)) for other in range(buckets)]
    counts, place = np.unique(np.concatenate([histogram[0] for histogram in histograms]), return_inverse=True)
    total = np.zeros(len(counts), np.int64)
    np.add.at(total, place, np.concatenate([histogram[1] for histogram in histograms]))
    base = total.sum() - np.cumsum(total)
    for histogram in histograms[:number]:
        base[np.searchsorted(counts, histogram[0])] += histogram[1]
    own = map_table(scratch.folder("buckets") / f"{number:08d}.arrow").column("count").to_numpy()
    index = np.searchsorted(counts, own)
    new = np.ones(len(own), bool)
    new[1:] = own[1:] != own[:-1]
    starts = np.flatnonzero(new)
    within = np.arange(len(own)) - np.repeat(starts, np.diff(np.append(starts, len(own))))
    write_array(_file(scratch, "ids", number), (base[index] + within).astype(np.uint32))


def count_keys(context: Any, scratch: Scratch, segments: list[Segment], tasks: int) -> Dictionary:
    """Make the dictionary of all segments: ids by (count down, key bytes up, null first), dense from 0."""
    buckets = _cut_buckets(segments, tasks)
    numbers = [segment.number for segment in segments]
    found = run_all(context, partial(_count_bucket, scratch, numbers), buckets)
    keys = sum(keys for keys, _, _ in found)
    if keys > MAX_IDS:
        raise DataError(f"{keys} distinct keys are more than the 2^32 of a trace", "use --sample-keys")
    weights = [keys for keys, _, _ in found]
    run_all(context, partial(_rank_bucket, scratch, len(buckets)), range(len(buckets)), weights, TASK_KEYS)
    return Dictionary(buckets, keys, max(top for _, top, _ in found), any(odd for _, _, odd in found))


def _map_segment(scratch: Scratch, buckets: list[Bucket], job: tuple[int, int]) -> None:
    """Write a segment's key ids by local number."""
    index, segment = job
    places = map_array(scratch.places(segment))
    ids = []
    for bucket in buckets:
        first, last = map_array(_file(scratch, "offsets", bucket.number))[index : index + 2].tolist()
        place = map_array(_file(scratch, "places", bucket.number))[first:last]
        ranked = map_array(_file(scratch, "ids", bucket.number))
        # A key that nothing uses any more has no id, and no tuple asks for it.
        known = place < len(ranked)
        ids.append(np.zeros(len(place), np.uint32))
        ids[-1][known] = ranked[place[known]]
    write_array(scratch.mapping(segment), np.concatenate(ids)[places])


def map_segments(context: Any, scratch: Scratch, segments: list[Segment], dictionary: Dictionary) -> None:
    """Write, for each segment, the key id of each of its local numbers."""
    jobs = list(enumerate(segment.number for segment in segments))
    weights = [segment.keys for segment in segments]
    run_all(context, partial(_map_segment, scratch, dictionary.buckets), jobs, weights, TASK_KEYS)


def keys_between(scratch: Scratch, dictionary: Dictionary, first: int, last: int) -> KeyColumns:
    """Give the keys with ids [first, last): within a bucket ids ascend, so that each gives one stretch."""
    tables, ids = [], []
    for bucket in dictionary.buckets:
        ranked = map_array(_file(scratch, "ids", bucket.number))
        start, stop = np.searchsorted(ranked, [first, last]).tolist()
        table = map_table(scratch.folder("buckets") / f"{bucket.number:08d}.arrow")
        tables.append(table.slice(start, stop - start))
        ids.append(ranked[start:stop])
    order = np.argsort(np.concatenate(ids))
    whole = pa.Table.from_batches(tables).take(pa.array(order)).combine_chunks()
    columns = (whole.column(name).to_numpy() for name in ("count", "hash_lo", "hash_hi"))
    return KeyColumns(whole.column("key"), *columns)
