"""The event-driven simulation: choices in the order of their emission, events in between.

A closed loop, bounded queues and redeliveries after crashes need to know at each instant what has finished and which
source may emit. Like the feed-forward simulation this one knows no algorithm, is compiled for each grouping, and is
made of the same halves.

At one instant come membership (the loop returns, and is called again), finished tuples and the places they leave,
redeliveries, then the tuples in the order of the stream (SIMULATION: timers).
"""

from typing import Any, NamedTuple

import numpy as np

from streamgroup.kernels.compiling.kernel_decorators import njit, register_jitable
from streamgroup.kernels.ordered.tournament_tree import set_leaf
from streamgroup.replay.simulation.choose import choose_one, report, see
from streamgroup.replay.simulation.event_state import (
    block,
    certain,
    close_source,
    free,
    note_sent,
    open_source,
    place_of,
)
from streamgroup.replay.simulation.keys_held_by_workers import hold, view_slowness
from streamgroup.replay.simulation.optional_array_elements import get, put
from streamgroup.replay.simulation.serve import serve_one
from streamgroup.replay.simulation.source_server import begin_service, leave, take_tuple
from streamgroup.replay.simulation.tuples_lost_with_workers import drop_rejected, reject, take_back
from streamgroup.replay.simulation.turns_of_sources import set_turn, turn_all
from streamgroup.replay.tuple_arrays import MAX_TIME_NS, NEVER

__all__ = [
    "CHANGE",
    "DONE",
    "FULL_EVENTS",
    "FULL_STATE",
    "FULL_TUPLES",
    "MORE",
    "NO_WORKER",
    "TOO_LATE",
    "Clock",
    "Until",
    "deliver_finish",
    "note_origin",
    "simulate",
]

# Why the loop came back.
DONE, FULL_TUPLES, FULL_EVENTS, FULL_STATE, TOO_LATE, NO_WORKER, MORE, CHANGE = range(8)


class Clock(NamedTuple):
    """Where a call stopped: the time, in a closed loop the next tuple, whether a change comes right before a tuple, and
    the tuple at which something went wrong (-1: none).
    """

    now: int
    arrived: int
    by_tie: int
    fault: int


class Until(NamedTuple):
    """How far a call goes, from a `clock` on.

    `end` is the end of what was read of the stream, all of it if `last` is 1. `events_end` is the first tuple that has
    no place among the events, `redeliveries` how many are known. Until `horizon` nothing happens before more of the
    stream is read (the last arrival read, where workers change later).

    Workers change next at the time `change_at`, before all else of its instant; or at the time `tie_at`, right before
    tuple `tie_before`.
    """

    clock: Clock
    end: int
    last: int
    events_end: int
    redeliveries: int
    horizon: int
    change_at: int
    tie_at: int
    tie_before: int


@njit(forceinline=True)
def _start(tuples: Any, by_worker: Any, scalars: Any, worker: Any, now: Any, light: Any) -> None:
    """Take those tuples out of a worker's queue that have started by now."""
    place = np.uint64(worker)
    first = by_worker[place].first_waiting
    while first >= 0 and tuples[np.uint64(first)].start <= now:
        by_worker[place].waiting -= 1
        following = tuples[first].following
        if light:
            free(tuples, scalars, first)
        first = following
    by_worker[place].first_waiting = first


@register_jitable(forceinline=True)
def _accept(state: Any, workers: Any, events: Any, worker: Any, taken: Any, now: Any) -> Any:
    """Send a tuple to a worker that has room for it; return its finish, which may be too late for the clock."""
    tuples, by_worker, model = state.tuples, state.by_worker, state.model
    place, row = np.uint64(worker), np.uint64(taken)
    reached = now + workers.delay
    key, seq = tuples[row].key, tuples[row].seq
    entries = hold(workers.held, worker, key, seq, tuples[row].arrival)
    start, finish = serve_one(workers, place, key, state.cost[row], seq, reached, entries)
    if finish > MAX_TIME_NS:
        return finish
    workers.free[place] = finish
    tuples[row].reached = reached
    tuples[row].start = start
    tuples[row].finish = finish
    tuples[row].following = -1
    note_sent(tuples, events, worker, taken)
    put(events.held, place_of(events, seq), entries)
    if model.firm:
        certain(tuples, events, workers.waits, worker, taken, model.measured_from)
    if not model.light:
        if by_worker[place].first < 0:
            by_worker[place].first = taken
        else:
            tuples[by_worker[place].last].following = taken
        by_worker[place].last = taken
    return finish


@njit(forceinline=True)
def _queue(state: Any, worker: Any, taken: Any, judged: Any) -> None:
    """Count an accepted tuple as waiting unless it starts at once; fullness is judged at the instant `judged`."""
    tuples, by_worker, scalars, model = state.tuples, state.by_worker, state.scalars, state.model
    place, row = np.uint64(worker), np.uint64(taken)
    waits = tuples[row].start > judged
    if waits:
        by_worker[place].waiting += 1
        if by_worker[place].first_waiting < 0:
            by_worker[place].first_waiting = taken
        elif model.light:
            tuples[by_worker[place].last].following = taken
        if model.light:
            by_worker[place].last = taken
    if tuples[row].seq >= model.measured_from:
        scalars[0].queue_max = max(scalars[0].queue_max, by_worker[place].waiting)
    if model.light and not waits:
        free(tuples, scalars, taken)


@register_jitable(forceinline=True)
def deliver_finish(feedback: Any, grouping: Any, tuples: Any, worker: Any, taken: Any, now: Any) -> None:
    """Deliver to the grouping that a tuple finished."""
    if feedback is not None:
        grouping.tick(now - 1)
        grouping.executed(worker, tuples[taken].key, tuples[taken].reached, tuples[taken].start, tuples[taken].finish)


@njit(forceinline=True)
def _next_event(tuples: Any, by_worker: Any, worker: Any) -> Any:
    """Return the time of a worker's next event: a tuple finishes, or one starts and a source waits for its place."""
    place = np.uint64(worker)
    at = np.int64(NEVER)
    if by_worker[place].first >= 0:
        at = tuples[by_worker[place].first].finish
    if by_worker[place].first_waiter >= 0 and by_worker[place].first_waiting >= 0:
        at = min(at, tuples[by_worker[place].first_waiting].start)
    return at


@njit(forceinline=True)
def note_origin(held: Any, seq: Any, now: Any) -> None:
    """In a closed loop: note when the first measured tuple arrives, where workers hold its window from then on."""
    if held is not None and seq == held.measured_from:
        held.origin[0] = now


def simulate(grouping: Any, sources: Any, workers: Any, state: Any, stream: Any, events: Any, until: Any) -> Any:
    """Send the tuples of the stream through the grouping, event by event; return why it stopped, and the clock.

    `events` takes what happens to tuple i at i mod its length, a power of two.
    """
    end, last = until.end, until.last
    model = state.model
    limit, light, most_pending = model.capacity, model.light, model.max_pending
    closed = np.int64(most_pending > 0)
    mask = stream.key.shape[0] - 1
    tuples, by_source, by_worker, scalars = state.tuples, state.by_source, state.by_worker, state.scalars
    count = np.int64(by_source.shape[0])
    event_time, event_worker, turn_time, redelivery = (
        state.event_time, state.event_worker, state.turn_time, state.redelivery,
    )  # fmt: skip
    arrived, by_tie = until.clock.arrived, until.clock.by_tie
    fault: Any = np.int64(-1)
    now = until.clock.now
    why = DONE
    while True:
        # What comes next: an event of a worker, a redelivery, or a tuple.
        event = event_time[0, 1]
        again = (
            redelivery[scalars[0].redelivered, 0] if scalars[0].redelivered < until.redeliveries else np.int64(NEVER)
        )
        emits, source = turn_time[0, 1], state.turn_source[0, 1]
        seq = state.turn_tuple[np.uint64(source)]
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
                    own = np.int64(stream.source[seq & mask])
                    if by_source[own].may_emit == 1:
                        source = own
                        emits = now
                elif scalars[0].emitters > 0:
                    source = scalars[0].lowest_emitter
                    while by_source[source].may_emit == 0:
                        source += 1
                    scalars[0].lowest_emitter = source
                    emits = now
        following = min(event, again, emits)
        if last == 0 and min(following, until.change_at) > until.horizon:
            # All sources that could ask for more wait for places, and workers may change before these are free.
            why = MORE
            break
        if following == NEVER:
            if scalars[0].first_rejected < 0:
                break
            # Tuples that are on their way to be dropped: they could still be lost.
            following = tuples[scalars[0].first_rejected].reached
            if until.change_at > following:
                drop_rejected(state, events, following)
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
            worker = event_worker[0, 1]
            taken = by_worker[worker].first
            while taken >= 0 and tuples[taken].finish <= now:
                if by_worker[worker].first_waiting == taken:
                    _start(tuples, by_worker, scalars, worker, now, light)
                deliver_finish(sources.feedback, grouping, tuples, worker, taken, now)
                if not model.firm:
                    certain(tuples, events, workers.waits, worker, taken, model.measured_from)
                if closed == 1:
                    its = tuples[taken].source
                    by_source[its].pending -= 1
                    if by_source[its].blocked < 0:
                        open_source(by_source, scalars, its)
                after = tuples[taken].following
                free(tuples, scalars, taken)
                taken = after
            by_worker[worker].first = taken
            if by_worker[worker].first_waiter >= 0:
                # Places go to the sources that wait for one.
                _start(tuples, by_worker, scalars, worker, now, light)
                while by_worker[worker].first_waiter >= 0 and by_worker[worker].waiting < limit:
                    its_source = by_worker[worker].first_waiter
                    by_worker[worker].first_waiter = by_source[its_source].next_waiter
                    if by_worker[worker].first_waiter < 0:
                        by_worker[worker].last_waiter = -1
                    waited = by_source[its_source].blocked
                    by_source[its_source].blocked = -1
                    if _accept(state, workers, events, worker, waited, now) > MAX_TIME_NS:
                        why = TOO_LATE
                        break
                    _queue(state, worker, waited, now)
                    by_source[its_source].ready_at = now
                    leave(state.servers, tuples, by_source, its_source, waited, now, model.measured_from)
                    set_turn(state, stream, its_source, end, last)
                    if closed == 1 and by_source[its_source].pending < most_pending:
                        open_source(by_source, scalars, its_source)
                if why != DONE:
                    break
            set_leaf(event_time, event_worker, 0, worker, _next_event(tuples, by_worker, worker))
            continue
        if again == following:
            now = again
            take_back(state, redelivery[scalars[0].redelivered, 1], now)
            scalars[0].redelivered += 1
            turn_all(state, stream, end, last)
            continue
        if get(sources.room, 0, 1) < 1:
            why = FULL_STATE
            break
        emitter = np.uint64(source)
        taken = by_source[emitter].first_unsent
        if taken >= 0:
            now = emits
            by_source[emitter].first_unsent = tuples[np.uint64(taken)].following
        elif by_source[emitter].serving >= 0:
            now = emits
            taken = by_source[emitter].serving
            by_source[emitter].serving = -1
        else:
            taken = scalars[0].first_free
            if taken < 0:
                why = FULL_TUPLES
                break
            if seq >= until.events_end:
                why = FULL_EVENTS
                break
            now = emits
            scalars[0].first_free = tuples[np.uint64(taken)].following
            place = np.uint64(seq & mask)
            tuples[np.uint64(taken)].seq = seq
            since = now if closed == 1 else stream.arrival[place]
            # Of a merged tuple nobody needs the arrival, but the window of its last original.
            tuples[np.uint64(taken)].arrival = get(stream.held_window, place, since)
            tuples[np.uint64(taken)].key = np.int64(stream.key[place])
            tuples[np.uint64(taken)].source = source
            put(state.cost, taken, get(stream.cost, place, 0))
            take_tuple(state.servers, by_source, stream.factor, emitter, place, seq)
            if closed == 1:
                note_origin(workers.held, seq, now)
                arrived = seq + 1
                by_source[emitter].pending += 1
                if begin_service(state.servers, by_source, emitter, taken, now):
                    close_source(by_source, scalars, source)
                    set_turn(state, stream, source, end, last)
                    continue
                if by_source[emitter].pending == most_pending:
                    close_source(by_source, scalars, source)
            else:
                by_source[emitter].next_tuple = seq + count if model.round_robin else stream.following[place]
        seq = tuples[np.uint64(taken)].seq
        key = tuples[np.uint64(taken)].key
        see(sources.cost, sources.slowdown, workers.service_model, key, state.cost[np.uint64(taken)], seq, now)
        view_slowness(workers.held, sources.slowdown, key, seq, tuples[np.uint64(taken)].arrival)
        worker = choose_one(grouping, sources, source, key, now)
        if worker < 0:
            fault = seq
            why = NO_WORKER
            break
        report(sources, events, place_of(events, seq), source, seq >= model.measured_from)
        by_source[emitter].ready_at = now
        judged = now
        fits = True
        if limit > 0:
            # Fullness is judged on arrival where full queues drop, else at the choice.
            if model.drops:
                judged += workers.delay
            _start(tuples, by_worker, scalars, worker, judged, light)
            fits = by_worker[np.uint64(worker)].waiting < limit
        if fits:
            idle = by_worker[np.uint64(worker)].first < 0
            finish = _accept(state, workers, events, worker, taken, now)
            if finish > MAX_TIME_NS:
                fault = seq
                why = TOO_LATE
                break
            if limit > 0:
                _queue(state, worker, taken, judged)
            elif light:
                # Nobody asks for it any more.
                free(tuples, scalars, taken)
            if idle and not light:
                set_leaf(event_time, event_worker, 0, worker, finish)
            leave(state.servers, tuples, by_source, source, taken, now, model.measured_from)
        elif model.drops:
            leave(state.servers, tuples, by_source, source, taken, now, model.measured_from)
            reject(state, events, worker, taken, judged)
            drop_rejected(state, events, np.int64(NEVER) if model.firm else now)
        else:
            block(by_source, by_worker, worker, source, taken, now)
            at_next = _next_event(tuples, by_worker, worker)
            if at_next != event_time[0, worker + (event_time.shape[1] >> 1)]:
                set_leaf(event_time, event_worker, 0, worker, at_next)
        if closed == 0 or by_source[emitter].first_unsent >= 0 or turn_time[0, 1] <= now:
            set_turn(state, stream, source, end, last)
        if closed == 1:
            if not fits:
                close_source(by_source, scalars, source)
            elif by_source[emitter].pending < most_pending:
                open_source(by_source, scalars, source)
    return why, Clock(now, arrived, by_tie, fault)
