"""SpaceSaving: the most frequent keys of a stream in a table of fixed size, every update in constant time.

Metwally, Agrawal, El Abbadi, ICDT 2005, in their Stream-Summary form: entries of one count hang together in a bucket,
and the buckets are a list in order of counts. An update moves an entry to the end of the next bucket, so that the
first entry of the first bucket is the least recently updated one among those with the least count: it is the one that
makes room. (The papers leave that tie open.)

The sum of all counts is the number of tuples offered; count - error <= true count <= count; error <= tuples /
capacity.

Entries and buckets are numbered from 1; 0 is none, and bucket 0 is the head of the list of buckets, a ring.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "SpaceSaving",
    "cells_taken",
    "entry_of",
    "error_of",
    "make_space_saving",
    "offer",
    "top_counts",
    "top_estimates",
]

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ENTRY, _HALF, _ONE = np.uint64(0xFFFF_FFFF), np.uint64(32), np.uint64(1)
# Columns of an entry, of a bucket's links and of a table's state.
KEY, BUCKET, BEFORE, AFTER = range(4)
FIRST, LAST, LOWER, HIGHER = range(4)
USED, FREE, BUCKETS = range(3)


class SpaceSaving(NamedTuple):
    """The tables of all sources, with room for `capacity` = entry.shape[1] - 1 keys each.

    `slot` uint64[sources, 2^k]: key x 2^32 + entry, open addressing, 0 where empty; `entry` uint32[sources,
    capacity + 1, 4]: key, bucket, the entries before and after it in its bucket; `error` int64[sources, capacity + 1];
    `links` uint32[sources, capacity + 2, 4]: a bucket's first and last entry, the next lower and higher bucket;
    `counts` int64[sources, capacity + 2], of each bucket; `state` int64[sources, 3]: entries used, first free bucket
    (linked by `links[..., 3]`), buckets ever used.
    """

    slot: NDArray[np.uint64]
    entry: U32
    error: I64
    links: U32
    counts: I64
    state: I64


def _slots(capacity: int) -> int:
    return 1 << max(2, (2 * capacity - 1).bit_length())


def cells_taken(sources: int, capacity: int) -> int:
    """Count the cells of 8 bytes that tables take: the slots, and 6 for each entry with its bucket."""
    return sources * (_slots(capacity) + 6 * capacity)


def make_space_saving(sources: int, capacity: int) -> SpaceSaving:
    """Make empty tables; capacity 1..2^24."""
    return SpaceSaving(
        slot=np.zeros((sources, _slots(capacity)), dtype=np.uint64),
        entry=np.zeros((sources, capacity + 1, 4), dtype=np.uint32),
        error=np.zeros((sources, capacity + 1), dtype=np.int64),
        links=np.zeros((sources, capacity + 2, 4), dtype=np.uint32),
        counts=np.zeros((sources, capacity + 2), dtype=np.int64),
        state=np.zeros((sources, 3), dtype=np.int64),
    )


@njit(forceinline=True)
def _home(slot: Any, key: Any) -> Any:
    """Give the place where the search for a key begins."""
    return (np.uint64(key) * _GOLDEN) >> np.uint64(40) & np.uint64(slot.shape[1] - 1)


@njit(forceinline=True)
def _find(slot: Any, row: Any, key: Any) -> Any:
    """Give the place of a key, or the empty one where it would go."""
    mask = np.uint64(slot.shape[1] - 1)
    place = _home(slot, key)
    word = slot[row, place]
    while word != 0 and word >> _HALF != np.uint64(key):
        place = (place + _ONE) & mask
        word = slot[row, place]
    return place


@njit(forceinline=True)
def entry_of(tables: Any, source: Any, key: Any) -> Any:
    """Give the entry of a key in a source's table, 0 if it has none."""
    row = np.uint64(source)
    return np.int64(tables.slot[row, _find(tables.slot, row, key)] & _ENTRY)


@njit(forceinline=True)
def _forget(slot: Any, row: Any, key: Any) -> None:
    """Take a key out of the places, and move those up that would be cut off from where their search begins."""
    mask = np.uint64(slot.shape[1] - 1)
    hole = _find(slot, row, key)
    place = (hole + _ONE) & mask
    word = slot[row, place]
    while word != 0:
        if (place - _home(slot, word >> _HALF)) & mask >= (place - hole) & mask:
            slot[row, hole] = word
            hole = place
        place = (place + _ONE) & mask
        word = slot[row, place]
    slot[row, hole] = 0


@njit(forceinline=True)
def _new_bucket(tables: Any, row: Any, lower: Any, count: Any) -> Any:
    """Put an empty bucket after bucket `lower`."""
    links, state = tables.links, tables.state
    bucket = np.uint64(state[row, FREE])
    if bucket == 0:
        state[row, BUCKETS] += 1
        bucket = np.uint64(state[row, BUCKETS])
    else:
        state[row, FREE] = links[row, bucket, HIGHER]
    higher = np.uint64(links[row, lower, HIGHER])
    links[row, bucket, LOWER] = lower
    links[row, bucket, HIGHER] = higher
    links[row, lower, HIGHER] = bucket
    links[row, higher, LOWER] = bucket
    links[row, bucket, FIRST] = 0
    links[row, bucket, LAST] = 0
    tables.counts[row, bucket] = count
    return bucket


@njit(forceinline=True)
def _append(tables: Any, row: Any, bucket: Any, one: Any) -> None:
    """Put an entry at the end of a bucket."""
    entry, links = tables.entry, tables.links
    last = np.uint64(links[row, bucket, LAST])
    entry[row, one, BUCKET] = bucket
    entry[row, one, BEFORE] = last
    entry[row, one, AFTER] = 0
    links[row, bucket, LAST] = one
    if last == 0:
        links[row, bucket, FIRST] = one
    else:
        entry[row, last, AFTER] = one


@njit(forceinline=True)
def _increment(tables: Any, row: Any, one: Any) -> Any:
    """Count one more for an entry; return its count."""
    entry, links = tables.entry, tables.links
    bucket = np.uint64(entry[row, one, BUCKET])
    count = tables.counts[row, bucket] + 1
    higher = np.uint64(links[row, bucket, HIGHER])
    # Bucket 0, the head of the ring, has count 0 and is never the right one.
    fits = tables.counts[row, higher] == count
    alone = links[row, bucket, FIRST] == links[row, bucket, LAST]
    if alone and not fits:
        tables.counts[row, bucket] = count
        return count
    before, after = np.uint64(entry[row, one, BEFORE]), np.uint64(entry[row, one, AFTER])
    if not fits:
        higher = _new_bucket(tables, row, bucket, count)
    if alone:
        # Its bucket goes.
        lower = np.uint64(links[row, bucket, LOWER])
        links[row, lower, HIGHER] = higher
        links[row, higher, LOWER] = lower
        links[row, bucket, HIGHER] = tables.state[row, FREE]
        tables.state[row, FREE] = bucket
    else:
        if before == 0:
            links[row, bucket, FIRST] = after
        else:
            entry[row, before, AFTER] = after
        if after == 0:
            links[row, bucket, LAST] = before
        else:
            entry[row, after, BEFORE] = before
    _append(tables, row, higher, one)
    return count


@njit(forceinline=True)
def offer(tables: Any, source: Any, key: Any, replacement: Any) -> Any:
    """Count a tuple of a key; return the key's count, at least the true one.

    Without `replacement` a key that does not fit into a full table is not taken up, and its count is 0.
    """
    row = np.uint64(source)
    slot = tables.slot
    place = _find(slot, row, key)
    one = slot[row, place] & _ENTRY
    if one != 0:
        return _increment(tables, row, one)
    return _offer_new(tables, row, place, key, replacement)


@njit(forceinline=True)
def _offer_new(tables: Any, row: Any, place: Any, key: Any, replacement: Any) -> Any:
    """Take up a key that has no entry; `place` is the empty one where it would go."""
    slot, entry, links, state = tables.slot, tables.entry, tables.links, tables.state
    if state[row, USED] < entry.shape[1] - 1:
        state[row, USED] += 1
        one = np.uint64(state[row, USED])
        slot[row, place] = (np.uint64(key) << _HALF) | one
        entry[row, one, KEY] = key
        bucket = np.uint64(links[row, 0, HIGHER])
        if tables.counts[row, bucket] != 1:
            bucket = _new_bucket(tables, row, np.uint64(0), np.int64(1))
        _append(tables, row, bucket, one)
        return np.int64(1)
    if not replacement:
        return np.int64(0)
    bucket = np.uint64(links[row, 0, HIGHER])
    one = np.uint64(links[row, bucket, FIRST])
    # The new key goes in first, where the search for it has ended; taking out the old one keeps it findable.
    slot[row, place] = (np.uint64(key) << _HALF) | one
    _forget(slot, row, entry[row, one, KEY])
    entry[row, one, KEY] = key
    tables.error[row, one] = tables.counts[row, bucket]
    return _increment(tables, row, one)


@njit(forceinline=True)
def error_of(tables: Any, source: Any, key: Any) -> Any:
    """Give the error of a key's count, 0 if it has no entry."""
    return tables.error[np.uint64(source), np.uint64(entry_of(tables, source, key))]


@njit
def top_counts(tables: Any, source: Any, denominator: Any, least: Any, counts: Any) -> Any:
    """Fill `counts` with the counts c for which c x denominator >= least, largest first; return how many there are."""
    row = np.uint64(source)
    found = 0
    bucket = np.uint64(tables.links[row, 0, LOWER])
    while bucket != 0 and tables.counts[row, bucket] * denominator >= least:
        one = np.uint64(tables.links[row, bucket, FIRST])
        while one != 0:
            counts[found] = tables.counts[row, bucket]
            found += 1
            one = np.uint64(tables.entry[row, one, AFTER])
        bucket = np.uint64(tables.links[row, bucket, LOWER])
    return found


@njit
def top_estimates(tables: Any, source: Any, denominator: Any, least: Any, sign: Any, estimates: Any) -> Any:
    """Fill `estimates` with count + sign x error where that x denominator >= least, largest first; return how many."""
    row = np.uint64(source)
    found = 0
    for one in range(1, tables.state[row, USED] + 1):
        estimate = tables.counts[row, tables.entry[row, one, BUCKET]] + sign * tables.error[row, one]
        if estimate * denominator >= least and estimate > 0:
            place = found
            while place > 0 and estimates[place - 1] < estimate:
                estimates[place] = estimates[place - 1]
                place -= 1
            estimates[place] = estimate
            found += 1
    return found
