"""Ranking by weight: keeps the best of many in a heap of fixed size, and sorts short lists.

`rows` int64[room, 3] hold (weight, tie, what): the larger weight is better, among equals the smaller tie. The first
`size` rows are a heap with the worst at its root; `in_order` turns it into a list, best first.
"""

from typing import Any

import numpy as np

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["in_order", "keep_best", "sink", "sort_descending"]


@njit(forceinline=True)
def _is_worse(rows: Any, one: Any, other: Any) -> Any:
    if rows[one, 0] != rows[other, 0]:
        return rows[one, 0] < rows[other, 0]
    return rows[one, 1] > rows[other, 1]


@njit(forceinline=True)
def _swap(rows: Any, one: Any, other: Any) -> None:
    for column in range(3):
        held = rows[one, column]
        rows[one, column] = rows[other, column]
        rows[other, column] = held


@njit
def sink(rows: Any, size: Any) -> None:
    """Move the root of a heap, which has become better, down to where it belongs."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _is_worse(rows, child + 1, child):
            child += 1
        if not _is_worse(rows, child, place):
            break
        _swap(rows, place, child)
        place = child


@njit
def keep_best(rows: Any, size: Any, limit: Any, weight: Any, tie: Any, what: Any) -> Any:
    """Offer one to the best `limit` (at least 1), of which `size` are there; return who is left out, -1 if nobody is.

    The number of those there grows by one, up to the limit.
    """
    if size < limit:
        place = size
        rows[place, 0], rows[place, 1], rows[place, 2] = weight, tie, what
        while place > 0 and _is_worse(rows, place, (place - 1) // 2):
            _swap(rows, place, (place - 1) // 2)
            place = (place - 1) // 2
        return np.int64(-1)
    if weight < rows[0, 0] or (weight == rows[0, 0] and tie > rows[0, 1]):
        return np.int64(what)
    loser = rows[0, 2]
    rows[0, 0], rows[0, 1], rows[0, 2] = weight, tie, what
    sink(rows, size)
    return loser


@njit
def in_order(rows: Any, size: Any) -> None:
    """Sort the heap of the first `size` rows, best first (heapsort; in place)."""
    for last in range(size - 1, 0, -1):
        _swap(rows, 0, last)
        sink(rows, last)


@njit
def _sink_number(values: Any, place: Any, size: Any) -> None:
    """Let a number sink in a heap of numbers with the smallest at 0."""
    value = values[place]
    child = 2 * place + 1
    while child < size:
        if child + 1 < size and values[child + 1] < values[child]:
            child += 1
        if values[child] >= value:
            break
        values[place] = values[child]
        place = child
        child = 2 * place + 1
    values[place] = value


@njit
def sort_descending(values: Any, size: Any) -> None:
    """Sort the first `size` numbers, largest first (heapsort; in place)."""
    for place in range(size // 2 - 1, -1, -1):
        _sink_number(values, place, size)
    for end in range(size - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        _sink_number(values, 0, end)
