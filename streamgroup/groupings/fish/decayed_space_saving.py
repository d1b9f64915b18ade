"""SpaceSaving whose counts decay at the end of each epoch (000, Algorithm 1), one table for each source.

Counts are kept in units of a step that grows instead: an epoch's end divides the step by alpha, which is to multiply
all counts by alpha and costs nothing. A count is `stored / step`.

The order of eviction is a heap over (stored, last update) as they were when an entry was last moved. An update writes
the entry alone; the heap is mended at its root, when the smallest entry is asked for. What an entry stores only
grows, so a root that is up to date is the smallest of all.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = [
    "BEFORE",
    "EPOCHS",
    "IN_EPOCH",
    "KEY",
    "LARGEST_CAPACITY",
    "LAST",
    "SIZE",
    "STEP",
    "TOP",
    "TOTAL",
    "WIDTH",
    "DecayedTable",
    "cells_taken",
    "checked_alpha",
    "count_tuple",
    "make_table",
    "slot_of",
]

# Columns of `info`, of `sums`, and of `numbers`.
KEY, LAST, WIDTH = range(3)
TOTAL, STEP, BEFORE, TOP = range(4)
IN_EPOCH, UPDATES, SIZE, EPOCHS = range(4)

# An entry under this share of a tuple leaves at an epoch's end.
_LEAST = 1e-6
# Steps that large are scaled back, by a power of two, which is exact.
_LARGE = 2.0**400
_BACK = 2.0**-400
# In the heap, an entry is `updates << 20 | slot`: among equal counts, the one that was updated first is the smallest.
_SLOT_BITS = 20
LARGEST_CAPACITY = 1 << _SLOT_BITS
# Under this, one epoch's decay would leave the range of floating-point numbers.
_LEAST_ALPHA = 1e-100
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class DecayedTable(NamedTuple):
    """For each source at most K entries in slots 0..K-1; K = `stored.shape[1]`.

    `stored` and `error` float64[sources, K] are in units of `sums[source, STEP]`; `info` int64[sources, K, 3] has an
    entry's key, the number of the update that was its last, and a number of the grouping's own that starts at 0 with
    the entry (WIDTH). `finder` int32[sources, 2^b >= 4K] finds the slot of a key: open addressing, -1 is empty.
    `level` float64 and `who` int64[sources, K + 2] are the heap, its root at 1. `free` int32[sources, K] begins with
    the free slots. `sums` float64[sources, 4]: the decayed total S, the step, S after the last epoch's end, the largest
    `stored`. `numbers` int64[sources, 4]: tuples of the epoch, updates ever, entries, epochs that ended. `shift` is
    64 - b.
    """

    finder: NDArray[np.int32]
    stored: NDArray[np.float64]
    error: NDArray[np.float64]
    info: NDArray[np.int64]
    level: NDArray[np.float64]
    who: NDArray[np.int64]
    free: NDArray[np.int32]
    sums: NDArray[np.float64]
    numbers: NDArray[np.int64]
    alpha: float
    epoch: int
    shift: int


def checked_alpha(alpha: float) -> float:
    """Return a rate of decay that tables can take, or raise ValueError."""
    if 0 < alpha < _LEAST_ALPHA:
        raise ValueError(f"alpha must be 0 or at least {_LEAST_ALPHA}")
    return alpha


def _bits(capacity: int) -> int:
    return (4 * capacity - 1).bit_length()


def cells_taken(sources: int, capacity: int) -> int:
    """Count the cells of 8 bytes that tables take: half of one for each place of the index, 7 1/2 for each entry."""
    return sources * ((1 << _bits(capacity)) + 15 * capacity) // 2


def make_table(sources: int, capacity: int, alpha: float, epoch: int) -> DecayedTable:
    """Make empty tables of `capacity` entries (1 to 2^20) that decay by `alpha` (0 to 1) every `epoch` tuples."""
    bits = _bits(capacity)
    sums = np.zeros((sources, 4))
    sums[:, STEP] = 1.0
    return DecayedTable(
        finder=np.full((sources, 1 << bits), -1, dtype=np.int32),
        stored=np.zeros((sources, capacity)),
        error=np.zeros((sources, capacity)),
        info=np.zeros((sources, capacity, 3), dtype=np.int64),
        level=np.full((sources, capacity + 2), np.inf),
        who=np.zeros((sources, capacity + 2), dtype=np.int64),
        free=np.tile(np.arange(capacity - 1, -1, -1, dtype=np.int32), (sources, 1)),
        sums=sums,
        numbers=np.zeros((sources, 4), dtype=np.int64),
        alpha=float(alpha),
        epoch=epoch,
        shift=64 - bits,
    )


@njit(forceinline=True)
def _home(table: Any, key: Any) -> Any:
    return (np.uint64(key) * _GOLDEN) >> np.uint64(table.shift)


@njit(forceinline=True)
def _place_of(table: Any, source: Any, key: Any) -> Any:
    """Return the place of a key in the index, or the empty one where it would go."""
    mask = np.uint64(table.finder.shape[1] - 1)
    row, place = np.uint64(source), _home(table, key)
    slot = table.finder[row, place]
    while slot >= 0 and table.info[row, np.uint64(slot), KEY] != key:
        place = (place + np.uint64(1)) & mask
        slot = table.finder[row, place]
    return place


@njit(forceinline=True)
def slot_of(table: Any, source: Any, key: Any) -> Any:
    """Return the slot of a key, -1 when the source does not track it."""
    return np.int64(table.finder[np.uint64(source), _place_of(table, source, key)])


@njit(forceinline=True)
def _unlist(table: Any, source: Any, key: Any) -> None:
    """Take a key out of the index; those behind it that may move up do."""
    mask = np.uint64(table.finder.shape[1] - 1)
    row, hole = np.uint64(source), _place_of(table, source, key)
    place = hole
    while True:
        place = (place + np.uint64(1)) & mask
        slot = table.finder[row, place]
        if slot < 0:
            break
        home = _home(table, table.info[row, np.uint64(slot), KEY])
        if ((place - home) & mask) >= ((place - hole) & mask):
            table.finder[row, hole] = slot
            hole = place
    table.finder[row, hole] = -1


@njit(forceinline=True)
def _rise(table: Any, source: Any, place: Any, level: Any, who: Any) -> None:
    """Put an entry into the heap at `place`, or above."""
    levels, names, row = table.level, table.who, np.uint64(source)
    while place > np.uint64(1):
        above = place >> np.uint64(1)
        if levels[row, above] < level or (levels[row, above] == level and names[row, above] < who):
            break
        levels[row, place] = levels[row, above]
        names[row, place] = names[row, above]
        place = above
    levels[row, place] = level
    names[row, place] = who


@njit(forceinline=True)
def _replace_root(table: Any, source: Any, size: Any, level: Any, who: Any) -> None:
    """Put an entry in the place of the heap's root: the hole sinks to the bottom, whence the entry rises."""
    levels, names, row = table.level, table.who, np.uint64(source)
    hole, child, end = np.uint64(1), np.uint64(2), np.uint64(size)
    while child <= end:
        other = child + np.uint64(1)
        # The place behind the last is infinite. Written without a branch that no processor could predict.
        smaller = (levels[row, other] < levels[row, child]) | (
            (levels[row, other] == levels[row, child]) & (names[row, other] < names[row, child])
        )
        child += np.uint64(smaller)
        levels[row, hole] = levels[row, child]
        names[row, hole] = names[row, child]
        hole = child
        child = hole << np.uint64(1)
    _rise(table, source, hole, level, who)


@njit(forceinline=True)
def _least(table: Any, source: Any, size: Any) -> Any:
    """Bring the smallest entry to the heap's root and give its slot."""
    row = np.uint64(source)
    slot = np.uint64(table.who[row, 1] & (LARGEST_CAPACITY - 1))
    while table.level[row, 1] != table.stored[row, slot]:
        who = (table.info[row, slot, LAST] << _SLOT_BITS) | np.int64(slot)
        _replace_root(table, source, size, table.stored[row, slot], who)
        slot = np.uint64(table.who[row, 1] & (LARGEST_CAPACITY - 1))
    return slot


@njit
def _remove_least(table: Any, source: Any, slot: Any) -> None:
    """Remove the entry at the heap's root."""
    size = table.numbers[source, SIZE]
    _unlist(table, source, table.info[source, slot, KEY])
    level, who = table.level[source, size], table.who[source, size]
    table.level[source, size] = np.inf
    table.numbers[source, SIZE] = size - 1
    table.free[source, table.free.shape[1] - size] = slot
    if size > 1:
        _replace_root(table, source, size - 1, level, who)


@njit
def _clear(table: Any, source: Any) -> None:
    while table.numbers[source, SIZE] > 0:
        size = table.numbers[source, SIZE]
        slot = table.who[source, size] & (LARGEST_CAPACITY - 1)
        _unlist(table, source, table.info[source, slot, KEY])
        table.level[source, size] = np.inf
        table.free[source, table.free.shape[1] - size] = slot
        table.numbers[source, SIZE] = size - 1


@njit
def _scale_back(table: Any, source: Any) -> None:
    for slot in range(table.stored.shape[1]):
        table.stored[source, slot] *= _BACK
        table.error[source, slot] *= _BACK
    for place in range(1, table.numbers[source, SIZE] + 1):
        table.level[source, place] *= _BACK
    table.sums[source, TOTAL] *= _BACK
    table.sums[source, STEP] *= _BACK
    table.sums[source, TOP] *= _BACK


@njit
def _end_epoch(table: Any, source: Any) -> None:
    """Decay everything by alpha; what is next to nothing leaves, the smallest first."""
    sums = table.sums
    table.numbers[source, IN_EPOCH] = 0
    table.numbers[source, EPOCHS] += 1
    if table.alpha == 0.0:
        _clear(table, source)
        sums[source, TOTAL] = 0.0
        sums[source, STEP] = 1.0
    else:
        sums[source, STEP] = sums[source, STEP] / table.alpha
        if sums[source, STEP] >= _LARGE:
            _scale_back(table, source)
        limit = _LEAST * sums[source, STEP]
        while table.numbers[source, SIZE] > 0:
            slot = _least(table, source, table.numbers[source, SIZE])
            if table.stored[source, slot] >= limit:
                break
            _remove_least(table, source, slot)
    if table.numbers[source, SIZE] == 0:
        sums[source, TOP] = 0.0
    sums[source, BEFORE] = sums[source, TOTAL]


@njit(forceinline=True)
def _enter(table: Any, source: Any, slot: Any, key: Any, stored: Any, error: Any) -> None:
    row, place = np.uint64(source), np.uint64(slot)
    table.stored[row, place] = stored
    table.error[row, place] = error
    table.info[row, place, KEY] = key
    table.info[row, place, WIDTH] = 0
    table.finder[row, _place_of(table, source, key)] = slot


@njit(forceinline=True)
def count_tuple(table: Any, source: Any, key: Any) -> Any:
    """Count a tuple and give the slot of its key, which is tracked from now on; the epoch's end comes first."""
    row = np.uint64(source)
    sums, numbers = table.sums, table.numbers
    if numbers[row, IN_EPOCH] == table.epoch:
        _end_epoch(table, source)
    numbers[row, IN_EPOCH] += 1
    update = numbers[row, UPDATES] + 1
    numbers[row, UPDATES] = update
    step = sums[row, STEP]
    sums[row, TOTAL] += step
    slot = np.int64(table.finder[row, _place_of(table, source, key)])
    if slot >= 0:
        stored = table.stored[row, np.uint64(slot)] + step
        table.stored[row, np.uint64(slot)] = stored
    else:
        size, stored, capacity = numbers[row, SIZE], step, table.stored.shape[1]
        if size < capacity:
            slot = np.int64(table.free[row, capacity - 1 - size])
            numbers[row, SIZE] = size + 1
            _enter(table, source, slot, key, stored, 0.0)
            _rise(table, source, np.uint64(size + 1), stored, (update << _SLOT_BITS) | slot)
        else:
            slot = np.int64(_least(table, source, size))
            error = table.stored[row, np.uint64(slot)]
            stored = error + step
            _unlist(table, source, table.info[row, np.uint64(slot), KEY])
            _enter(table, source, slot, key, stored, error)
            _replace_root(table, source, size, stored, (update << _SLOT_BITS) | slot)
    table.info[row, np.uint64(slot), LAST] = update
    sums[row, TOP] = max(sums[row, TOP], stored)
    return slot
