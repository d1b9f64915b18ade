"""The stream as the ordered loop reads it: tuples that no source has sent yet, and whose turn comes next."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.replay.board import NEXT_TUPLE, NODE_SEQ, SINCE, UNSENT, WAITING, WIDTH, at, grown_rows
from streamgroup.replay.measure import NEVER

__all__ = ["Stream", "grown_stream", "load", "make_stream", "set_turn", "turn_all"]


class Stream(NamedTuple):
    """Tuples that were read and are not sent: tuple i at i mod capacity, a power of two.

    `arrival` int64, `key` uint32, `cost` int64 or float64 (one of size 1 where all cost the same), `following` int64
    (the next tuple of the same source, -1: not read yet; of size 1 where tuples are dealt in turn), `source` int32.
    """

    arrival: NDArray[np.int64]
    key: NDArray[np.uint32]
    cost: NDArray[Any]
    following: NDArray[np.int64]
    source: NDArray[np.int32]


def make_stream(cost: Any, *, dealt: bool, capacity: int) -> Stream:
    """Make an empty stream; `cost` is the type of the costs, None where all cost the same."""
    return Stream(
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.uint32),
        np.zeros(1 if cost is None else capacity, dtype=np.int64 if cost is None else cost),
        np.full(1 if dealt else capacity, -1, dtype=np.int64),
        np.zeros(1 if dealt else capacity, dtype=np.int32),
    )


def grown_stream(stream: Stream, first: int, end: int) -> Stream:
    """Make room for twice as many tuples; first..end-1 are kept."""

    def grown(one: NDArray[Any]) -> NDArray[Any]:
        return grown_rows(one, first, end) if len(one) > 1 else one

    return Stream(
        grown(stream.arrival), grown(stream.key), grown(stream.cost), grown(stream.following), grown(stream.source)
    )


@njit(forceinline=True)
def _enter(turn: Any, source: Any, when: Any, seq: Any) -> None:
    """Set when a source's next tuple may be chosen; of equal times the earlier tuple is first."""
    place = source + (turn.shape[0] >> 3)
    winner = np.int64(source)
    turn[np.uint64(place * 4)], turn[np.uint64(place * 4 + 1)], turn[np.uint64(place * 4 + 2)] = when, seq, winner
    while place > 1:
        sibling = (place ^ 1) * 4
        other, its_seq, its = turn[np.uint64(sibling)], turn[np.uint64(sibling + 1)], turn[np.uint64(sibling + 2)]
        wins = -np.int64((other < when) | ((other == when) & (its_seq < seq)))
        when ^= (when ^ other) & wins
        seq ^= (seq ^ its_seq) & wins
        winner ^= (winner ^ its) & wins
        place >>= 1
        turn[np.uint64(place * 4)], turn[np.uint64(place * 4 + 1)], turn[np.uint64(place * 4 + 2)] = when, seq, winner


@njit(forceinline=True)
def set_turn(node: Any, table: Any, turn: Any, arrival: Any, source: Any, end: Any, last: Any, closed: Any) -> None:
    """Find when a source's next tuple may be chosen, of the tuples before `end` that were read.

    Of a tuple that was not read it is known only that it is not earlier than the last one read; after the `last`
    chunk there is none. In a `closed` loop only tuples that were sent before have a turn of their own.
    """
    when, seq = np.int64(NEVER), np.int64(NEVER)
    if table[at(source, WAITING)] < 0:
        if table[at(source, UNSENT)] >= 0:
            when, seq = table[at(source, SINCE)], node[at(table[at(source, UNSENT)], NODE_SEQ)]
        elif closed == 0:
            seq = table[at(source, NEXT_TUPLE)]
            if 0 <= seq < end:
                when = max(arrival[seq & (arrival.shape[0] - 1)], table[at(source, SINCE)])
            elif last == 0:
                seq = max(seq, end)
                when = (
                    max(arrival[(end - 1) & (arrival.shape[0] - 1)], table[at(source, SINCE)])
                    if end > 0
                    else np.int64(0)
                )
            else:
                seq = np.int64(NEVER)
    _enter(turn, source, when, seq)


@njit
def turn_all(board: Any, stream: Any, end: Any, last: Any, closed: Any) -> None:
    """Find the turns of all sources anew."""
    for source in range(board.source.shape[0] // WIDTH):
        set_turn(board.node, board.source, board.turn, stream.arrival, source, end, last, closed)


@njit
def load(
    board: Any,
    stream: Any,
    last_of: Any,
    begin: Any,
    arrival: Any,
    key: Any,
    cost: Any,
    source: Any,
    last: Any,
    closed: Any,
) -> None:
    """Take a chunk that begins at tuple `begin` into the stream, which has room for it.

    `last_of` int64[sources] is the last tuple of each source that was read, -1 for none; `source` is None where tuples
    are dealt in turn.
    """
    mask = stream.key.shape[0] - 1
    for i in range(key.shape[0]):
        place = (begin + i) & mask
        stream.key[place] = key[i]
        if closed == 0:
            stream.arrival[place] = arrival[i]
        if cost is not None:
            stream.cost[place] = cost[i]
        if source is not None:
            its = source[i]
            stream.source[place] = its
            stream.following[place] = -1
            if board.source[at(its, NEXT_TUPLE)] < 0:
                board.source[at(its, NEXT_TUPLE)] = begin + i
            elif last_of[its] >= 0:
                stream.following[last_of[its] & mask] = begin + i
            last_of[its] = begin + i
    turn_all(board, stream, begin + key.shape[0], last, closed)
