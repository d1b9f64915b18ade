"""What a worker takes with it when it leaves or crashes, and what never reached one."""

from typing import Any

import numpy as np

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.ordered.tournament_tree import set_leaf
from streamgroup.replay.simulation.event_state import certain, free, give_back, note_sent, open_source, place_of
from streamgroup.replay.tuple_arrays import DROPPED, LOST, NEVER, OPEN

__all__ = ["crash", "drop_rejected", "first_open", "lose", "reject", "settle", "take_back", "unblock_sources"]


@njit
def drop_rejected(state: Any, events: Any, now: Any) -> None:
    """Note as dropped the tuples that reached a full worker by now."""
    tuples, scalars = state.tuples, state.scalars
    first = scalars[0].first_rejected
    while first >= 0 and tuples[first].reached <= now:
        following = tuples[first].following
        events.finish[place_of(events, tuples[first].seq)] = DROPPED
        free(tuples, scalars, first)
        first = following
    scalars[0].first_rejected = first


@njit
def first_open(finish: Any, begin: Any, end: Any) -> Any:
    """Find the first tuple of `begin`..`end - 1` of which it is not known whether it finishes; `end` if there is none.

    `finish` are those of events, with tuple i at i mod its length, a power of two.
    """
    mask = finish.shape[0] - 1
    while begin < end and finish[begin & mask] != OPEN:
        begin += 1
    return begin


@njit
def unblock_sources(state: Any, worker: Any, now: Any) -> None:
    """Let the sources that wait for a worker choose anew: it accepts nothing any more."""
    by_worker, by_source = state.by_worker, state.by_source
    source = by_worker[worker].first_waiter
    while source >= 0:
        give_back(state.tuples, by_source, by_source[source].blocked, now)
        by_source[source].blocked = -1
        source = by_source[source].next_waiter
    by_worker[worker].first_waiter = -1
    by_worker[worker].last_waiter = -1
    first = by_worker[worker].first
    finish = state.tuples[first].finish if first >= 0 else np.int64(NEVER)
    set_leaf(state.event_time, state.event_worker, 0, worker, finish)


@njit
def reject(state: Any, events: Any, worker: Any, taken: Any, reaches: Any) -> None:
    """Send a tuple to a worker that will be full when it gets there; until then it can still be lost."""
    tuples, scalars = state.tuples, state.scalars
    tuples[taken].reached = reaches
    tuples[taken].start, tuples[taken].finish, tuples[taken].following = worker, -1, -1
    note_sent(tuples, events, worker, taken)
    if scalars[0].first_rejected < 0:
        scalars[0].first_rejected = taken
    else:
        tuples[scalars[0].last_rejected].following = taken
    scalars[0].last_rejected = taken


@njit
def take_back(state: Any, taken: Any, now: Any) -> None:
    """Return a list of tuples, from the last in the stream on, to their sources."""
    while taken >= 0:
        following = state.tuples[taken].following
        give_back(state.tuples, state.by_source, taken, now)
        taken = following


@njit
def crash(state: Any, worker: Any, now: Any) -> Any:
    """Take all unfinished tuples away from a worker that crashes; return their places, int64[k]."""
    tuples, by_worker, scalars = state.tuples, state.by_worker, state.scalars
    count = 0
    taken = by_worker[worker].first
    while taken >= 0:
        count += 1
        taken = tuples[taken].following
    taken = scalars[0].first_rejected
    while taken >= 0:
        count += tuples[taken].start == worker
        taken = tuples[taken].following
    lost = np.empty(count, dtype=np.int64)
    count = 0
    # What finishes at this very instant is first in the queue, and stays: its event is still to come.
    kept = np.int64(-1)
    taken = by_worker[worker].first
    while taken >= 0 and tuples[taken].finish <= now:
        kept = taken
        taken = tuples[taken].following
    if kept < 0:
        by_worker[worker].first = -1
    else:
        tuples[kept].following = -1
    while taken >= 0:
        lost[count] = taken
        count += 1
        taken = tuples[taken].following
    by_worker[worker].last = kept
    by_worker[worker].first_waiting = -1
    by_worker[worker].waiting = 0
    before = np.int64(-1)
    taken = scalars[0].first_rejected
    while taken >= 0:
        following = tuples[taken].following
        if tuples[taken].start == worker:
            lost[count] = taken
            count += 1
            if before < 0:
                scalars[0].first_rejected = following
            else:
                tuples[before].following = following
        else:
            before = taken
        taken = following
    scalars[0].last_rejected = before
    return lost[:count]


@njit
def lose(state: Any, events: Any, lost: Any) -> None:
    """Note lost tuples: mark them in their events and free their places; in a closed loop their sources may emit."""
    tuples, by_source = state.tuples, state.by_source
    for taken in lost:
        events.finish[place_of(events, tuples[taken].seq)] = LOST
        if state.model.max_pending > 0:
            source = tuples[taken].source
            by_source[source].pending -= 1
            if by_source[source].blocked < 0:
                open_source(by_source, state.scalars, source)
        free(tuples, state.scalars, taken)


@njit
def settle(state: Any, events: Any, waits: Any) -> None:
    """Note of all tuples that were sent that they will finish: nothing can be lost any more (see `certain`)."""
    tuples = state.tuples
    for worker in range(state.by_worker.shape[0]):
        taken = state.by_worker[worker].first
        while taken >= 0:
            certain(tuples, events, waits, worker, taken, state.model.measured_from)
            taken = tuples[taken].following
