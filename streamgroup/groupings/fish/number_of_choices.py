"""How many workers a key may have, by its decayed count (000, Algorithm 2, "CHK"; 001, section IV-A)."""

from typing import Any

import numpy as np

from streamgroup.groupings.fish.decayed_space_saving import (
    BEFORE,
    LARGEST_CAPACITY,
    SIZE,
    STEP,
    TOP,
    TOTAL,
    WIDTH,
)
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.optimal_choices import has_room, power
from streamgroup.kernels.ordered.top_k import sort_descending

__all__ = ["average_width", "chk_width", "denominator", "halvings", "is_hot", "optimal_width", "sort_hot"]

_52 = np.int64(52)


@njit(forceinline=True)
def denominator(table: Any, source: Any, epoch_end: Any) -> Any:
    """Return what a stored count is a share of: all that is counted now, or what will be at the epoch's end."""
    row = np.uint64(source)
    if epoch_end:
        return table.sums[row, BEFORE] + table.epoch * table.sums[row, STEP]
    return table.sums[row, TOTAL]


@njit(forceinline=True)
def is_hot(stored: Any, theta: Any, whole: Any) -> Any:
    """Return whether a stored count is above the share theta of the whole."""
    return stored > theta * whole


@njit(forceinline=True)
def halvings(stored: Any, top: Any) -> Any:
    """Return the largest i >= 0 with stored * 2^i <= top, both positive and normal, exactly.

    The bits of such numbers are exponent and fraction: their difference loses one in the exponent where the fraction
    of `top` is the smaller one.
    """
    return (np.float64(top).view(np.int64) - np.float64(stored).view(np.int64)) >> _52


@njit(forceinline=True)
def chk_width(table: Any, source: Any, slot: Any, workers: Any, least: Any) -> Any:
    """Return the width of a hot key, at least `least` and never less than before (M_k), and note it.

    It is at most the number of workers: `least` may be from before some of them left.
    """
    row, place = np.uint64(source), np.uint64(slot)
    index = halvings(table.stored[row, place], table.sums[row, TOP])
    width = max(np.int64(workers) >> min(index, 62), least, table.info[row, place, WIDTH])
    width = min(width, np.int64(workers))
    table.info[row, place, WIDTH] = width
    return width


@njit
def sort_hot(table: Any, source: Any, theta: Any, whole: Any, hot: Any) -> Any:
    """Write the stored counts of a source's hot entries to `hot` (float64[K]), descending; give how many there are."""
    size = 0
    for place in range(1, table.numbers[source, SIZE] + 1):
        stored = table.stored[source, table.who[source, place] & (LARGEST_CAPACITY - 1)]
        if is_hot(stored, theta, whole):
            hot[size] = stored
            size += 1
    sort_descending(hot, size)
    return size


@njit
def _sum(values: Any, size: Any) -> Any:
    total = 0.0
    for place in range(size):
        total += values[place]
    return total


@njit
def average_width(hot: Any, size: Any, whole: Any, workers: Any) -> Any:
    """Return the mean width if hot keys share the workers by their counts, at least 2 ("d_min related to the sum")."""
    mean = workers * (_sum(hot, size) / whole) / size
    return max(np.int64(2), np.int64(np.ceil(mean - 1e-9)))


@njit
def optimal_width(hot: Any, size: Any, whole: Any, workers: Any, eps: Any) -> Any:
    """Return the smallest d that may balance hot keys (FINDOPTIMALCHOICES, 001 section IV-A), n where none below does.

    `hot` float64[size] are the counts of the hot keys, descending, shares of `whole`. The constraint is looked at for
    the first key and for all of them.
    """
    total = _sum(hot, size)
    tail = 1.0 - min(1.0, total / whole)
    q = (workers - 1) / workers
    d = max(np.int64(2), np.int64(np.ceil(hot[0] / whole * workers - 1e-9)))
    while d < workers:
        holds = True
        for h in (1, size):
            part = hot[0] if h == 1 else total
            x = 1.0 - power(q, h * d)
            left = min(part / whole, 1.0) + power(x, d) * ((total - part) / whole) + (x * x) * tail
            holds = holds and has_room(x, left, workers, eps, False)
        if holds:
            break
        d += 1
    return min(d, np.int64(workers))
