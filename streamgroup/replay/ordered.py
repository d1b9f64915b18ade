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
from streamgroup.replay.departures import doom, forget_dropped, take_back
from streamgroup.replay.measure import MAX_TIME_NS, NEVER, ROW_COLUMNS, SOURCE_STATE
from streamgroup.replay.stream import set_turn, turn_all

__all__ = [
    "ARRIVED",
    "BY_TIE",
    "CHANGE",
    "CHANGE_AT",
    "DELAY",
    "DONE",
    "DROPS",
    "DUE_END",
    "END",
    "FAULT",
    "FIRM",
    "FULL_NODES",
    "FULL_ROWS",
    "FULL_STATE",
    "HORIZON",
    "LAST_CHUNK",
    "LIGHT",
    "LIMIT",
    "MAX_PENDING",
    "MEASURED_FROM",
    "MORE",
    "NOW",
    "NO_WORKER",
    "ROWS_END",
    "SETUP",
    "TIE_AT",
    "TIE_BEFORE",
    "TOO_LATE",
    "run_ordered",
]

# Why the loop came back.
DONE, FULL_NODES, FULL_ROWS, FULL_STATE, TOO_LATE, NO_WORKER, MORE, CHANGE = range(8)

# Places in `setup`: the end of what was read and whether it is all; the model (network delay, room of a queue or 0,
# whether a full one drops, tuples a source may have pending or 0); the next membership change (its time if it comes
# before all else of its instant; or the time and the tuple that it comes right before); the clock; in a closed loop
# the next tuple; the first tuple that has no row yet; whether nothing can be lost any more; redeliveries known; from
# which tuple on the longest queue counts; the tuple at which something went wrong; whether a change came right before a
# tuple; whether nothing asks what has finished; and until when the stream has to be read before anything happens (the
# last arrival read, where workers change later).
(
    END, LAST_CHUNK, DELAY, LIMIT, DROPS, MAX_PENDING, CHANGE_AT, TIE_AT, TIE_BEFORE, NOW, ARRIVED, ROWS_END, FIRM,
    DUE_END, MEASURED_FROM, FAULT, BY_TIE, LIGHT, HORIZON,
) = range(19)  # fmt: skip
SETUP = 19


@njit(forceinline=True)
def _start(node: Any, crew: Any, meta: Any, worker: Any, now: Any, light: Any) -> None:
    """Take those tuples out of a worker's queue that have started by now."""
    first = crew[b.at(worker, b.UNSTARTED)]
    while first >= 0 and node[b.at(first, b.NODE_START)] <= now:
        crew[b.at(worker, b.QUEUED)] -= 1
        following = node[b.at(first, b.NODE_NEXT)]
        if light:
            node[b.at(first, b.NODE_NEXT)] = meta[b.FREE]
            meta[b.FREE] = first
        first = following
    crew[b.at(worker, b.UNSTARTED)] = first


@njit(forceinline=True)
def _accept(
    node: Any,
    crew: Any,
    worker: Any,
    rows: Any,
    waits: Any,
    setup: Any,
    service: Any,
    free: Any,
    taken: Any,
    cost: Any,
    now: Any,
) -> Any:
    """Send a tuple to a worker that has room for it; give its finish, which may be too late for the clock."""
    place = np.uint64(worker)
    seq, key = node[b.at(taken, b.NODE_SEQ)], node[b.at(taken, b.NODE_KEY)]
    reached = now + setup[DELAY]
    start = max(free[place], reached)
    finish = start + service.service(worker, key, cost, seq, start)
    if finish > MAX_TIME_NS:
        return finish
    free[place] = finish
    node[b.at(taken, b.NODE_REACHED)] = reached
    node[b.at(taken, b.NODE_START)] = start
    node[b.at(taken, b.NODE_FINISH)] = finish
    node[b.at(taken, b.NODE_NEXT)] = -1
    b.write_row(node, rows, worker, taken)
    if setup[FIRM]:
        b.certain(node, rows, waits, worker, taken, setup[MEASURED_FROM])
    if setup[LIGHT] == 0:
        if crew[b.at(worker, b.SENT_FIRST)] < 0:
            crew[b.at(worker, b.SENT_FIRST)] = taken
        else:
            node[b.at(crew[b.at(worker, b.SENT_LAST)], b.NODE_NEXT)] = taken
        crew[b.at(worker, b.SENT_LAST)] = taken
    return finish


@njit(forceinline=True)
def _queue(node: Any, crew: Any, worker: Any, meta: Any, setup: Any, taken: Any, judged: Any) -> None:
    """Count an accepted tuple as waiting unless it starts at once; fullness is judged at the instant `judged`."""
    if node[b.at(taken, b.NODE_START)] > judged:
        crew[b.at(worker, b.QUEUED)] += 1
        if crew[b.at(worker, b.UNSTARTED)] < 0:
            crew[b.at(worker, b.UNSTARTED)] = taken
        elif setup[LIGHT]:
            node[b.at(crew[b.at(worker, b.SENT_LAST)], b.NODE_NEXT)] = taken
        if setup[LIGHT]:
            crew[b.at(worker, b.SENT_LAST)] = taken
        if node[b.at(taken, b.NODE_SEQ)] >= setup[MEASURED_FROM]:
            meta[b.QUEUE_MAX] = max(meta[b.QUEUE_MAX], crew[b.at(worker, b.QUEUED)])
    elif setup[LIGHT]:
        node[b.at(taken, b.NODE_NEXT)] = meta[b.FREE]
        meta[b.FREE] = taken


@njit(forceinline=True)
def _next_of(node: Any, crew: Any, worker: Any) -> Any:
    """Tell when a worker's next event is: a tuple finishes, or one starts and leaves its place to one that waits."""
    at = np.int64(NEVER)
    if crew[b.at(worker, b.SENT_FIRST)] >= 0:
        at = node[b.at(crew[b.at(worker, b.SENT_FIRST)], b.NODE_FINISH)]
    if crew[b.at(worker, b.WAIT_FIRST)] >= 0 and crew[b.at(worker, b.UNSTARTED)] >= 0:
        at = min(at, node[b.at(crew[b.at(worker, b.UNSTARTED)], b.NODE_START)])
    return at


def run_ordered(
    grouping: Any,
    service: Any,
    board: Any,
    stream: Any,
    cost_of: Any,
    rows: Any,
    waits: Any,
    hot: Any,
    entries: Any,
    free: Any,
    alive: Any,
    due: Any,
    state: Any,
    setup: Any,
    dealt: Any,
    choices: Any,
    state_entries: Any,
    detector: Any,
    cost_now: Any,
    speed_now: Any,
    hears: Any,
    room: Any,
) -> Any:
    """Send the tuples of the stream through the grouping, event by event; return why it stopped.

    `cost_of` (int64 or float64 [nodes]) keeps the costs of tuples on their way, None where all cost the same. `rows`
    int64[4 capacity] takes the row of tuple i at i mod capacity, `waits` int64[n] the longest waits, and `hot` and
    `entries` what the detector said of a tuple (None without one). `free` int64[n] is when each worker is done,
    `alive` uint8[n] who may be chosen, `due` int64[crashes, 2] the time and first node of redeliveries. `state`
    int64[11] is `Meters.state`. `setup` int64[19] (places above) is read and moved on. `dealt` is None unless sources
    take tuples in turn, `hears` unless the grouping hears of finished tuples; `room` int64[1] is for how many more
    choices its state has room, None if that never grows.
    """
    end = setup[END]
    last = setup[LAST_CHUNK]
    limit = setup[LIMIT]
    light = setup[LIGHT]
    most_pending = setup[MAX_PENDING]
    closed = np.int64(most_pending > 0)
    sources = np.int64(board.source.shape[0] // b.WIDTH)
    row_mask = rows.shape[0] // ROW_COLUMNS - 1
    mask = stream.key.shape[0] - 1
    node, table, crew, meta = board.node, board.source, board.worker, board.meta
    time, who, turn = board.time, board.who, board.turn
    workers = np.uint64(alive.shape[0])
    now = setup[NOW]
    why = DONE
    while True:
        # What comes next: an event of a worker, a redelivery, or a tuple.
        event = time[1]
        again = due[meta[b.DUE], 0] if meta[b.DUE] < setup[DUE_END] else np.int64(NEVER)
        emits, seq, source = turn[4], turn[5], turn[6]
        if closed == 0:
            if seq >= end and emits < NEVER and emits <= min(event, again):
                why = MORE
                break
        elif emits > now:
            # No tuple is to be chosen anew: the next one of the stream, if a source may emit.
            seq = setup[ARRIVED]
            if seq == end and last == 0:
                why = MORE
                break
            if seq < end:
                if dealt is None:
                    source = np.int64(stream.source[seq & mask])
                    if table[b.at(source, b.MAY_EMIT)] == 1:
                        emits = now
                elif meta[b.AVAILABLE] > 0:
                    source = meta[b.LOWEST]
                    while table[b.at(source, b.MAY_EMIT)] == 0:
                        source += 1
                    meta[b.LOWEST] = source
                    emits = now
        following = min(event, again, emits)
        if last == 0 and min(following, setup[CHANGE_AT]) > setup[HORIZON]:
            # All sources that could ask for more wait for places, and workers may change before these are free.
            why = MORE
            break
        if following == NEVER:
            if meta[b.DOOMED_FIRST] < 0:
                break
            # Tuples that are on their way to be dropped: they could still be lost.
            following = node[b.at(meta[b.DOOMED_FIRST], b.NODE_REACHED)]
            if setup[CHANGE_AT] > following:
                forget_dropped(board, rows, following)
                continue
        untied = closed == 1 or setup[TIE_BEFORE] == NEVER or setup[CHANGE_AT] <= setup[TIE_AT]
        if setup[CHANGE_AT] <= following and untied:
            now = max(now, setup[CHANGE_AT])
            why = CHANGE
            break
        if setup[TIE_BEFORE] < NEVER:
            tie = now if closed == 1 else setup[TIE_AT]
            reached_it = emits == tie and seq >= setup[TIE_BEFORE]
            if (reached_it or (closed == 0 and emits > tie)) and event > tie and again > tie:
                now = tie
                setup[BY_TIE] = 1
                why = CHANGE
                break
        if event == following:
            now = event
            worker = who[1]
            taken = crew[b.at(worker, b.SENT_FIRST)]
            while taken >= 0 and node[b.at(taken, b.NODE_FINISH)] <= now:
                if crew[b.at(worker, b.UNSTARTED)] == taken:
                    _start(node, crew, meta, worker, now, light)
                if hears is not None:
                    grouping.tick(now - 1)
                    grouping.executed(
                        worker,
                        node[b.at(taken, b.NODE_KEY)],
                        node[b.at(taken, b.NODE_REACHED)],
                        node[b.at(taken, b.NODE_START)],
                        node[b.at(taken, b.NODE_FINISH)],
                    )
                if not setup[FIRM]:
                    b.certain(node, rows, waits, worker, taken, setup[MEASURED_FROM])
                if closed == 1:
                    its = node[b.at(taken, b.NODE_SOURCE)]
                    table[b.at(its, b.PENDING)] -= 1
                    if table[b.at(its, b.WAITING)] < 0:
                        b.source_opens(table, meta, its)
                after = node[b.at(taken, b.NODE_NEXT)]
                node[b.at(taken, b.NODE_NEXT)] = meta[b.FREE]
                meta[b.FREE] = taken
                taken = after
            crew[b.at(worker, b.SENT_FIRST)] = taken
            if crew[b.at(worker, b.WAIT_FIRST)] >= 0:
                # Places go to the sources that wait for one.
                _start(node, crew, meta, worker, now, light)
                while crew[b.at(worker, b.WAIT_FIRST)] >= 0 and crew[b.at(worker, b.QUEUED)] < limit:
                    its_source = crew[b.at(worker, b.WAIT_FIRST)]
                    crew[b.at(worker, b.WAIT_FIRST)] = table[b.at(its_source, b.WAITER_NEXT)]
                    if crew[b.at(worker, b.WAIT_FIRST)] < 0:
                        crew[b.at(worker, b.WAIT_LAST)] = -1
                    waited = table[b.at(its_source, b.WAITING)]
                    table[b.at(its_source, b.WAITING)] = -1
                    cost = cost_of[waited] if cost_of is not None else np.int64(0)
                    if _accept(node, crew, worker, rows, waits, setup, service, free, waited, cost, now) > MAX_TIME_NS:
                        why = TOO_LATE
                        break
                    _queue(node, crew, worker, meta, setup, waited, now)
                    table[b.at(its_source, b.SINCE)] = now
                    set_turn(node, table, turn, stream.arrival, its_source, end, last, closed)
                    if closed == 1 and table[b.at(its_source, b.PENDING)] < most_pending:
                        b.source_opens(table, meta, its_source)
                if why != DONE:
                    break
            b.set_next(time, who, worker, _next_of(node, crew, worker))
            continue
        if again == following:
            now = again
            take_back(board, due[meta[b.DUE], 1], now)
            meta[b.DUE] += 1
            turn_all(board, stream, end, last, closed)
            continue
        if room is not None and room[0] < 1:
            why = FULL_STATE
            break
        taken = table[b.at(source, b.UNSENT)]
        if taken >= 0:
            now = emits
            table[b.at(source, b.UNSENT)] = node[b.at(taken, b.NODE_NEXT)]
        else:
            taken = meta[b.FREE]
            if taken < 0:
                why = FULL_NODES
                break
            if seq >= setup[ROWS_END]:
                why = FULL_ROWS
                break
            now = emits
            meta[b.FREE] = node[b.at(taken, b.NODE_NEXT)]
            place = np.uint64(seq & mask)
            node[b.at(taken, b.NODE_SEQ)] = seq
            node[b.at(taken, b.NODE_ARRIVAL)] = now if closed == 1 else stream.arrival[place]
            node[b.at(taken, b.NODE_KEY)] = np.int64(stream.key[place])
            node[b.at(taken, b.NODE_SOURCE)] = source
            if cost_of is not None:
                cost_of[taken] = stream.cost[place]
            if closed == 1:
                setup[ARRIVED] = seq + 1
                table[b.at(source, b.PENDING)] += 1
                if table[b.at(source, b.PENDING)] == most_pending:
                    b.source_shuts(table, meta, source)
            else:
                table[b.at(source, b.NEXT_TUPLE)] = seq + sources if dealt is not None else stream.following[place]
        seq = node[b.at(taken, b.NODE_SEQ)]
        key = node[b.at(taken, b.NODE_KEY)]
        cost = cost_of[taken] if cost_of is not None else np.int64(0)
        if cost_now is not None:
            cost_now[0] = cost
        if speed_now is not None:
            service.look(key, seq, now, speed_now)
        grouping.tick(now)
        worker = np.int64(grouping.choose(source, key, now))
        if np.uint64(worker) >= workers or alive[np.uint64(worker)] == 0:
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
        table[b.at(source, b.SINCE)] = now
        judged = now
        fits = True
        if limit > 0:
            # Fullness is judged on arrival where full queues drop, else at the choice.
            if setup[DROPS]:
                judged += setup[DELAY]
            _start(node, crew, meta, worker, judged, light)
            fits = crew[b.at(worker, b.QUEUED)] < limit
        if fits:
            idle = crew[b.at(worker, b.SENT_FIRST)] < 0
            finish = _accept(node, crew, worker, rows, waits, setup, service, free, taken, cost, now)
            if finish > MAX_TIME_NS:
                setup[FAULT] = seq
                why = TOO_LATE
                break
            if limit > 0:
                _queue(node, crew, worker, meta, setup, taken, judged)
            if idle and light == 0:
                b.set_next(time, who, worker, finish)
        elif setup[DROPS]:
            doom(board, rows, worker, taken, judged)
            forget_dropped(board, rows, np.int64(NEVER) if setup[FIRM] else now)
        else:
            b.wait_for_place(table, crew, worker, source, taken, now)
            at_next = _next_of(node, crew, worker)
            if at_next != time[np.uint64(worker + (time.shape[0] >> 1))]:
                b.set_next(time, who, worker, at_next)
        if closed == 0 or table[b.at(source, b.UNSENT)] >= 0 or turn[4] <= now:
            set_turn(node, table, turn, stream.arrival, source, end, last, closed)
        if closed == 1:
            if not fits:
                b.source_shuts(table, meta, source)
            elif table[b.at(source, b.PENDING)] < most_pending:
                b.source_opens(table, meta, source)
    setup[NOW] = now
    return why
