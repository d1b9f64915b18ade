"""What a worker takes with it when it leaves or crashes, and what never reached one."""

from typing import Any

import numpy as np
from numba import njit

from streamgroup.kernels.tournament import set_leaf
from streamgroup.replay.simulation.events import DROPPED, LOST, NEVER, OPEN
from streamgroup.replay.simulation.state import (
    DOOMED_FIRST,
    DOOMED_LAST,
    FREE,
    NODE_FINISH,
    NODE_NEXT,
    NODE_REACHED,
    NODE_SEQ,
    NODE_SOURCE,
    NODE_START,
    PENDING,
    QUEUED,
    SENT_FIRST,
    SENT_LAST,
    UNSTARTED,
    WAIT_FIRST,
    WAIT_LAST,
    WAITER_NEXT,
    WAITING,
    WIDTH,
    at,
    certain,
    give_back,
    note_sent,
    place_of,
    source_opens,
)

__all__ = ["crash", "doom", "first_open", "forget_dropped", "forget_waiters", "lose", "settle", "take_back"]


@njit
def forget_dropped(state: Any, events: Any, now: Any) -> None:
    """Note as dropped the tuples that reached a full worker by now."""
    meta, node = state.meta, state.node
    first = meta[DOOMED_FIRST]
    while first >= 0 and node[at(first, NODE_REACHED)] <= now:
        following = node[at(first, NODE_NEXT)]
        events.finish[place_of(events, node[at(first, NODE_SEQ)])] = DROPPED
        node[at(first, NODE_NEXT)] = meta[FREE]
        meta[FREE] = first
        first = following
    meta[DOOMED_FIRST] = first


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
def forget_waiters(state: Any, worker: Any, now: Any) -> None:
    """Let the sources that wait for a place on a worker choose anew: it takes nothing any more."""
    worker_table, table = state.worker, state.source
    source = worker_table[at(worker, WAIT_FIRST)]
    while source >= 0:
        waiting = table[at(source, WAITING)]
        table[at(source, WAITING)] = -1
        give_back(state.node, table, waiting, now)
        source = table[at(source, WAITER_NEXT)]
    worker_table[at(worker, WAIT_FIRST)] = -1
    worker_table[at(worker, WAIT_LAST)] = -1
    first = worker_table[at(worker, SENT_FIRST)]
    set_leaf(state.tree, state.winner, 0, worker, state.node[at(first, NODE_FINISH)] if first >= 0 else np.int64(NEVER))


@njit
def doom(state: Any, events: Any, worker: Any, taken: Any, reaches: Any) -> None:
    """Send a tuple to a worker that will be full when it gets there; until then it can still be lost."""
    node, meta = state.node, state.meta
    node[at(taken, NODE_REACHED)] = reaches
    node[at(taken, NODE_START)], node[at(taken, NODE_FINISH)], node[at(taken, NODE_NEXT)] = worker, -1, -1
    note_sent(node, events, worker, taken)
    if meta[DOOMED_FIRST] < 0:
        meta[DOOMED_FIRST] = taken
    else:
        node[at(meta[DOOMED_LAST], NODE_NEXT)] = taken
    meta[DOOMED_LAST] = taken


@njit
def take_back(state: Any, taken: Any, now: Any) -> None:
    """Give a chain of tuples, from the last in the stream on, back to their sources."""
    while taken >= 0:
        following = state.node[at(taken, NODE_NEXT)]
        give_back(state.node, state.source, taken, now)
        taken = following


@njit
def crash(state: Any, worker: Any, now: Any) -> Any:
    """Take all tuples away from a worker that crashes, but those that have finished: their nodes, int64[k]."""
    node, worker_table, meta = state.node, state.worker, state.meta
    count = 0
    taken = worker_table[at(worker, SENT_FIRST)]
    while taken >= 0:
        count += 1
        taken = node[at(taken, NODE_NEXT)]
    doomed = meta[DOOMED_FIRST]
    while doomed >= 0:
        count += node[at(doomed, NODE_START)] == worker
        doomed = node[at(doomed, NODE_NEXT)]
    lost = np.empty(count, dtype=np.int64)
    count = 0
    taken = worker_table[at(worker, SENT_FIRST)]
    kept = np.int64(-1)
    worker_table[at(worker, SENT_FIRST)] = -1
    while taken >= 0:
        following = node[at(taken, NODE_NEXT)]
        if node[at(taken, NODE_FINISH)] <= now:
            # It finishes at this very instant, and will be told so.
            if kept < 0:
                worker_table[at(worker, SENT_FIRST)] = taken
            else:
                node[at(kept, NODE_NEXT)] = taken
            node[at(taken, NODE_NEXT)] = -1
            kept = taken
        else:
            lost[count] = taken
            count += 1
        taken = following
    worker_table[at(worker, SENT_LAST)] = kept
    worker_table[at(worker, UNSTARTED)] = -1
    worker_table[at(worker, QUEUED)] = 0
    before = np.int64(-1)
    doomed = meta[DOOMED_FIRST]
    while doomed >= 0:
        following = node[at(doomed, NODE_NEXT)]
        if node[at(doomed, NODE_START)] == worker:
            lost[count] = doomed
            count += 1
            if before < 0:
                meta[DOOMED_FIRST] = following
            else:
                node[at(before, NODE_NEXT)] = following
        else:
            before = doomed
        doomed = following
    meta[DOOMED_LAST] = before
    return lost[:count]


@njit
def lose(state: Any, events: Any, lost: Any) -> None:
    """Give lost tuples up: note it in their events, free their nodes; in a closed loop they free their places."""
    node, table = state.node, state.source
    for taken in lost:
        events.finish[place_of(events, node[at(taken, NODE_SEQ)])] = LOST
        if state.model.max_pending > 0:
            source = node[at(taken, NODE_SOURCE)]
            table[at(source, PENDING)] -= 1
            if table[at(source, WAITING)] < 0:
                source_opens(table, state.meta, source)
        node[at(taken, NODE_NEXT)] = state.meta[FREE]
        state.meta[FREE] = taken


@njit
def settle(state: Any, events: Any, waits: Any) -> None:
    """Note of all tuples that were sent that they will finish: nothing can be lost any more (see `certain`)."""
    node = state.node
    for worker in range(state.worker.shape[0] // WIDTH):
        taken = state.worker[at(worker, SENT_FIRST)]
        while taken >= 0:
            certain(node, events, waits, worker, taken, state.model.measured_from)
            taken = node[at(taken, NODE_NEXT)]
