"""The least loaded of all workers, for loads that only grow by one: a pick in constant time.

The workers that have the least load are the bits of a set. Each time one of them gets a tuple its bit goes, and when
none is left the least load is one higher: the set is filled anew by one pass over the workers. The least load rises
at most once for every n tuples, so that a pass costs less than one step a tuple. Within a level bits only go, so the
search for the lowest id goes on where it stopped.

`load` int64[sources, workers] is the caller's, indexed by id; `levels` int64[sources, 4 + words] belongs here: the
least load, how many workers have it, the first word that can have a bit, unused, then the bits, 32 to a word. `live`
int64[n'] are the ids that may be picked.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.base.plain import call

__all__ = ["LEAST", "add_one", "least", "make_levels"]

I64 = NDArray[np.int64]

LEAST, LEFT, FROM = 0, 1, 2
_BITS = 4
# Lowest set bit of a 32-bit word by de Bruijn's sequence: no loop, and the same interpreted.
_DE_BRUIJN = np.int64(0x077CB531)
_PLACE = np.zeros(32, dtype=np.int64)
for _bit in range(32):
    _PLACE[((0x077CB531 << _bit) & 0xFFFFFFFF) >> 27] = _bit
_PLACE.flags.writeable = False


def make_levels(load: I64, live: I64) -> I64:
    """Make the sets of all sources for loads as they are: `load` int64[sources, N], `live` ids below N, ascending."""
    levels = np.zeros((load.shape[0], _BITS + (load.shape[1] + 31) // 32), dtype=np.int64)
    for source in range(load.shape[0]):
        call(_fill, levels, load, live, source)
    return levels


@njit
def _fill(levels: Any, load: Any, live: Any, source: Any) -> None:
    """Find the least load of a source and the workers that have it."""
    lowest = load[source, live[0]]
    for place in range(1, live.shape[0]):
        lowest = min(lowest, load[source, live[place]])
    for word in range(_BITS, levels.shape[1]):
        levels[source, word] = 0
    count = np.int64(0)
    for place in range(live.shape[0]):
        worker = live[place]
        if load[source, worker] == lowest:
            levels[source, _BITS + (worker >> 5)] |= np.int64(1) << (worker & 31)
            count += 1
    levels[source, LEAST] = lowest
    levels[source, LEFT] = count
    levels[source, FROM] = _BITS


@njit(forceinline=True)
def least(levels: Any, source: Any) -> Any:
    """Give the live worker with the least load of a source, ties to the lowest id."""
    row = np.uint64(source)
    word = levels[row, FROM]
    while levels[row, np.uint64(word)] == 0:
        word += 1
    levels[row, FROM] = word
    bits = levels[row, np.uint64(word)]
    lowest = ((bits & -bits) * _DE_BRUIJN) & np.int64(0xFFFFFFFF)
    return ((word - _BITS) << 5) + _PLACE[np.uint64(lowest >> 27)]


@njit(forceinline=True)
def add_one(levels: Any, load: Any, live: Any, source: Any, worker: Any) -> None:
    """Count one more tuple of a source for a live worker."""
    row, column = np.uint64(source), np.uint64(worker)
    before = load[row, column]
    load[row, column] = before + 1
    # Without a branch: whether the worker is one of the least loaded is not predictable.
    had = np.int64(before == levels[row, LEAST])
    levels[row, np.uint64(_BITS + (np.int64(worker) >> 5))] ^= had << (np.int64(worker) & 31)
    left = levels[row, LEFT] - had
    levels[row, LEFT] = left
    if left == 0:
        _fill(levels, load, live, source)
