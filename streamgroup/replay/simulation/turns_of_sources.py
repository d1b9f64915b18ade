"""Whose turn comes next: when each source may choose a worker for its next tuple in the event-driven simulation."""

from typing import Any

import numpy as np

from streamgroup.kernels.compiling.kernel_decorators import njit, register_jitable
from streamgroup.kernels.ordered.tournament_tree import set_ordered_leaf
from streamgroup.replay.simulation.source_server import served_at
from streamgroup.replay.tuple_arrays import NEVER

__all__ = ["set_turn", "turn_all"]


@register_jitable(forceinline=True)
def set_turn(state: Any, stream: Any, source: Any, end: Any, last: Any) -> None:
    """Find when a source's next tuple may be chosen, of the tuples before `end` that were read.

    Of a tuple that was not read it is known only that it is not earlier than the last one read; after the `last`
    chunk there is none. In a closed loop only tuples that were sent before, or that a source serves, have a turn of
    their own.
    """
    by_source, arrival, row = state.by_source, stream.arrival, np.uint64(source)
    when, seq = np.int64(NEVER), np.int64(NEVER)
    if by_source[row].blocked < 0:
        ready_at, mask = by_source[row].ready_at, arrival.shape[0] - 1
        if by_source[row].first_unsent >= 0:
            when, seq = ready_at, state.tuples[np.uint64(by_source[row].first_unsent)].seq
        elif state.model.max_pending == 0:
            following = by_source[row].next_tuple
            if 0 <= following < end:
                place = np.uint64(following & mask)
                done = served_at(state.servers, by_source, stream.factor, row, place, arrival[place])
                when, seq = max(done, ready_at), following
            elif last == 0:
                when = max(arrival[np.uint64((end - 1) & mask)], ready_at) if end > 0 else np.int64(0)
                seq = max(following, end)
        elif by_source[row].serving >= 0:
            when = max(by_source[row].idle_at + by_source[row].service, ready_at)
            seq = state.tuples[np.uint64(by_source[row].serving)].seq
    set_ordered_leaf(state.turn_time, state.turn_source, state.turn_tuple, source, when, seq)


@njit
def turn_all(state: Any, stream: Any, end: Any, last: Any) -> None:
    """Find the turns of all sources anew."""
    for source in range(state.by_source.shape[0]):
        set_turn(state, stream, source, end, last)
