"""Tuples that were sent and have not finished, for groupings that hear of finished ones in the fast loop.

A worker serves first come first served, so within its queue finishes ascend, and a tournament over the heads of the
queues gives them all in order. A queue is a chain of blocks: a deep backlog is written and read in one direction.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.replay.board import make_tournament, set_next
from streamgroup.replay.measure import NEVER

__all__ = ["FINISH", "KEY", "REACHED", "START", "Heard", "grown", "is_full", "make_heard", "pop", "push"]

# Columns of a slot.
KEY, REACHED, START, FINISH = range(4)
_WIDTH = 4
# Slots of a block: a power of two.
_BLOCK = 16
# Places in `meta`: first free block, and how many blocks were ever used.
_FREE, _USED = range(2)


class Heard(NamedTuple):
    """`slot` int64[4 x 16 x blocks]; `after` int64[blocks] chains blocks (-1: none); `first` and `last` int64[n] slots.

    A worker whose `first` is -1 has nothing; `last` is where its latest went. `time` and `who` are the tournament (see
    `board.Board`); `meta` int64[2].
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
        np.array([-1, 0], dtype=np.int64),
    )


def grown(heard: Heard) -> Heard:
    """Make room for twice as many blocks."""
    slot = np.empty(2 * len(heard.slot), dtype=np.int64)
    slot[: len(heard.slot)] = heard.slot
    return heard._replace(slot=slot, after=np.concatenate([heard.after, np.full_like(heard.after, -1)]))


@njit(forceinline=True)
def is_full(heard: Any) -> Any:
    """Tell whether there may be no room for one more."""
    return heard.meta[_FREE] < 0 and heard.meta[_USED] == heard.after.shape[0]


@njit(forceinline=True)
def _new_block(after: Any, meta: Any) -> Any:
    block = meta[_FREE]
    if block >= 0:
        meta[_FREE] = after[block]
    else:
        block = meta[_USED]
        meta[_USED] = block + 1
    after[block] = -1
    return block


@njit(forceinline=True)
def push(heard: Any, worker: Any, key: Any, reached: Any, start: Any, finish: Any) -> None:
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
        set_next(heard.time, heard.who, worker, finish)


@njit(forceinline=True)
def pop(heard: Any) -> Any:
    """Take the tuple that finishes next, of equal ones that of the lower worker: (worker, key, reached, start)."""
    slot, after, meta = heard.slot, heard.after, heard.meta
    worker = heard.who[1]
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
    heard.first[worker] = following
    then = np.int64(NEVER)
    if following >= 0:
        then = slot[np.uint64(following * _WIDTH + FINISH)]
    set_next(heard.time, heard.who, worker, then)
    return worker, key, reached, start
