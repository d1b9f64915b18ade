"""A counting Bloom filter: which keys are in a set that keys enter and leave, in a fixed number of small counters.

Fan, Cao, Almeida, Broder, IEEE/ACM ToN 2000. A counter holds 0..15, as four bits would. One that has reached 15 stays
so: it no longer knows how many keys it counts, and taking one away could forget the others.

With one row and a column for each key, the filter is an exact set.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.hash_placement import sketch_columns

__all__ = ["FULL", "add", "has", "own_columns", "remove", "shared_columns"]

# The value at which a counter stays.
FULL = 15


def shared_columns(hash_lo: NDArray[np.int64], hashes: int, counters: int) -> NDArray[np.uint32]:
    """Return the counters of each key, uint32[keys, hashes], each below `counters`; those of a key may coincide."""
    return np.stack([sketch_columns(hash_lo, row, counters).astype(np.uint32) for row in range(hashes)], axis=1)


def own_columns(keys: int) -> NDArray[np.uint32]:
    """Return a counter of its own for each key, uint32[keys, 1]: the filter is a set then."""
    return np.arange(keys, dtype=np.uint32)[:, None].copy()


@njit(forceinline=True)
def has(counters: Any, columns: Any, key: Any) -> Any:
    """Return (1 or 0) whether all counters of a key are above 0: it is in, or it is taken for one that is.

    All of them are read: whether the first is 0 is not predictable, and a wrong guess costs more than the others do.
    """
    row = np.uint64(key)
    found = np.int64(1)
    for one in range(columns.shape[1]):
        found &= np.int64(counters[columns[row, np.uint64(one)]] != 0)
    return found


@njit(forceinline=True)
def add(counters: Any, columns: Any, key: Any) -> None:
    """Count a key in each of its counters, in one that occurs twice, twice."""
    for one in range(columns.shape[1]):
        place = columns[key, one]
        if counters[place] < FULL:
            counters[place] += 1


@njit(forceinline=True)
def remove(counters: Any, columns: Any, key: Any) -> None:
    """Take a key that was added out of each of its counters that still knows its count."""
    for one in range(columns.shape[1]):
        place = columns[key, one]
        if 0 < counters[place] < FULL:
            counters[place] -= 1
