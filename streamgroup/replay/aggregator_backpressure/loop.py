"""The event-driven simulation in which workers have partial results to send, and wait for aggregators that are full.

Unlike in `simulation.event_loop` it is not known when a tuple starts until it does: its worker may have to wait before.
Workers do not come or go, and no tuple is lost or dropped.

At one instant come places at aggregators, then the workers (their finishes, and the starts and places for sources that
follow from these), then the tuples in the order of the stream.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit, register_jitable
from streamgroup.kernels.ordered.tournament_tree import set_leaf
from streamgroup.replay.aggregator_backpressure.gather_partial_results import (
    ACTS,
    SENDS,
    finished,
    is_accepted,
    join,
    pop_active,
    push_active,
    turn_to_next_active,
)
from streamgroup.replay.aggregator_backpressure.send_partial_results import FULL_POOLS, give_place, send
from streamgroup.replay.simulation.choose import Sources, choose_one, report
from streamgroup.replay.simulation.event_loop import (
    DONE,
    FULL_EVENTS,
    FULL_STATE,
    FULL_TUPLES,
    MORE,
    NO_WORKER,
    TOO_LATE,
    Clock,
    deliver_finish,
    note_origin,
)
from streamgroup.replay.simulation.event_state import (
    State,
    block,
    certain,
    close_source,
    free,
    note_sent,
    open_source,
    place_of,
)
from streamgroup.replay.simulation.keys_held_by_workers import hold
from streamgroup.replay.simulation.optional_array_elements import get, put
from streamgroup.replay.simulation.read_ahead_buffer import Stream
from streamgroup.replay.simulation.serve import Workers, serve_one
from streamgroup.replay.simulation.source_server import begin_service, leave, take_tuple
from streamgroup.replay.simulation.turns_of_sources import set_turn
from streamgroup.replay.tuple_arrays import MAX_TIME_NS, NEVER, Events

__all__ = ["Job", "simulate"]


class Job(NamedTuple):
    """The edge from the sources to the workers, as `event_loop.simulate` takes it.

    A worker's queue in the state has the tuples that have not started only. `costs` float64[workers] see `send`.
    """

    sources: Sources
    workers: Workers
    state: State
    stream: Stream
    events: Events
    costs: NDArray[np.float64]


@njit
def _next_event(state: Any, gathering: Any, worker: Any) -> Any:
    """Return when a worker finishes its tuple or, if nothing holds it back, its next tuple reaches it."""
    serving = gathering.senders[worker].serving
    if serving >= 0:
        return state.tuples[serving].finish
    first = state.by_worker[worker].first
    if first >= 0 and gathering.senders[worker].first_row < 0:
        return state.tuples[first].reached
    return np.int64(NEVER)


@register_jitable
def _start(job: Any, gathering: Any, worker: Any, now: Any) -> Any:
    """Let a worker start the first tuple of its queue; return whether it finishes before the end of the clock."""
    state, workers, events = job.state, job.workers, job.events
    tuples, by_worker = state.tuples, state.by_worker
    taken = by_worker[worker].first
    by_worker[worker].first = tuples[taken].following
    seq = tuples[taken].seq
    place = place_of(events, seq)
    entries = get(events.held, place, 0)
    start, finish = serve_one(workers, np.uint64(worker), tuples[taken].key, state.cost[taken], seq, now, entries)
    if finish > MAX_TIME_NS:
        gathering.marks[0].fault = seq
        return False
    workers.free[worker] = finish
    tuples[taken].start = start
    tuples[taken].finish = finish
    events.start[place] = start
    certain(tuples, events, workers.waits, worker, taken, state.model.measured_from)
    gathering.senders[worker].serving = taken
    return True


@register_jitable
def _accept(job: Any, gathering: Any, worker: Any, taken: Any, now: Any) -> Any:
    """Send a tuple to a worker that has room for it; return whether it finishes before the end of the clock, if it
    starts at once."""
    state, workers, events = job.state, job.workers, job.events
    tuples, by_worker, senders, scalars = state.tuples, state.by_worker, gathering.senders, state.scalars
    key, seq, arrival = tuples[taken].key, tuples[taken].seq, tuples[taken].arrival
    entries = hold(workers.held, worker, key, seq, arrival)
    tuples[taken].reached = now + workers.delay
    tuples[taken].start = -1
    tuples[taken].finish = -1
    tuples[taken].following = -1
    note_sent(tuples, events, worker, taken)
    put(events.held, place_of(events, seq), entries)
    join(gathering, worker, taken, key)
    if by_worker[worker].first < 0:
        by_worker[worker].first = taken
    else:
        tuples[by_worker[worker].last].following = taken
    by_worker[worker].last = taken
    at_once = by_worker[worker].first == taken and tuples[taken].reached <= now
    if at_once and senders[worker].serving < 0 and senders[worker].first_row < 0:
        if not _start(job, gathering, worker, now):
            return False
    else:
        by_worker[worker].waiting += 1
    if seq >= state.model.measured_from:
        scalars[0].queue_max = max(scalars[0].queue_max, by_worker[worker].waiting)
    is_accepted(gathering, taken, arrival)
    return True


@register_jitable(forceinline=True)
def _finish(grouping: Any, job: Any, gathering: Any, worker: Any, now: Any) -> None:
    """Let a worker finish its tuple."""
    state, senders = job.state, gathering.senders
    tuples, by_source = state.tuples, state.by_source
    taken = senders[worker].serving
    senders[worker].serving = -1
    deliver_finish(job.sources.feedback, grouping, tuples, worker, taken, now)
    if state.model.max_pending > 0:
        its = tuples[taken].source
        by_source[its].pending -= 1
        if by_source[its].blocked < 0:
            open_source(by_source, state.scalars, its)
    finished(gathering, taken)
    free(tuples, state.scalars, taken)


@register_jitable
def _give_place(job: Any, gathering: Any, until: Any, worker: Any, now: Any) -> Any:
    """Accept the tuple of the source that has waited longest for a worker; return as `_accept` does."""
    state = job.state
    by_source, by_worker = state.by_source, state.by_worker
    source = by_worker[worker].first_waiter
    by_worker[worker].first_waiter = by_source[source].next_waiter
    if by_worker[worker].first_waiter < 0:
        by_worker[worker].last_waiter = -1
    waited = by_source[source].blocked
    by_source[source].blocked = -1
    if not _accept(job, gathering, worker, waited, now):
        return False
    by_source[source].ready_at = now
    leave(state.servers, state.tuples, by_source, source, waited, now, state.model.measured_from)
    set_turn(state, job.stream, source, until.end, until.last)
    if state.model.max_pending > 0 and by_source[source].pending < state.model.max_pending:
        open_source(by_source, state.scalars, source)
    return True


@register_jitable(forceinline=True)
def _act(grouping: Any, to: Any, job: Any, gathering: Any, sending: Any, until: Any, now: Any) -> Any:
    """Let the first worker that is about to do something do it; return DONE, or why it has to come back."""
    state, senders = job.state, gathering.senders
    tuples, by_worker = state.tuples, state.by_worker
    worker = gathering.marks[0].first_active
    what = senders[worker].active
    while True:
        if senders[worker].first_row >= 0 and senders[worker].blocked < 0:
            why = send(to, gathering, job.costs, sending, worker, now)
            if why != DONE:
                return why
        if what == SENDS:
            break
        serving, first = senders[worker].serving, by_worker[worker].first
        if serving >= 0:
            if what == ACTS and tuples[serving].finish <= now:
                _finish(grouping, job, gathering, worker, now)
                continue
        elif first >= 0 and senders[worker].first_row < 0 and tuples[first].reached <= now:
            by_worker[worker].waiting -= 1
            if not _start(job, gathering, worker, now):
                return TOO_LATE
            continue
        if by_worker[worker].first_waiter < 0 or by_worker[worker].waiting >= state.model.capacity:
            break
        if not _give_place(job, gathering, until, worker, now):
            return TOO_LATE
        if turn_to_next_active(gathering):
            # The last tuple of a window was accepted: what left goes first.
            return DONE
    pop_active(gathering)
    set_leaf(state.event_time, state.event_worker, 0, worker, _next_event(state, gathering, worker))
    return DONE


def simulate(grouping: Any, to: Any, job: Any, gathering: Any, sending: Any, until: Any) -> Any:
    """Send the tuples of the stream through the grouping, and partial results through the one `to` the aggregators;
    return why it stopped, and the clock.

    `until` ends one tuple before what was read, unless that is all: so windows that seem to be over are.
    """
    sources, state, stream, events = job.sources, job.state, job.stream, job.events
    end, last = until.end, until.last
    model = state.model
    most_pending = model.max_pending
    closed = np.int64(most_pending > 0)
    mask = stream.key.shape[0] - 1
    tuples, by_source, by_worker, scalars = state.tuples, state.by_source, state.by_worker, state.scalars
    marks, queues = gathering.marks, sending.queues
    count = np.int64(by_source.shape[0])
    arrived = until.clock.arrived
    fault: Any = np.int64(-1)
    by_tie: Any = np.int64(0)
    now = until.clock.now
    why: Any = DONE
    while True:
        if marks[0].free_rows <= count + 1:
            # At one instant each source may have a tuple that is accepted.
            why = FULL_POOLS
            break
        if marks[0].first_active >= 0:
            why = _act(grouping, to, job, gathering, sending, until, now)
            if why != DONE:
                fault = marks[0].fault
                break
            continue
        # What comes next: a place at an aggregator, an event of a worker, or a tuple.
        place, event = queues.place_time[0, 1], state.event_time[0, 1]
        emits, source = state.turn_time[0, 1], state.turn_source[0, 1]
        seq = state.turn_tuple[source]
        if closed == 0:
            if seq >= end and emits < NEVER and emits <= min(event, place):
                why = MORE
                break
        elif emits > now:
            # The next one of the stream, if a source may emit.
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
        following = min(place, event, emits)
        if following == NEVER:
            break
        if place == following:
            now = place
            give_place(gathering, queues, queues.place_aggregator[0, 1])
            continue
        if event == following:
            now = event
            push_active(gathering, state.event_worker[0, 1], ACTS)
            continue
        if get(sources.room, 0, 1) < 1:
            why = FULL_STATE
            break
        if by_source[source].serving >= 0:
            now = emits
            taken = by_source[source].serving
            by_source[source].serving = -1
        else:
            taken = scalars[0].first_free
            if taken < 0:
                why = FULL_TUPLES
                break
            if seq >= until.events_end:
                why = FULL_EVENTS
                break
            now = emits
            scalars[0].first_free = tuples[taken].following
            at = np.uint64(seq & mask)
            tuples[taken].seq = seq
            tuples[taken].arrival = now if closed == 1 else stream.arrival[at]
            tuples[taken].key = np.int64(stream.key[at])
            tuples[taken].source = source
            gathering.tuples[taken].window = gathering.window_of[at]
            put(state.cost, taken, get(stream.cost, at, 0))
            take_tuple(state.servers, by_source, stream.factor, source, at, seq)
            if closed == 1:
                note_origin(job.workers.held, seq, now)
                arrived = seq + 1
                by_source[source].pending += 1
                if begin_service(state.servers, by_source, source, taken, now):
                    close_source(by_source, scalars, source)
                    set_turn(state, stream, source, end, last)
                    continue
                if by_source[source].pending == most_pending:
                    close_source(by_source, scalars, source)
            else:
                by_source[source].next_tuple = seq + count if model.round_robin else stream.following[at]
        seq = tuples[taken].seq
        worker = choose_one(grouping, sources, source, tuples[taken].key, now)
        if worker < 0:
            fault = seq
            why = NO_WORKER
            break
        report(sources, events, place_of(events, seq), source, seq >= model.measured_from)
        by_source[source].ready_at = now
        fits = by_worker[worker].waiting < model.capacity
        if fits:
            if not _accept(job, gathering, worker, taken, now):
                fault = seq
                why = TOO_LATE
                break
            set_leaf(state.event_time, state.event_worker, 0, worker, _next_event(state, gathering, worker))
            leave(state.servers, tuples, by_source, source, taken, now, model.measured_from)
        else:
            block(by_source, by_worker, worker, source, taken, now)
        if closed == 0 or state.turn_time[0, 1] <= now:
            set_turn(state, stream, source, end, last)
        if closed == 1:
            if not fits:
                close_source(by_source, scalars, source)
            elif by_source[source].pending < most_pending:
                open_source(by_source, scalars, source)
    return why, Clock(now, arrived, by_tie, fault)
