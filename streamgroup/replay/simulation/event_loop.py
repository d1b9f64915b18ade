"""The event-driven simulation: choices in the order of their emission, events in between.

A closed loop, bounded queues and redeliveries after crashes need to know at each instant what has finished and which
source may emit. Like the feed-forward simulation this one knows no algorithm, is compiled for each grouping, and is
made of the same halves.

At one instant come membership (the loop returns, and is called again), finished tuples and the places they leave,
redeliveries, then the tuples in the order of the stream (SIMULATION: timers).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from streamgroup.kernels.tournament import set_leaf
from streamgroup.replay.simulation import state as b
from streamgroup.replay.simulation.choose import choose_one, report, see
from streamgroup.replay.simulation.departures import doom, forget_dropped, take_back
from streamgroup.replay.simulation.events import MAX_TIME_NS, NEVER
from streamgroup.replay.simulation.optional import get, put
from streamgroup.replay.simulation.serve import serve_one
from streamgroup.replay.simulation.stream import set_turn, turn_all

__all__ = [
    "CHANGE",
    "DONE",
    "FULL_EVENTS",
    "FULL_NODES",
    "FULL_STATE",
    "MORE",
    "NO_WORKER",
    "TOO_LATE",
    "Clock",
    "Until",
    "simulate",
]

# Why the loop came back.
DONE, FULL_NODES, FULL_EVENTS, FULL_STATE, TOO_LATE, NO_WORKER, MORE, CHANGE = range(8)


class Until(NamedTuple):
    """How far a call goes.

    `end` is the end of what was read of the stream, all of it if `last` is 1. `events_end` is the first tuple that has
    no place among the events, `redeliveries` how many are known. Until `horizon` nothing happens before more of the
    stream is read (the last arrival read, where workers change later).

    Workers change next at the time `change_at`, before all else of its instant; or at the time `tie_at`, right before
    tuple `tie_before`.
    """

    end: int
    last: int
    events_end: int
    redeliveries: int
    horizon: int
    change_at: int
    tie_at: int
    tie_before: int


class Clock(NamedTuple):
    """Where a call stopped: the time, in a closed loop the next tuple, whether a change comes right before a tuple, and
    the tuple at which something went wrong (-1: none).
    """

    now: int
    arrived: int
    by_tie: int
    fault: int


@njit(forceinline=True)
def _start(node: Any, worker_table: Any, meta: Any, worker: Any, now: Any, light: Any) -> None:
    """Take those tuples out of a worker's queue that have started by now."""
    first = worker_table[b.at(worker, b.UNSTARTED)]
    while first >= 0 and node[b.at(first, b.NODE_START)] <= now:
        worker_table[b.at(worker, b.QUEUED)] -= 1
        following = node[b.at(first, b.NODE_NEXT)]
        if light:
            node[b.at(first, b.NODE_NEXT)] = meta[b.FREE]
            meta[b.FREE] = first
        first = following
    worker_table[b.at(worker, b.UNSTARTED)] = first


@register_jitable(forceinline=True)
def _accept(state: Any, workers: Any, events: Any, worker: Any, taken: Any, now: Any) -> Any:
    """Send a tuple to a worker that has room for it; give its finish, which may be too late for the clock."""
    node, worker_table, model = state.node, state.worker, state.model
    place = np.uint64(worker)
    reached = now + workers.delay
    start, finish = serve_one(
        workers, place, node[b.at(taken, b.NODE_KEY)], state.cost[taken], node[b.at(taken, b.NODE_SEQ)], reached
    )
    if finish > MAX_TIME_NS:
        return finish
    workers.free[place] = finish
    node[b.at(taken, b.NODE_REACHED)] = reached
    node[b.at(taken, b.NODE_START)] = start
    node[b.at(taken, b.NODE_FINISH)] = finish
    node[b.at(taken, b.NODE_NEXT)] = -1
    b.note_sent(node, events, worker, taken)
    if model.firm:
        b.certain(node, events, workers.waits, worker, taken, model.measured_from)
    if not model.light:
        if worker_table[b.at(worker, b.SENT_FIRST)] < 0:
            worker_table[b.at(worker, b.SENT_FIRST)] = taken
        else:
            node[b.at(worker_table[b.at(worker, b.SENT_LAST)], b.NODE_NEXT)] = taken
        worker_table[b.at(worker, b.SENT_LAST)] = taken
    return finish


@njit(forceinline=True)
def _queue(state: Any, worker: Any, taken: Any, judged: Any) -> None:
    """Count an accepted tuple as waiting unless it starts at once; fullness is judged at the instant `judged`."""
    node, worker_table, meta, model = state.node, state.worker, state.meta, state.model
    if node[b.at(taken, b.NODE_START)] > judged:
        worker_table[b.at(worker, b.QUEUED)] += 1
        if worker_table[b.at(worker, b.UNSTARTED)] < 0:
            worker_table[b.at(worker, b.UNSTARTED)] = taken
        elif model.light:
            node[b.at(worker_table[b.at(worker, b.SENT_LAST)], b.NODE_NEXT)] = taken
        if model.light:
            worker_table[b.at(worker, b.SENT_LAST)] = taken
        if node[b.at(taken, b.NODE_SEQ)] >= model.measured_from:
            meta[b.QUEUE_MAX] = max(meta[b.QUEUE_MAX], worker_table[b.at(worker, b.QUEUED)])
    elif model.light:
        node[b.at(taken, b.NODE_NEXT)] = meta[b.FREE]
        meta[b.FREE] = taken


@register_jitable(forceinline=True)
def _executed(feedback: Any, grouping: Any, node: Any, worker: Any, taken: Any, now: Any) -> None:
    """Deliver to the grouping that a tuple finished."""
    if feedback is not None:
        grouping.tick(now - 1)
        grouping.executed(
            worker,
            node[b.at(taken, b.NODE_KEY)],
            node[b.at(taken, b.NODE_REACHED)],
            node[b.at(taken, b.NODE_START)],
            node[b.at(taken, b.NODE_FINISH)],
        )


@njit(forceinline=True)
def _next_of(node: Any, worker_table: Any, worker: Any) -> Any:
    """Tell when a worker's next event is: a tuple finishes, or one starts and leaves its place to one that waits."""
    at = np.int64(NEVER)
    if worker_table[b.at(worker, b.SENT_FIRST)] >= 0:
        at = node[b.at(worker_table[b.at(worker, b.SENT_FIRST)], b.NODE_FINISH)]
    if worker_table[b.at(worker, b.WAIT_FIRST)] >= 0 and worker_table[b.at(worker, b.UNSTARTED)] >= 0:
        at = min(at, node[b.at(worker_table[b.at(worker, b.UNSTARTED)], b.NODE_START)])
    return at


def simulate(
    grouping: Any, sources: Any, workers: Any, state: Any, stream: Any, events: Any, until: Any, clock: Any
) -> Any:
    """Send the tuples of the stream through the grouping, event by event; return why it stopped, and the clock.

    `events` takes what happens to tuple i at i mod its length, a power of two.
    """
    end, last = until.end, until.last
    model = state.model
    limit, light, most_pending = model.capacity, model.light, model.max_pending
    closed = np.int64(most_pending > 0)
    count = np.int64(state.source.shape[0] // b.WIDTH)
    mask = stream.key.shape[0] - 1
    node, table, worker_table, meta, due = state.node, state.source, state.worker, state.meta, state.due
    tree, winner, turn = state.tree, state.winner, state.turn
    arrived, by_tie = clock.arrived, clock.by_tie
    fault: Any = np.int64(-1)
    now = clock.now
    why = DONE
    while True:
        # What comes next: an event of a worker, a redelivery, or a tuple.
        event = tree[0, 1]
        again = due[meta[b.DUE], 0] if meta[b.DUE] < until.redeliveries else np.int64(NEVER)
        emits, seq, source = turn[4], turn[5], turn[6]
        if closed == 0:
            if seq >= end and emits < NEVER and emits <= min(event, again):
                why = MORE
                break
        elif emits > now:
            # No tuple is to be chosen anew: the next one of the stream, if a source may emit.
            seq = arrived
            if seq == end and last == 0:
                why = MORE
                break
            if seq < end:
                if not model.round_robin:
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
        if last == 0 and min(following, until.change_at) > until.horizon:
            # All sources that could ask for more wait for places, and workers may change before these are free.
            why = MORE
            break
        if following == NEVER:
            if meta[b.DOOMED_FIRST] < 0:
                break
            # Tuples that are on their way to be dropped: they could still be lost.
            following = node[b.at(meta[b.DOOMED_FIRST], b.NODE_REACHED)]
            if until.change_at > following:
                forget_dropped(state, events, following)
                continue
        untied = closed == 1 or until.tie_before == NEVER or until.change_at <= until.tie_at
        if until.change_at <= following and untied:
            now = max(now, until.change_at)
            why = CHANGE
            break
        if until.tie_before < NEVER:
            tie = now if closed == 1 else until.tie_at
            reached_it = emits == tie and seq >= until.tie_before
            if (reached_it or (closed == 0 and emits > tie)) and event > tie and again > tie:
                now = tie
                by_tie = np.int64(1)
                why = CHANGE
                break
        if event == following:
            now = event
            worker = winner[0, 1]
            taken = worker_table[b.at(worker, b.SENT_FIRST)]
            while taken >= 0 and node[b.at(taken, b.NODE_FINISH)] <= now:
                if worker_table[b.at(worker, b.UNSTARTED)] == taken:
                    _start(node, worker_table, meta, worker, now, light)
                _executed(sources.feedback, grouping, node, worker, taken, now)
                if not model.firm:
                    b.certain(node, events, workers.waits, worker, taken, model.measured_from)
                if closed == 1:
                    its = node[b.at(taken, b.NODE_SOURCE)]
                    table[b.at(its, b.PENDING)] -= 1
                    if table[b.at(its, b.WAITING)] < 0:
                        b.source_opens(table, meta, its)
                after = node[b.at(taken, b.NODE_NEXT)]
                node[b.at(taken, b.NODE_NEXT)] = meta[b.FREE]
                meta[b.FREE] = taken
                taken = after
            worker_table[b.at(worker, b.SENT_FIRST)] = taken
            if worker_table[b.at(worker, b.WAIT_FIRST)] >= 0:
                # Places go to the sources that wait for one.
                _start(node, worker_table, meta, worker, now, light)
                while worker_table[b.at(worker, b.WAIT_FIRST)] >= 0 and worker_table[b.at(worker, b.QUEUED)] < limit:
                    its_source = worker_table[b.at(worker, b.WAIT_FIRST)]
                    worker_table[b.at(worker, b.WAIT_FIRST)] = table[b.at(its_source, b.WAITER_NEXT)]
                    if worker_table[b.at(worker, b.WAIT_FIRST)] < 0:
                        worker_table[b.at(worker, b.WAIT_LAST)] = -1
                    waited = table[b.at(its_source, b.WAITING)]
                    table[b.at(its_source, b.WAITING)] = -1
                    if _accept(state, workers, events, worker, waited, now) > MAX_TIME_NS:
                        why = TOO_LATE
                        break
                    _queue(state, worker, waited, now)
                    table[b.at(its_source, b.SINCE)] = now
                    set_turn(node, table, turn, stream.arrival, its_source, end, last, closed)
                    if closed == 1 and table[b.at(its_source, b.PENDING)] < most_pending:
                        b.source_opens(table, meta, its_source)
                if why != DONE:
                    break
            set_leaf(tree, winner, 0, worker, _next_of(node, worker_table, worker))
            continue
        if again == following:
            now = again
            take_back(state, due[meta[b.DUE], 1], now)
            meta[b.DUE] += 1
            turn_all(state, stream, end, last)
            continue
        if get(sources.room, 0, 1) < 1:
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
            if seq >= until.events_end:
                why = FULL_EVENTS
                break
            now = emits
            meta[b.FREE] = node[b.at(taken, b.NODE_NEXT)]
            place = np.uint64(seq & mask)
            node[b.at(taken, b.NODE_SEQ)] = seq
            node[b.at(taken, b.NODE_ARRIVAL)] = now if closed == 1 else stream.arrival[place]
            node[b.at(taken, b.NODE_KEY)] = np.int64(stream.key[place])
            node[b.at(taken, b.NODE_SOURCE)] = source
            put(state.cost, taken, get(stream.cost, place, 0))
            if closed == 1:
                arrived = seq + 1
                table[b.at(source, b.PENDING)] += 1
                if table[b.at(source, b.PENDING)] == most_pending:
                    b.source_shuts(table, meta, source)
            else:
                table[b.at(source, b.NEXT_TUPLE)] = seq + count if model.round_robin else stream.following[place]
        seq = node[b.at(taken, b.NODE_SEQ)]
        key = node[b.at(taken, b.NODE_KEY)]
        see(sources.cost, sources.slowdown, workers.service_model, key, state.cost[taken], seq, now)
        worker = choose_one(grouping, sources, source, key, now)
        if worker < 0:
            fault = seq
            why = NO_WORKER
            break
        report(sources, events, b.place_of(events, seq), source, seq >= model.measured_from)
        table[b.at(source, b.SINCE)] = now
        judged = now
        fits = True
        if limit > 0:
            # Fullness is judged on arrival where full queues drop, else at the choice.
            if model.drops:
                judged += workers.delay
            _start(node, worker_table, meta, worker, judged, light)
            fits = worker_table[b.at(worker, b.QUEUED)] < limit
        if fits:
            idle = worker_table[b.at(worker, b.SENT_FIRST)] < 0
            finish = _accept(state, workers, events, worker, taken, now)
            if finish > MAX_TIME_NS:
                fault = seq
                why = TOO_LATE
                break
            if limit > 0:
                _queue(state, worker, taken, judged)
            if idle and not light:
                set_leaf(tree, winner, 0, worker, finish)
        elif model.drops:
            doom(state, events, worker, taken, judged)
            forget_dropped(state, events, np.int64(NEVER) if model.firm else now)
        else:
            b.wait_for_place(table, worker_table, worker, source, taken, now)
            at_next = _next_of(node, worker_table, worker)
            if at_next != tree[0, worker + (tree.shape[1] >> 1)]:
                set_leaf(tree, winner, 0, worker, at_next)
        if closed == 0 or table[b.at(source, b.UNSENT)] >= 0 or turn[4] <= now:
            set_turn(node, table, turn, stream.arrival, source, end, last, closed)
        if closed == 1:
            if not fits:
                b.source_shuts(table, meta, source)
            elif table[b.at(source, b.PENDING)] < most_pending:
                b.source_opens(table, meta, source)
    return why, Clock(now, arrived, by_tie, fault)
