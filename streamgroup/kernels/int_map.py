"""A map from numbers to numbers in one array: open addressing with linear probing, and entries that can leave.

`table` int64[slots, 2] holds key + 1 (0: empty) and value; keys are 0..2^62, values not -1. The map does not count its
entries: who fills it keeps at least half of the slots empty.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["ABSENT", "enlarged", "get", "make_int_map", "put", "remove"]

I64 = NDArray[np.int64]

ABSENT = np.int64(-1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_32 = np.uint64(32)


def make_int_map(capacity: int) -> I64:
    """Make an empty map for up to `capacity` entries."""
    return np.zeros((1 << (2 * capacity - 1).bit_length(), 2), dtype=np.int64)


@njit(forceinline=True)
def _home(key: Any, slots: Any) -> Any:
    """Give the slot where the search for a key begins: the upper bits of a multiplicative hash."""
    return np.int64((((np.uint64(key) * _GOLDEN) >> _32) * np.uint64(slots)) >> _32)


@njit(forceinline=True)
def _find(table: Any, key: Any) -> Any:
    """Give the slot of a key, or the empty one where it would go."""
    slots = table.shape[0]
    slot = _home(key, slots)
    while table[np.uint64(slot), 0] != 0 and table[np.uint64(slot), 0] != key + 1:
        slot = (slot + 1) & (slots - 1)
    return np.uint64(slot)


@njit(forceinline=True)
def get(table: Any, key: Any) -> Any:
    """Give a key's value, ABSENT (-1) if it has none."""
    slot = _find(table, key)
    return ABSENT if table[slot, 0] == 0 else table[slot, 1]


@njit
def put(table: Any, key: Any, value: Any) -> Any:
    """Set a key's value; return 1 if the key is new, else 0."""
    slot = _find(table, key)
    new = np.int64(table[slot, 0] == 0)
    table[slot, 0] = key + 1
    table[slot, 1] = value
    return new


@njit
def remove(table: Any, key: Any) -> Any:
    """Take a key out; return 1 if it was there, else 0.

    Entries that would be cut off from where their search begins move up (Knuth, vol. 3, 6.4, algorithm R), so that no
    search ever passes graves.
    """
    mask = table.shape[0] - 1
    hole = np.int64(_find(table, key))
    if table[hole, 0] == 0:
        return np.int64(0)
    slot = hole
    while True:
        slot = (slot + 1) & mask
        if table[slot, 0] == 0:
            break
        if ((slot - _home(table[slot, 0] - 1, table.shape[0])) & mask) >= ((slot - hole) & mask):
            table[hole, 0] = table[slot, 0]
            table[hole, 1] = table[slot, 1]
            hole = slot
    table[hole, 0] = 0
    return np.int64(1)


def enlarged(table: I64, capacity: int) -> I64:
    """Give a map of the same entries with room for `capacity`."""
    larger = make_int_map(capacity)
    call(_copy, table, larger)
    return larger


@njit
def _copy(table: Any, larger: Any) -> None:
    for slot in range(table.shape[0]):
        if table[slot, 0] != 0:
            put(larger, table[slot, 0] - 1, table[slot, 1])
