"""A heap of keys for each source: those with the largest values, of which the least can leave.

`value` (int64 or float64), `key` and `last` int64, all [sources, capacity], are heaps with the least value at place 0;
among equals the one whose `last`, the number of its last update, is the lowest. `used` int64[sources] are there.
`places` is a map (`int_map`) from source x keys + key to the key's place. `keys` is the number of keys there are.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.int_map import get, make_int_map, put, remove

__all__ = ["KeyHeap", "cells_taken", "drop_least", "keep", "make_key_heap"]

I64 = NDArray[np.int64]


class KeyHeap(NamedTuple):
    """The heaps of all sources."""

    value: NDArray[np.int64] | NDArray[np.float64]
    key: I64
    last: I64
    used: I64
    places: I64
    keys: int


def cells_taken(sources: int, capacity: int) -> int:
    """Count the cells of 8 bytes that heaps take, at most: three for each key, and eight for the index."""
    return 11 * sources * capacity


def make_key_heap(sources: int, keys: int, capacity: int, dtype: Any) -> KeyHeap:
    """Make empty heaps of up to `capacity` keys, with values of type `dtype`."""
    return KeyHeap(
        value=np.zeros((sources, capacity), dtype=dtype),
        key=np.zeros((sources, capacity), dtype=np.int64),
        last=np.zeros((sources, capacity), dtype=np.int64),
        used=np.zeros(sources, dtype=np.int64),
        places=make_int_map(sources * capacity),
        keys=keys,
    )


@njit(forceinline=True)
def _code(heap: Any, source: Any, key: Any) -> Any:
    return np.int64(source) * heap.keys + np.int64(key)


@njit(forceinline=True)
def _set(heap: Any, source: Any, place: Any, key: Any, value: Any, last: Any) -> None:
    heap.value[source, place] = value
    heap.key[source, place] = key
    heap.last[source, place] = last
    put(heap.places, _code(heap, source, key), place)


@njit(forceinline=True)
def _is_less(heap: Any, source: Any, place: Any, value: Any, last: Any) -> Any:
    """Return whether the entry at a place is before one with this value and last update."""
    here = heap.value[source, place]
    return here < value or (here == value and heap.last[source, place] < last)


@njit(forceinline=True)
def _copy(heap: Any, source: Any, place: Any, origin: Any) -> None:
    _set(heap, source, place, heap.key[source, origin], heap.value[source, origin], heap.last[source, origin])


@njit
def _rise(heap: Any, source: Any, place: Any, key: Any, value: Any, last: Any) -> None:
    """Put an entry at a place or above."""
    while place > 0:
        above = (place - 1) >> 1
        if _is_less(heap, source, above, value, last):
            break
        _copy(heap, source, place, above)
        place = above
    _set(heap, source, place, key, value, last)


@njit
def _sink(heap: Any, source: Any, place: Any, key: Any, value: Any, last: Any) -> None:
    """Put an entry at a place or below."""
    size = heap.used[source]
    child = 2 * place + 1
    while child < size:
        if child + 1 < size and _is_less(heap, source, child + 1, heap.value[source, child], heap.last[source, child]):
            child += 1
        if not _is_less(heap, source, child, value, last):
            break
        _copy(heap, source, place, child)
        place = child
        child = 2 * place + 1
    _set(heap, source, place, key, value, last)


@njit
def keep(heap: Any, source: Any, key: Any, value: Any, last: Any) -> Any:
    """Set the value of a key, which must not fall, at the source's update number `last`; return whether it is there.

    A key that is not there enters. Into a full heap it does so only if its value is above the least, which leaves.
    """
    place = get(heap.places, _code(heap, source, key))
    size = heap.used[source]
    if place >= 0:
        _sink(heap, source, place, key, value, last)
    elif size < heap.value.shape[1]:
        heap.used[source] = size + 1
        _rise(heap, source, size, key, value, last)
    elif value > heap.value[source, 0]:
        remove(heap.places, _code(heap, source, heap.key[source, 0]))
        _sink(heap, source, np.int64(0), key, value, last)
    else:
        return False
    return True


@njit
def drop_least(heap: Any, source: Any) -> None:
    """Remove the key with the least value; there must be one."""
    last = heap.used[source] - 1
    heap.used[source] = last
    remove(heap.places, _code(heap, source, heap.key[source, 0]))
    if last > 0:
        _sink(
            heap,
            source,
            np.int64(0),
            heap.key[source, last],
            heap.value[source, last],
            heap.last[source, last],
        )
