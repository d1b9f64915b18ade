"""Counts of keys in tables that grow: for each source the keys that it holds, each with a count and one more number.

`rows` int64[sources, capacity, 3] begins, for each source, with its `used` int64[sources] entries in no order: key,
count, and a number of the caller's. `places` is a map (`int_map`) from source x keys + key to the entry's place. `keys`
is the number of keys there are.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.int_map import enlarged, get, make_int_map, put, remove
from streamgroup.kernels.ordered.top_k import sort_descending

__all__ = [
    "COUNT",
    "KEY",
    "NUMBER",
    "KeyCounts",
    "drop",
    "enter",
    "grown",
    "headroom",
    "headroom_after",
    "make_key_counts",
    "place_of",
    "top",
]

I64 = NDArray[np.int64]

KEY, COUNT, NUMBER = range(3)
_ENDLESS = np.int64(1 << 62)
_HINT = "use fewer sources, or another detector"


class KeyCounts(NamedTuple):
    """The tables of all sources."""

    rows: I64
    used: I64
    places: I64
    keys: int


def make_key_counts(sources: int, keys: int, capacity: int, what: str) -> KeyCounts:
    """Make empty tables; UsageError that names `what` if they would be too large."""
    capacity = min(capacity, max(1, keys))
    # Three numbers an entry, and at most four times two for its place in the index.
    fits(11 * sources * capacity, MOST_CELLS, f"{what}: {capacity} keys at each of {sources} sources", _HINT)
    return KeyCounts(
        rows=np.zeros((sources, capacity, 3), dtype=np.int64),
        used=np.zeros(sources, dtype=np.int64),
        places=make_int_map(sources * capacity),
        keys=keys,
    )


def grown(counts: KeyCounts, what: str) -> KeyCounts:
    """Return the same entries in tables of twice the capacity."""
    sources, capacity, _ = counts.rows.shape
    larger = make_key_counts(sources, counts.keys, 2 * capacity, what)
    larger.rows[:, :capacity] = counts.rows
    places = enlarged(counts.places, sources * larger.rows.shape[1])
    return larger._replace(used=counts.used, places=places)


@njit
def headroom(counts: Any) -> Any:
    """Return how many more entries any source has room for; endless if there is room for all keys."""
    capacity = counts.rows.shape[1]
    if capacity >= counts.keys:
        return _ENDLESS
    most = np.int64(0)
    for source in range(counts.used.shape[0]):
        most = max(most, counts.used[source])
    return np.int64(capacity - most)


@njit
def headroom_after(counts: Any, source: Any, room: Any) -> Any:
    """Return the headroom after a source entered keys, if it was `room` before; the other sources are not looked at."""
    capacity = counts.rows.shape[1]
    if capacity >= counts.keys:
        return _ENDLESS
    return min(np.int64(room), np.int64(capacity - counts.used[source]))


@njit(forceinline=True)
def _code(counts: Any, source: Any, key: Any) -> Any:
    return np.int64(source) * counts.keys + np.int64(key)


@njit(forceinline=True)
def place_of(counts: Any, source: Any, key: Any) -> Any:
    """Return the place of a key's entry among its source's, -1 if it has none."""
    return get(counts.places, _code(counts, source, key))


@njit
def enter(counts: Any, source: Any, key: Any, count: Any, number: Any) -> None:
    """Add an entry for a key that has none; there must be room."""
    place = counts.used[source]
    counts.used[source] = place + 1
    counts.rows[source, place, KEY] = key
    counts.rows[source, place, COUNT] = count
    counts.rows[source, place, NUMBER] = number
    put(counts.places, _code(counts, source, key), place)


@njit
def drop(counts: Any, source: Any, place: Any) -> None:
    """Remove the entry at a place; the last one takes the place."""
    last = counts.used[source] - 1
    counts.used[source] = last
    remove(counts.places, _code(counts, source, counts.rows[source, place, KEY]))
    if place != last:
        for column in range(3):
            counts.rows[source, place, column] = counts.rows[source, last, column]
        put(counts.places, _code(counts, source, counts.rows[source, place, KEY]), place)


@njit
def top(counts: Any, source: Any, denominator: Any, least: Any, found: Any) -> Any:
    """Fill `found` with the counts c for which c x denominator >= least, largest first; return how many there are."""
    size = np.int64(0)
    for place in range(counts.used[source]):
        count = counts.rows[source, place, COUNT]
        if count * denominator >= least:
            found[size] = count
            size += 1
    sort_descending(found, size)
    return size
