"""The loop for replays in which something flows back: choices in the order of their emission, events in between.

A closed loop, full queues, crashes, and groupings that hear of finished tuples need to know at each instant what
has finished and which source may emit. The fast loop (`loop.py`) needs none of that. Like it, this one knows no
algorithm, is compiled under a name of its own for each grouping, and gives the same results interpreted.

At one instant come membership (the loop returns, and is called again), finished tuples and the places they leave,
redeliveries, then the tuples in the order of the stream (SIMULATION: timers).
"""

from typing import Any

import numpy as np
from numba import njit

from streamgroup.replay import board as b
from streamgroup.replay.measure import (
    FINISHED,
    MAX_TIME_NS,
    NEVER,
    NEXT_SOURCE,
    OPEN,
    ROW_ARRIVAL,
    ROW_FINISH,
    ROW_KEY,
    ROW_REACHED,
    ROW_SOURCE,
    ROW_START,
    ROW_STATUS,
    ROW_WORKER,
    SOURCE_STATE,
)

__all__ = [
    "ARRIVES",
    "BEGIN",
    "CHANGE_AT",
    "CHANGE_BEFORE",
    "DELAY",
    "DROPS",
    "DUE_END",
    "END",
    "FAULT",
    "FIRM",
    "LAST_CHUNK",
    "LIMIT",
    "MAX_PENDING",
    "MEASURED_FROM",
    "NOW",
    "OFFSET",
    "ROWS_FROM",
    "SETUP",
    "run_ordered",
]

# Why the loop came back, besides those of `loop.py`.
DONE, FULL_NODES, FULL_ROWS, TOO_LATE, NO_WORKER, MORE, CHANGE = range(7)

# Places in `setup`: the chunk (begin, end, number of its first tuple, whether it is the last), the model (network
# delay, room of a queue or 0, whether a full one drops, tuples a source may have pending or 0), the next membership
# change (its time, and the tuple that it comes before), the clock, the first tuple whose row is still needed, whether
# nothing can be lost any more, redeliveries known, from which tuple on the longest queue counts, the tuple at which
# something went wrong, and when the next tuple arrives.
(
    BEGIN, END, OFFSET, LAST_CHUNK, DELAY, LIMIT, DROPS, MAX_PENDING, CHANGE_AT, CHANGE_BEFORE, NOW, ROWS_FROM, FIRM,
    DUE_END, MEASURED_FROM, FAULT,
    ARRIVES,
) = range(17)  # fmt: skip
SETUP = 17


@njit(forceinline=True)
def _started(board: Any, worker: Any, now: Any) -> None:
    """Take those tuples out of a worker's queue that have started by now."""
    node, mine = board.node, board.worker[worker]
    first = mine[b.UNSTARTED]
    while first >= 0 and node[first, b.NODE_START] <= now:
        mine[b.QUEUED] -= 1
        first = node[first, b.NODE_NEXT]
    mine[b.UNSTARTED] = first


@njit(forceinline=True)
def _accept(
    board: Any, cost_of: Any, rows: Any, setup: Any, service: Any, free: Any, worker: Any, taken: Any, now: Any
) -> Any:
    """Send a tuple to a worker that has room for it; give its finish, which may be too late for the clock."""
    node = board.node[taken]
    mine = board.worker[worker]
    reached = now + setup[DELAY]
    start = max(free[worker], reached)
    if cost_of is None:
        finish = start + service.service(worker, node[b.NODE_KEY], 0, node[b.NODE_SEQ], start)
    else:
        finish = start + service.service(worker, node[b.NODE_KEY], cost_of[taken], node[b.NODE_SEQ], start)
    if finish > MAX_TIME_NS:
        return finish
    free[worker] = finish
    node[b.NODE_REACHED], node[b.NODE_START], node[b.NODE_FINISH] = reached, start, finish
    node[b.NODE_NEXT] = -1
    if mine[b.SENT_FIRST] < 0:
        mine[b.SENT_FIRST] = taken
        b.set_next(board, worker, finish)
    else:
        board.node[mine[b.SENT_LAST], b.NODE_NEXT] = taken
    mine[b.SENT_LAST] = taken
    # Fullness is judged on arrival where full queues drop, else at the choice.
    if setup[LIMIT] > 0 and start > (reached if setup[DROPS] else now):
        mine[b.QUEUED] += 1
        if mine[b.UNSTARTED] < 0:
            mine[b.UNSTARTED] = taken
        if node[b.NODE_SEQ] >= setup[MEASURED_FROM]:
            board.meta[b.QUEUE_MAX] = max(board.meta[b.QUEUE_MAX], mine[b.QUEUED])
    row = rows[node[b.NODE_SEQ] & (rows.shape[0] - 1)]
    row[ROW_WORKER], row[ROW_REACHED], row[ROW_START], row[ROW_FINISH] = worker, reached, start, finish
    if setup[FIRM]:
        row[ROW_STATUS] = FINISHED
    return finish


@njit(forceinline=True)
def _next_of(board: Any, worker: Any) -> Any:
    """Tell when a worker's next event is: a tuple finishes, or one starts and leaves its place to one that waits."""
    mine = board.worker[worker]
    at = np.int64(NEVER)
    if mine[b.SENT_FIRST] >= 0:
        at = board.node[mine[b.SENT_FIRST], b.NODE_FINISH]
    if mine[b.WAIT_FIRST] >= 0 and mine[b.UNSTARTED] >= 0:
        at = min(at, board.node[mine[b.UNSTARTED], b.NODE_START])
    return at


@njit(forceinline=True)
def _may_go_on(board: Any, setup: Any, source: Any) -> None:
    """A source no longer waits: its next tuple may be chosen, or in a closed loop it may emit."""
    first = board.source[source, b.UNSENT_FIRST]
    if first >= 0:
        b.push_ready(board, board.node[first, b.NODE_SEQ], source)
    if setup[MAX_PENDING] > 0 and board.source[source, b.PENDING] < setup[MAX_PENDING]:
        b.source_opens(board, source)


@njit
def _fill_places(
    board: Any, cost_of: Any, rows: Any, setup: Any, service: Any, free: Any, worker: Any, now: Any
) -> Any:
    """Give the places of a worker that are free to the sources that wait for one; tell the latest finish."""
    mine = board.worker[worker]
    latest = np.int64(0)
    _started(board, worker, now)
    while mine[b.WAIT_FIRST] >= 0 and mine[b.QUEUED] < setup[LIMIT]:
        source = mine[b.WAIT_FIRST]
        mine[b.WAIT_FIRST] = board.source[source, b.WAITER_NEXT]
        if mine[b.WAIT_FIRST] < 0:
            mine[b.WAIT_LAST] = -1
        taken = board.source[source, b.WAITING]
        board.source[source, b.WAITING] = -1
        latest = max(latest, _accept(board, cost_of, rows, setup, service, free, worker, taken, now))
        _may_go_on(board, setup, source)
    return latest


@njit
def _redeliver(board: Any, due: Any) -> None:
    """Give the tuples of a crash back to their sources."""
    node = due[board.meta[b.DUE], 1]
    board.meta[b.DUE] += 1
    while node >= 0:
        following = board.node[node, b.NODE_NEXT]
        b.unsend(board, board.node[node, b.NODE_SOURCE], node)
        node = following
    b.refill_ready(board)


def run_ordered(
    grouping: Any,
    service: Any,
    board: Any,
    cost_of: Any,
    rows: Any,
    hot: Any,
    entries: Any,
    free: Any,
    alive: Any,
    due: Any,
    state: Any,
    setup: Any,
    arrivals: Any,
    keys: Any,
    costs: Any,
    source_of: Any,
    choices: Any,
    state_entries: Any,
    detector: Any,
    cost_now: Any,
    speed_now: Any,
    hears: Any,
) -> Any:
    """Send the tuples of a chunk through the grouping, event by event; return why it stopped.

    `cost_of` (int64 or float64 [nodes]) keeps the costs of tuples that wait, None where all cost the same.
    `rows` int64[capacity, 8] takes the row of tuple i at i mod capacity, and `hot` and `entries` what the detector said
    of it (None without one). `free` int64[n] is when each worker is done, `alive` uint8[n] who may be chosen, `due`
    int64[crashes, 2] the time and first node of redeliveries. `state` int64[10] is `Meters.state`. `setup` int64[17]
    (places above) is read and moved on. `hears` is None unless the grouping hears of finished tuples.
    """
    offset = setup[OFFSET]
    end = setup[END]
    limit = setup[LIMIT]
    allowed_pending = setup[MAX_PENDING]
    sources = np.int64(board.source.shape[0])
    row_mask = rows.shape[0] - 1
    node = board.node
    table = board.source
    meta = board.meta
    i = setup[BEGIN]
    now = setup[NOW]
    dealt = state[NEXT_SOURCE]
    why = DONE
    while True:
        if i == end and not setup[LAST_CHUNK]:
            why = MORE
            break
        # What comes next: an event of a worker, a redelivery, a tuple that may be chosen now, or an arrival.
        event = b.next_at(board)
        again = due[meta[b.DUE], 0] if meta[b.DUE] < setup[DUE_END] else np.int64(NEVER)
        arrives = np.int64(NEVER)
        source = dealt
        if i < end:
            if allowed_pending == 0:
                arrives = arrivals[np.uint64(i)]
                if source_of is not None:
                    source = np.int64(source_of[i])
            elif source_of is not None:
                source = np.int64(source_of[i])
                if table[source, b.OPEN_SOURCE] == 1:
                    arrives = now
            elif meta[b.AVAILABLE] > 0:
                source = meta[b.LOWEST]
                while table[source, b.OPEN_SOURCE] == 0:
                    source += 1
                meta[b.LOWEST] = source
                arrives = now
        following = min(event, again, now if meta[b.READY] > 0 else arrives)
        if following == NEVER:
            if meta[b.DOOMED_FIRST] < 0:
                break
            # Tuples that are on their way to be dropped: they could still be lost.
            reached = node[meta[b.DOOMED_FIRST], b.NODE_REACHED]
            if setup[CHANGE_AT] > reached:
                b.forget_dropped(board, rows, reached)
                continue
            following = reached
        change = setup[CHANGE_AT]
        if offset + i == setup[CHANGE_BEFORE] and i < end and (allowed_pending == 0 or meta[b.READY] == 0):
            change = min(change, arrives)
        if change <= following and change < NEVER:
            now = max(now, change)
            setup[ARRIVES] = arrives
            why = CHANGE
            break
        if event == following:
            now = event
            worker = board.who[1]
            mine = board.worker[worker]
            taken = mine[b.SENT_FIRST]
            while taken >= 0 and node[taken, b.NODE_FINISH] <= now:
                if mine[b.UNSTARTED] == taken:
                    _started(board, worker, now)
                if hears is not None:
                    grouping.tick(now - 1)
                    grouping.executed(
                        worker, node[taken, b.NODE_KEY], node[taken, b.NODE_REACHED], node[taken, b.NODE_START], now
                    )
                if not setup[FIRM]:
                    rows[node[taken, b.NODE_SEQ] & row_mask, ROW_STATUS] = FINISHED
                if allowed_pending > 0:
                    its = node[taken, b.NODE_SOURCE]
                    table[its, b.PENDING] -= 1
                    if table[its, b.WAITING] < 0:
                        b.source_opens(board, its)
                after = node[taken, b.NODE_NEXT]
                node[taken, b.NODE_NEXT] = meta[b.FREE]
                meta[b.FREE] = taken
                taken = after
            mine[b.SENT_FIRST] = taken
            latest = np.int64(0)
            if mine[b.WAIT_FIRST] >= 0:
                latest = _fill_places(board, cost_of, rows, setup, service, free, worker, now)
            if latest > MAX_TIME_NS:
                why = TOO_LATE
                break
            b.set_next(board, worker, _next_of(board, worker))
            continue
        if again == following:
            now = again
            _redeliver(board, due)
            continue
        if meta[b.READY] > 0:
            source = b.pop_ready(board)
            taken = table[source, b.UNSENT_FIRST]
            table[source, b.UNSENT_FIRST] = node[taken, b.NODE_NEXT]
        else:
            if meta[b.FREE] < 0:
                why = FULL_NODES
                break
            seq = offset + i
            if seq - setup[ROWS_FROM] > row_mask:
                why = FULL_ROWS
                break
            now = arrives
            taken = b.new_node(board)
            tuple_ = node[taken]
            key = np.int64(keys[np.uint64(i)])
            tuple_[b.NODE_SEQ], tuple_[b.NODE_ARRIVAL] = seq, now
            tuple_[b.NODE_KEY], tuple_[b.NODE_SOURCE] = key, source
            if costs is not None:
                cost_of[taken] = costs[i]
            row = rows[seq & row_mask]
            row[ROW_ARRIVAL], row[ROW_KEY], row[ROW_SOURCE], row[ROW_STATUS] = now, key, source, OPEN
            i += 1
            if source_of is None and allowed_pending == 0:
                dealt += 1
                if dealt == sources:
                    dealt = 0
            if allowed_pending > 0:
                table[source, b.PENDING] += 1
                if table[source, b.PENDING] == allowed_pending:
                    b.source_shuts(board, source)
            elif table[source, b.WAITING] >= 0 or table[source, b.UNSENT_FIRST] >= 0:
                b.unsend(board, source, taken)
                continue
        seq = node[taken, b.NODE_SEQ]
        key = node[taken, b.NODE_KEY]
        if cost_now is not None:
            cost_now[0] = cost_of[taken]
        if speed_now is not None:
            service.look(key, seq, now, speed_now)
        grouping.tick(now)
        worker = np.int64(grouping.choose(source, key, now))
        if worker < 0 or worker >= alive.shape[0] or alive[worker] == 0:
            setup[FAULT] = seq
            why = NO_WORKER
            break
        grouping.observe(source, key, worker, now)
        if choices is not None:
            hot[seq & row_mask] = choices[0]
        if detector is not None:
            entries[seq & row_mask] = detector[0]
        if state_entries is not None and seq >= setup[MEASURED_FROM]:
            state[SOURCE_STATE] = max(state[SOURCE_STATE], state_entries[source])
        if limit > 0:
            judged = now + setup[DELAY] if setup[DROPS] else now
            _started(board, worker, judged)
            if board.worker[worker, b.QUEUED] >= limit:
                if setup[DROPS]:
                    rows[seq & row_mask, ROW_WORKER] = worker
                    node[taken, b.NODE_REACHED], node[taken, b.NODE_START] = judged, worker
                    node[taken, b.NODE_NEXT] = -1
                    if meta[b.DOOMED_FIRST] < 0:
                        meta[b.DOOMED_FIRST] = taken
                    else:
                        node[meta[b.DOOMED_LAST], b.NODE_NEXT] = taken
                    meta[b.DOOMED_LAST] = taken
                    b.forget_dropped(board, rows, now if not setup[FIRM] else judged)
                    _may_go_on(board, setup, source)
                    continue
                b.wait_for_place(board, source, worker, taken, now)
                if allowed_pending > 0:
                    b.source_shuts(board, source)
                b.set_next(board, worker, _next_of(board, worker))
                continue
        if _accept(board, cost_of, rows, setup, service, free, worker, taken, now) > MAX_TIME_NS:
            setup[FAULT] = seq
            why = TOO_LATE
            break
        _may_go_on(board, setup, source)
    setup[BEGIN] = i
    setup[NOW] = now
    state[NEXT_SOURCE] = dealt
    return why
