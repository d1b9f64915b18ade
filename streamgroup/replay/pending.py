"""Tuples that were sent and have not finished: a queue per worker, and which worker finishes next.

Compiled in only for groupings that have the `executed` hook. A worker serves first come first served, so within its
queue finishes ascend and a heap over the heads of the queues (at most n entries) gives them all in order.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["Waiting", "empty", "grown", "is_full", "next_finish", "pop", "push"]

_NEVER = (1 << 63) - 1
# Columns of a node.
_KEY, _REACHED, _START, _FINISH, _NEXT = range(5)
# Places in `meta`.
_HEAP_SIZE, _FREE = range(2)


class Waiting(NamedTuple):
    """`node` int64[capacity, 5]; `head`, `tail`, `heap` int64[n]; `meta` int64[2]; -1 means none."""

    node: NDArray[np.int64]
    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    heap: NDArray[np.int64]
    meta: NDArray[np.int64]


def empty(workers: int, capacity: int = 1024) -> Waiting:
    """Make the queues of n workers with room for `capacity` tuples in all."""
    node = np.zeros((capacity, 5), dtype=np.int64)
    node[:, _NEXT] = np.arange(1, capacity + 1)
    node[-1, _NEXT] = -1
    none = np.full(workers, -1, dtype=np.int64)
    return Waiting(node, none, none.copy(), none.copy(), np.zeros(2, dtype=np.int64))


def grown(waiting: Waiting) -> Waiting:
    """Make room for twice as many tuples, when there is no room left."""
    old = waiting.node.shape[0]
    more = empty(1, old).node
    more[:-1, _NEXT] += old
    waiting.meta[_FREE] = old
    return waiting._replace(node=np.concatenate([waiting.node, more]))


@njit
def is_full(waiting: Any) -> Any:
    """Tell whether no further tuple has room."""
    return waiting.meta[_FREE] < 0


@njit
def next_finish(waiting: Any) -> Any:
    """Give the earliest finish, or the largest int64 when nothing waits."""
    if waiting.meta[_HEAP_SIZE] == 0:
        return np.int64(_NEVER)
    return waiting.node[waiting.head[waiting.heap[0]], _FINISH]


@njit
def _before(waiting: Any, one: Any, other: Any) -> Any:
    a = waiting.node[waiting.head[one], _FINISH]
    b = waiting.node[waiting.head[other], _FINISH]
    return a < b or (a == b and one < other)


@njit
def _sink(waiting: Any) -> None:
    heap, size = waiting.heap, waiting.meta[_HEAP_SIZE]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and _before(waiting, heap[child + 1], heap[child]):
            child += 1
        if not _before(waiting, heap[child], heap[place]):
            return
        heap[child], heap[place] = heap[place], heap[child]
        place = child


@njit
def push(waiting: Any, worker: Any, key: Any, reached: Any, start: Any, finish: Any) -> None:
    """Put a tuple at the end of its worker's queue; there must be room."""
    node, meta, heap = waiting.node, waiting.meta, waiting.heap
    free = meta[_FREE]
    meta[_FREE] = node[free, _NEXT]
    node[free, _KEY] = key
    node[free, _REACHED] = reached
    node[free, _START] = start
    node[free, _FINISH] = finish
    node[free, _NEXT] = -1
    if waiting.head[worker] >= 0:
        node[waiting.tail[worker], _NEXT] = free
        waiting.tail[worker] = free
        return
    waiting.head[worker] = free
    waiting.tail[worker] = free
    place = meta[_HEAP_SIZE]
    meta[_HEAP_SIZE] = place + 1
    heap[place] = worker
    while place > 0 and _before(waiting, heap[place], heap[(place - 1) // 2]):
        above = (place - 1) // 2
        heap[place], heap[above] = heap[above], heap[place]
        place = above


@njit
def pop(waiting: Any) -> Any:
    """Take the tuple that finishes next, ties to the lower worker: (worker, key, reached, start, finish)."""
    node, meta, heap = waiting.node, waiting.meta, waiting.heap
    worker = heap[0]
    taken = waiting.head[worker]
    following = node[taken, _NEXT]
    result = (worker, node[taken, _KEY], node[taken, _REACHED], node[taken, _START], node[taken, _FINISH])
    waiting.head[worker] = following
    node[taken, _NEXT] = meta[_FREE]
    meta[_FREE] = taken
    if following < 0:
        meta[_HEAP_SIZE] -= 1
        heap[0] = heap[meta[_HEAP_SIZE]]
    _sink(waiting)
    return result
