"""The event-driven simulation of sources that take a time and are never held back: the only events are that a source
has served a tuple.

It does what `event_loop.simulate` does where queues have no limit, no worker comes or goes and the grouping receives no
feedback, with less to look at: a tuple is sent to its worker, which will serve it, and is done with.
"""

from typing import Any

import numpy as np

from streamgroup.replay.simulation.choose import choose_one, report, see
from streamgroup.replay.simulation.event_loop import (
    DONE,
    FULL_EVENTS,
    FULL_STATE,
    MORE,
    NO_WORKER,
    TOO_LATE,
    Clock,
)
from streamgroup.replay.simulation.event_state import Model, place_of
from streamgroup.replay.simulation.keys_held_by_workers import hold, view_slowness
from streamgroup.replay.simulation.optional_array_elements import get, put
from streamgroup.replay.simulation.serve import serve_one
from streamgroup.replay.simulation.source_server import account_service
from streamgroup.replay.simulation.turns_of_sources import set_turn
from streamgroup.replay.tuple_arrays import MAX_TIME_NS, NEVER

__all__ = ["are_alone", "send_served"]


def are_alone(model: Model, *, changes: bool) -> bool:
    """Return whether nothing holds sources back; `changes` says whether workers come or go."""
    return model.light and model.capacity == 0 and not changes


def send_served(grouping: Any, sources: Any, workers: Any, state: Any, stream: Any, events: Any, until: Any) -> Any:
    """Send the tuples of the stream as their sources have served them; as `event_loop.simulate` in all else."""
    end, last, measured_from = until.end, until.last, state.model.measured_from
    mask = stream.key.shape[0] - 1
    by_source, turn_time, turn_source = state.by_source, state.turn_time, state.turn_source
    count = np.int64(by_source.shape[0])
    now = until.clock.now
    fault: Any = np.int64(-1)
    while True:
        leaves, source = turn_time[0, 1], turn_source[0, 1]
        seq = state.turn_tuple[np.uint64(source)]
        if leaves == NEVER:
            why = DONE
            break
        if seq >= end:
            why = MORE
            break
        if get(sources.room, 0, 1) < 1:
            why = FULL_STATE
            break
        if seq >= until.events_end:
            why = FULL_EVENTS
            break
        now = leaves
        place, row = np.uint64(seq & mask), np.uint64(source)
        key, arrival, cost = np.int64(stream.key[place]), stream.arrival[place], get(stream.cost, place, 0)
        see(sources.cost, sources.slowdown, workers.service_model, key, cost, seq, now)
        view_slowness(workers.held, sources.slowdown, key, seq, arrival)
        worker = choose_one(grouping, sources, source, key, now)
        if worker < 0:
            why, fault = NO_WORKER, seq
            break
        at, to = place_of(events, seq), np.uint64(worker)
        report(sources, events, at, source, seq >= measured_from)
        reached = now + workers.delay
        entries = hold(workers.held, worker, key, seq, arrival)
        start, finish = serve_one(workers, to, key, cost, seq, reached, entries)
        if finish > MAX_TIME_NS:
            why, fault = TOO_LATE, seq
            break
        workers.free[to] = finish
        events.source[at] = source
        events.key[at] = key
        events.worker[at] = worker
        events.arrival[at] = arrival
        events.start[at] = start
        events.finish[at] = finish
        put(events.held, at, entries)
        if seq >= measured_from:
            workers.waits[to] = max(workers.waits[to], start - reached)
            account_service(state.servers, stream.factor, row, place, now - arrival)
        by_source[row].idle_at = by_source[row].ready_at = now
        by_source[row].next_tuple = seq + count if state.model.round_robin else stream.following[place]
        set_turn(state, stream, source, end, last)
    return why, Clock(now, until.clock.arrived, until.clock.by_tie, fault)
