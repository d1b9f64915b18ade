"""What a worker takes with it when it leaves or crashes, and what never reached one."""

from typing import Any

import numpy as np
from numba import njit

from streamgroup.replay.board import (
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
    row_of,
    set_next,
    source_opens,
    write_row,
)
from streamgroup.replay.measure import DROPPED, LOST, NEVER, ROW_FINISH

__all__ = ["crash", "doom", "forget_dropped", "forget_waiters", "lose", "settle", "take_back"]


@njit
def forget_dropped(board: Any, rows: Any, now: Any) -> None:
    """Note as dropped the tuples that reached a full worker by now."""
    meta, node = board.meta, board.node
    first = meta[DOOMED_FIRST]
    while first >= 0 and node[at(first, NODE_REACHED)] <= now:
        following = node[at(first, NODE_NEXT)]
        rows[row_of(rows, node[at(first, NODE_SEQ)], ROW_FINISH)] = DROPPED
        node[at(first, NODE_NEXT)] = meta[FREE]
        meta[FREE] = first
        first = following
    meta[DOOMED_FIRST] = first


@njit
def forget_waiters(board: Any, worker: Any, now: Any) -> None:
    """Let the sources that wait for a place on a worker choose anew: it takes nothing any more."""
    crew, table = board.worker, board.source
    source = crew[at(worker, WAIT_FIRST)]
    while source >= 0:
        waiting = table[at(source, WAITING)]
        table[at(source, WAITING)] = -1
        give_back(board.node, table, waiting, now)
        source = table[at(source, WAITER_NEXT)]
    crew[at(worker, WAIT_FIRST)] = -1
    crew[at(worker, WAIT_LAST)] = -1
    first = crew[at(worker, SENT_FIRST)]
    set_next(board.time, board.who, worker, board.node[at(first, NODE_FINISH)] if first >= 0 else np.int64(NEVER))


@njit
def doom(board: Any, rows: Any, worker: Any, taken: Any, reaches: Any) -> None:
    """Send a tuple to a worker that will be full when it gets there; until then it can still be lost."""
    node, meta = board.node, board.meta
    node[at(taken, NODE_REACHED)] = reaches
    node[at(taken, NODE_START)], node[at(taken, NODE_FINISH)], node[at(taken, NODE_NEXT)] = worker, -1, -1
    write_row(node, rows, worker, taken)
    if meta[DOOMED_FIRST] < 0:
        meta[DOOMED_FIRST] = taken
    else:
        node[at(meta[DOOMED_LAST], NODE_NEXT)] = taken
    meta[DOOMED_LAST] = taken


@njit
def take_back(board: Any, taken: Any, now: Any) -> None:
    """Give a chain of tuples, from the last in the stream on, back to their sources."""
    while taken >= 0:
        following = board.node[at(taken, NODE_NEXT)]
        give_back(board.node, board.source, taken, now)
        taken = following


@njit
def crash(board: Any, worker: Any, now: Any) -> Any:
    """Take all tuples away from a worker that crashes, but those that have finished: their nodes, int64[k]."""
    node, crew, meta = board.node, board.worker, board.meta
    count = 0
    taken = crew[at(worker, SENT_FIRST)]
    while taken >= 0:
        count += 1
        taken = node[at(taken, NODE_NEXT)]
    doomed = meta[DOOMED_FIRST]
    while doomed >= 0:
        count += node[at(doomed, NODE_START)] == worker
        doomed = node[at(doomed, NODE_NEXT)]
    lost = np.empty(count, dtype=np.int64)
    count = 0
    taken = crew[at(worker, SENT_FIRST)]
    kept = np.int64(-1)
    crew[at(worker, SENT_FIRST)] = -1
    while taken >= 0:
        following = node[at(taken, NODE_NEXT)]
        if node[at(taken, NODE_FINISH)] <= now:
            # It finishes at this very instant, and will be told so.
            if kept < 0:
                crew[at(worker, SENT_FIRST)] = taken
            else:
                node[at(kept, NODE_NEXT)] = taken
            node[at(taken, NODE_NEXT)] = -1
            kept = taken
        else:
            lost[count] = taken
            count += 1
        taken = following
    crew[at(worker, SENT_LAST)] = kept
    crew[at(worker, UNSTARTED)] = -1
    crew[at(worker, QUEUED)] = 0
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
def lose(board: Any, rows: Any, lost: Any, most: Any) -> None:
    """Give lost tuples up: note it in their rows, free their nodes.

    In a closed loop, where sources have at most `most` tuples pending (else 0), they free their places.
    """
    node, table = board.node, board.source
    for taken in lost:
        rows[row_of(rows, node[at(taken, NODE_SEQ)], ROW_FINISH)] = LOST
        if most > 0:
            source = node[at(taken, NODE_SOURCE)]
            table[at(source, PENDING)] -= 1
            if table[at(source, WAITING)] < 0:
                source_opens(table, board.meta, source)
        node[at(taken, NODE_NEXT)] = board.meta[FREE]
        board.meta[FREE] = taken


@njit
def settle(board: Any, rows: Any, waits: Any, first: Any) -> None:
    """Note of all tuples that were sent that they will finish: nothing can be lost any more (see `certain`)."""
    node = board.node
    for worker in range(board.worker.shape[0] // WIDTH):
        taken = board.worker[at(worker, SENT_FIRST)]
        while taken >= 0:
            certain(node, rows, waits, worker, taken, first)
            taken = node[at(taken, NODE_NEXT)]
