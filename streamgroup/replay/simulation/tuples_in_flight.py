"""Tuples in flight: sent to a worker and not finished, for groupings that receive completion feedback.

A worker serves first come, first served, so within its queue finishes ascend, and a tournament over the heads of the
queues gives them all in order. A queue is a chain of blocks: a deep backlog is written and read in one direction.

A grouping that says when it reads the feedback next (`next_read`) gets it by then, worker by worker, without a
tournament.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit, register_jitable
from streamgroup.kernels.ordered.tournament_tree import make_tournament, set_leaf
from streamgroup.replay.tuple_arrays import NEVER, Records, make_records

__all__ = ["InFlight", "deliver", "grown", "is_crowded", "is_full", "make_in_flight", "push"]

I64 = NDArray[np.int64]

_SLOT = ("key", "reached", "start", "finish")
# Slots of a block: a power of two.
_BLOCK = 16
# Of the blocks: the first free one, how many were ever used, and how many are now.
_BLOCKS = ("first_free", "used", "taken")


class InFlight(NamedTuple):
    """Tuples by slot [16 x blocks]; `after` int64[blocks] chains blocks (-1: none); `first`, `last` int64[n] are slots.

    A worker whose `first` is -1 has none in flight; `last` is where its latest went. `tree` and `winner` int64[1, 2 P]
    are the tournament over the first finish of each worker. `slot` and `blocks` [1] are records of int64 (above).
    """

    slot: Records
    after: I64
    first: I64
    last: I64
    tree: I64
    winner: I64
    blocks: Records


def make_in_flight(workers: int) -> InFlight:
    """Make the queues of n workers, empty."""
    blocks = 2 * workers + 64
    tree, winner = make_tournament(np.full((1, workers), NEVER, dtype=np.int64), np.arange(workers))
    none = np.full(workers, -1, dtype=np.int64)
    used = make_records(_BLOCKS, 1)
    used.used = used.taken = 0
    slot = make_records(_SLOT, blocks * _BLOCK)
    return InFlight(slot, np.full(blocks, -1, dtype=np.int64), none, none.copy(), tree, winner, used)


def grown(queue: InFlight) -> InFlight:
    """Make room for twice as many blocks."""
    slot = make_records(_SLOT, 2 * len(queue.slot))
    slot[: len(queue.slot)] = queue.slot
    return queue._replace(slot=slot, after=np.concatenate([queue.after, np.full_like(queue.after, -1)]))


@njit(forceinline=True)
def is_full(queue: Any) -> Any:
    """Return whether there may be no room for another tuple."""
    return queue.blocks[0].taken == queue.after.shape[0]


@njit(forceinline=True)
def is_crowded(queue: Any) -> Any:
    """Return whether more than half of the blocks are taken: to deliver soon again would free few."""
    return 2 * queue.blocks[0].taken > queue.after.shape[0]


@njit(forceinline=True)
def _new_block(after: Any, blocks: Any) -> Any:
    block = blocks[0].first_free
    if block >= 0:
        blocks[0].first_free = after[block]
    else:
        block = blocks[0].used
        blocks[0].used = block + 1
    blocks[0].taken += 1
    after[block] = -1
    return block


@njit(forceinline=True)
def push(queue: Any, next_read: Any, worker: Any, key: Any, reached: Any, start: Any, finish: Any) -> None:
    """Put a tuple at the end of its worker's queue; there must be room."""
    slot = queue.slot
    last = queue.last[worker]
    place = last + 1
    if place % _BLOCK == 0:
        block = _new_block(queue.after, queue.blocks)
        if queue.first[worker] >= 0:
            queue.after[last // _BLOCK] = block
        place = block * _BLOCK
    queue.last[worker] = place
    row = np.uint64(place)
    slot[row].key, slot[row].reached, slot[row].start, slot[row].finish = key, reached, start, finish
    if queue.first[worker] < 0:
        queue.first[worker] = place
        if next_read is None:
            set_leaf(queue.tree, queue.winner, 0, worker, finish)


@njit(forceinline=True)
def _head(queue: Any, worker: Any) -> Any:
    """Return when the first of a worker's queue finishes, NEVER if it is empty."""
    place = queue.first[worker]
    return queue.slot[np.uint64(place)].finish if place >= 0 else np.int64(NEVER)


@njit(forceinline=True)
def _pop(queue: Any, worker: Any) -> Any:
    """Take the first of a worker's queue: (key, reached, start)."""
    slot, after, blocks = queue.slot, queue.after, queue.blocks
    place = queue.first[worker]
    row = np.uint64(place)
    key, reached, start = slot[row].key, slot[row].reached, slot[row].start
    following = np.int64(-1)
    if place != queue.last[worker]:
        following = place + 1
    if (place + 1) % _BLOCK == 0:
        block = place // _BLOCK
        if following >= 0:
            following = after[block] * _BLOCK
        # An empty queue goes on in a new block (`last` stands at the end of one).
        after[block] = blocks[0].first_free
        blocks[0].first_free = block
        blocks[0].taken -= 1
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
