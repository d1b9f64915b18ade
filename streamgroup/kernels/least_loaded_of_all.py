"""The least loaded of all workers, for loads that only grow by one: a pick in constant time.

The workers that have the least load are the bits of a set. Each time one of them gets a tuple its bit goes, and when
none is left the least load is one higher: the set is filled anew by one pass over the workers. The least load rises
at most once for every n tuples, so that a pass costs less than one step a tuple. Within a level bits only go, so the
search for the lowest id goes on where it stopped.

`load` int64[sources, workers] is the caller's, indexed by id; `levels` int64[sources, 4 + 2 words] belongs here: the
least load, how many workers have it, the first word that can have a bit, unused, then the bits, 32 to a word, and in
the same way the live workers. `live` int64[n'] are the ids that may be picked.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit

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
    words = (load.shape[1] + 31) // 32
    levels = np.zeros((load.shape[0], _BITS + 2 * words), dtype=np.int64)
    for worker in live.tolist():
        levels[:, _BITS + words + (worker >> 5)] |= np.int64(1) << (worker & 31)
    for source in range(load.shape[0]):
        call(_fill_anew, levels, load, live, source)
    return levels


@njit(forceinline=True)
def _bits_set(word: Any) -> Any:
    """Count the bits of a 32-bit word."""
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    return (((word + (word >> 4)) & 0x0F0F0F0F) * 0x01010101 & 0xFFFFFFFF) >> 24


@njit
def _fill(levels: Any, load: Any, source: Any, lowest: Any) -> Any:
    """Take `lowest` for the least load of a source, and find the live workers that have it; return how many."""
    count, size = np.int64(0), load.shape[1]
    words = (levels.shape[1] - _BITS) >> 1
    for word in range(words):
        bits, first = np.int64(0), word << 5
        for bit in range(min(32, size - first)):
            bits |= np.int64(load[source, first + bit] == lowest) << bit
        bits &= levels[source, _BITS + words + word]
        levels[source, _BITS + word] = bits
        count += _bits_set(bits)
    levels[source, LEAST] = lowest
    levels[source, LEFT] = count
    levels[source, FROM] = _BITS
    return count


@njit
def _fill_anew(levels: Any, load: Any, live: Any, source: Any) -> None:
    """Find the least load of a source, and the workers that have it."""
    lowest = load[source, live[0]]
    for place in range(1, live.shape[0]):
        lowest = min(lowest, load[source, live[place]])
    _fill(levels, load, source, lowest)


@njit
def _rise(levels: Any, load: Any, live: Any, source: Any) -> None:
    """Go on to the next least load of a source: nearly always it is one higher."""
    if _fill(levels, load, source, levels[source, LEAST] + 1) == 0:
        _fill_anew(levels, load, live, source)


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
        _rise(levels, load, live, source)
