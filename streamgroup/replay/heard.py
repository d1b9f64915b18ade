"""Tuples that were sent and have not finished, for groupings that hear of finished ones in the fast loop.

A worker serves first come first served, so within its queue finishes ascend, and a tournament over the heads of the
queues gives them all in order. A queue is a chain of blocks: a deep backlog is written and read in one direction.

A grouping that says in `heeds` when it next looks at what it heard is told by then, worker by worker: no tournament.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from streamgroup.replay.board import make_tournament, set_next
from streamgroup.replay.measure import NEVER

__all__ = ["FINISH", "KEY", "REACHED", "START", "Heard", "grown", "hear", "is_crowded", "is_full", "make_heard", "push"]

# Columns of a slot.
KEY, REACHED, START, FINISH = range(4)
_WIDTH = 4
# Slots of a block: a power of two.
_BLOCK = 16
# Places in `meta`: first free block, how many blocks were ever used, and how many of them are.
_FREE, _USED, _TAKEN = range(3)


class Heard(NamedTuple):
    """`slot` int64[4 x 16 x blocks]; `after` int64[blocks] chains blocks (-1: none); `first` and `last` int64[n] slots.

    A worker whose `first` is -1 has nothing; `last` is where its latest went. `time` and `who` are the tournament (see
    `board.Board`); `meta` int64[3].
    """

    slot: NDArray[np.int64]
    after: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    time: NDArray[np.int64]
    who: NDArray[np.int64]
    meta: NDArray[np.int64]


def make_heard(workers: int) -> Heard:
    """Make the queues of n workers, empty."""
    blocks = 2 * workers + 64
    time, who = make_tournament(workers)
    none = np.full(workers, -1, dtype=np.int64)
    return Heard(
        np.empty(blocks * _BLOCK * _WIDTH, dtype=np.int64),
        np.full(blocks, -1, dtype=np.int64),
        none,
        none.copy(),
        time,
        who,
        np.array([-1, 0, 0], dtype=np.int64),
    )


def grown(heard: Heard) -> Heard:
    """Make room for twice as many blocks."""
    slot = np.empty(2 * len(heard.slot), dtype=np.int64)
    slot[: len(heard.slot)] = heard.slot
    return heard._replace(slot=slot, after=np.concatenate([heard.after, np.full_like(heard.after, -1)]))


@njit(forceinline=True)
def is_full(heard: Any, more: Any) -> Any:
    """Tell whether there may be no room for so many more."""
    return heard.meta[_TAKEN] + more > heard.after.shape[0]


@njit(forceinline=True)
def is_crowded(heard: Any, more: Any) -> Any:
    """Tell whether more than half of the blocks are taken, by so many more too: to hear soon again would free few."""
    return 2 * (heard.meta[_TAKEN] + more) > heard.after.shape[0]


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
def push(heard: Any, heeds: Any, worker: Any, key: Any, reached: Any, start: Any, finish: Any) -> None:
    """Put a tuple at the end of its worker's queue; there must be room."""
    slot = heard.slot
    last = heard.last[worker]
    place = last + 1
    if place % _BLOCK == 0:
        block = _new_block(heard.after, heard.meta)
        if heard.first[worker] >= 0:
            heard.after[last // _BLOCK] = block
        place = block * _BLOCK
    heard.last[worker] = place
    row = place * _WIDTH
    slot[np.uint64(row + KEY)] = key
    slot[np.uint64(row + REACHED)] = reached
    slot[np.uint64(row + START)] = start
    slot[np.uint64(row + FINISH)] = finish
    if heard.first[worker] < 0:
        heard.first[worker] = place
        if heeds is None:
            set_next(heard.time, heard.who, worker, finish)


@njit(forceinline=True)
def _head(heard: Any, worker: Any) -> Any:
    """Give when the first of a worker's queue finishes, NEVER if it is empty."""
    place = heard.first[worker]
    return heard.slot[np.uint64(place * _WIDTH + FINISH)] if place >= 0 else np.int64(NEVER)


@njit(forceinline=True)
def _pop(heard: Any, worker: Any) -> Any:
    """Take the first of a worker's queue: (key, reached, start)."""
    slot, after, meta = heard.slot, heard.after, heard.meta
    place = heard.first[worker]
    row = place * _WIDTH
    key, reached = slot[np.uint64(row + KEY)], slot[np.uint64(row + REACHED)]
    start = slot[np.uint64(row + START)]
    following = np.int64(-1)
    if place != heard.last[worker]:
        following = place + 1
    if (place + 1) % _BLOCK == 0:
        block = place // _BLOCK
        if following >= 0:
            following = after[block] * _BLOCK
        # An empty queue goes on in a new block (`last` stands at the end of one).
        after[block] = meta[_FREE]
        meta[_FREE] = block
        meta[_TAKEN] -= 1
    heard.first[worker] = following
    return key, reached, start


@register_jitable(forceinline=True)
def hear(heard: Any, heeds: Any, grouping: Any, until: Any) -> None:
    """Tell the grouping of all that finishes until then, each after what is due before it.

    Without `heeds`: in order of (finish, worker). With it: in this order within each worker, and of none that finishes
    after `heeds[0]` before the timer or message that is due then.
    """
    if heeds is None:
        while heard.time[1] <= until:
            finish = heard.time[1]
            grouping.tick(finish - 1)
            worker = heard.who[1]
            key, reached, start = _pop(heard, worker)
            set_next(heard.time, heard.who, worker, _head(heard, worker))
            grouping.executed(worker, key, reached, start, finish)
    else:
        following = np.int64(-1)
        while following <= until:
            # At least the next one, lest a grouping that does not move `heeds` be asked for ever.
            upto = max(following, min(heeds[0], until))
            following = np.int64(NEVER)
            for worker in range(heard.first.shape[0]):
                finish = _head(heard, worker)
                while finish <= upto:
                    key, reached, start = _pop(heard, worker)
                    grouping.executed(worker, key, reached, start, finish)
                    finish = _head(heard, worker)
                following = min(following, finish)
            if following <= until:
                grouping.tick(following - 1)
