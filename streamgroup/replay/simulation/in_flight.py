"""Tuples in flight: sent to a worker and not finished, for groupings that receive completion feedback.

A worker serves first come, first served, so within its queue finishes ascend, and a tournament over the heads of the
queues gives them all in order. A queue is a chain of blocks: a deep backlog is written and read in one direction.

A grouping with a field `heeds` says when it reads the feedback next: it gets it by then, worker by worker, without a
tournament.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from streamgroup.kernels.tournament import make_tournament, set_leaf
from streamgroup.replay.simulation.events import NEVER

__all__ = ["InFlight", "deliver", "grown", "is_crowded", "is_full", "make_in_flight", "push"]

I64 = NDArray[np.int64]

# Columns of a slot.
_KEY, _REACHED, _START, _FINISH = range(4)
_WIDTH = 4
# Slots of a block: a power of two.
_BLOCK = 16
# Places in `meta`: first free block, how many blocks were ever used, and how many of them are.
_FREE, _USED, _TAKEN = range(3)


class InFlight(NamedTuple):
    """`slot` int64[4 x 16 x blocks]; `after` int64[blocks] chains blocks (-1: none); `first` and `last` int64[n] slots.

    A worker whose `first` is -1 has none in flight; `last` is where its latest went. `tree` and `winner` int64[1, 2 P]
    are the tournament over the first finish of each worker; `meta` int64[3].
    """

    slot: I64
    after: I64
    first: I64
    last: I64
    tree: I64
    winner: I64
    meta: I64


def make_in_flight(workers: int) -> InFlight:
    """Make the queues of n workers, empty."""
    blocks = 2 * workers + 64
    tree, winner = make_tournament(np.full((1, workers), NEVER, dtype=np.int64), np.arange(workers))
    none = np.full(workers, -1, dtype=np.int64)
    return InFlight(
        np.empty(blocks * _BLOCK * _WIDTH, dtype=np.int64),
        np.full(blocks, -1, dtype=np.int64),
        none,
        none.copy(),
        tree,
        winner,
        np.array([-1, 0, 0], dtype=np.int64),
    )


def grown(queue: InFlight) -> InFlight:
    """Make room for twice as many blocks."""
    slot = np.empty(2 * len(queue.slot), dtype=np.int64)
    slot[: len(queue.slot)] = queue.slot
    return queue._replace(slot=slot, after=np.concatenate([queue.after, np.full_like(queue.after, -1)]))


@njit(forceinline=True)
def is_full(queue: Any) -> Any:
    """Tell whether there may be no room for another tuple."""
    return queue.meta[_TAKEN] == queue.after.shape[0]


@njit(forceinline=True)
def is_crowded(queue: Any) -> Any:
    """Tell whether more than half of the blocks are taken: to deliver soon again would free few."""
    return 2 * queue.meta[_TAKEN] > queue.after.shape[0]


@njit(forceinline=True)
def _new_block(after: Any, meta: Any) -> Any:
    block = meta[_FREE]
    if block >= 0:
        meta[_FREE] = after[block]
    else:
        block = meta[_USED]
        meta[_USED] = block + 1
    meta[_TAKEN] += 1
    after[block] = -1
    return block


@njit(forceinline=True)
def push(queue: Any, next_read: Any, worker: Any, key: Any, reached: Any, start: Any, finish: Any) -> None:
    """Put a tuple at the end of its worker's queue; there must be room."""
    slot = queue.slot
    last = queue.last[worker]
    place = last + 1
    if place % _BLOCK == 0:
        block = _new_block(queue.after, queue.meta)
        if queue.first[worker] >= 0:
            queue.after[last // _BLOCK] = block
        place = block * _BLOCK
    queue.last[worker] = place
    row = place * _WIDTH
    slot[np.uint64(row + _KEY)] = key
    slot[np.uint64(row + _REACHED)] = reached
    slot[np.uint64(row + _START)] = start
    slot[np.uint64(row + _FINISH)] = finish
    if queue.first[worker] < 0:
        queue.first[worker] = place
        if next_read is None:
            set_leaf(queue.tree, queue.winner, 0, worker, finish)


@njit(forceinline=True)
def _head(queue: Any, worker: Any) -> Any:
    """Give when the first of a worker's queue finishes, NEVER if it is empty."""
    place = queue.first[worker]
    return queue.slot[np.uint64(place * _WIDTH + _FINISH)] if place >= 0 else np.int64(NEVER)


@njit(forceinline=True)
def _pop(queue: Any, worker: Any) -> Any:
    """Take the first of a worker's queue: (key, reached, start)."""
    slot, after, meta = queue.slot, queue.after, queue.meta
    place = queue.first[worker]
    row = place * _WIDTH
    key, reached = slot[np.uint64(row + _KEY)], slot[np.uint64(row + _REACHED)]
    start = slot[np.uint64(row + _START)]
    following = np.int64(-1)
    if place != queue.last[worker]:
        following = place + 1
    if (place + 1) % _BLOCK == 0:
        block = place // _BLOCK
        if following >= 0:
            following = after[block] * _BLOCK
        # An empty queue goes on in a new block (`last` stands at the end of one).
        after[block] = meta[_FREE]
        meta[_FREE] = block
        meta[_TAKEN] -= 1
    queue.first[worker] = following
    return key, reached, start


@register_jitable(forceinline=True)
def deliver(queue: Any, next_read: Any, grouping: Any, until: Any) -> None:
    """Deliver all that finishes until then to the grouping, each after what is due before it.

    Without `next_read`: in order of (finish, worker). With it: in this order within each worker, and of none that
    finishes after `next_read[0]` before the timer or message that is due then.
    """
    if next_read is None:
        while queue.tree[0, 1] <= until:
            finish = queue.tree[0, 1]
            grouping.tick(finish - 1)
            worker = queue.winner[0, 1]
            key, reached, start = _pop(queue, worker)
            set_leaf(queue.tree, queue.winner, 0, worker, _head(queue, worker))
            grouping.executed(worker, key, reached, start, finish)
    else:
        following = np.int64(-1)
        while following <= until:
            # At least the next one, lest a grouping that does not advance it be asked for ever.
            upto = max(following, min(next_read[0], until))
            following = np.int64(NEVER)
            for worker in range(queue.first.shape[0]):
                finish = _head(queue, worker)
                while finish <= upto:
                    key, reached, start = _pop(queue, worker)
                    grouping.executed(worker, key, reached, start, finish)
                    finish = _head(queue, worker)
                following = min(following, finish)
            if following <= until:
                grouping.tick(following - 1)
