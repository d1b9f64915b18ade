"""The event-driven simulation of sources that take a time and are never held back: the only events are that a source
has served a tuple.

It does what `event_loop.simulate` does where queues have no limit, no worker comes or goes and the grouping receives no
feedback, with less to look at: a tuple is sent to its worker, which will serve it, and is done with.
"""

from typing import Any

import numpy as np

from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.simulation.choose import Sources, choose_one, report, see
from streamgroup.replay.simulation.chunk_driven import Setup
from streamgroup.replay.simulation.event_driven import EventDriven, Queues, Taker
from streamgroup.replay.simulation.event_loop import FULL_EVENTS, FULL_STATE, MORE, NO_WORKER, TOO_LATE, Clock, Until
from streamgroup.replay.simulation.event_state import place_of
from streamgroup.replay.simulation.keys_held_by_workers import hold, view_slowness
from streamgroup.replay.simulation.optional_array_elements import get, put
from streamgroup.replay.simulation.order_of_service import BLOCK, OrderOfService
from streamgroup.replay.simulation.serve import serve_one
from streamgroup.replay.simulation.source_server import account_service
from streamgroup.replay.tuple_arrays import MAX_TIME_NS

__all__ = ["SourcesNeverBlocked", "are_never_blocked", "send_served"]


def are_never_blocked(setup: Setup, queues: Queues) -> bool:
    """Return whether sources take a time, and nothing holds them back."""
    limits = queues.capacity or queues.max_pending or setup.members.events
    return setup.edge.source_ns is not None and not limits and not setup.grouping.has_feedback


def send_served(
    grouping: Any, sources: Any, workers: Any, state: Any, stream: Any, events: Any, until: Any, leaving: Any
) -> Any:
    """Send tuples as they leave their sources; as `event_loop.simulate` in all else."""
    measured_from = state.model.measured_from
    mask = stream.key.shape[0] - 1
    now = until.clock.now
    why = MORE
    fault: Any = np.int64(-1)
    sent = leaving.sent[0]
    while sent < leaving.seq.shape[0]:
        at = np.uint64(sent)
        seq = leaving.seq[at]
        if get(sources.room, 0, 1) < 1:
            why = FULL_STATE
            break
        if seq >= until.events_end:
            why = FULL_EVENTS
            break
        now, source = leaving.leaves[at], np.int64(leaving.source[at])
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
        sent += 1
    leaving.sent[0] = sent
    return why, Clock(now, until.clock.arrived, until.clock.by_tie, fault)


class SourcesNeverBlocked(EventDriven):
    """Calls the loop above."""

    def __init__(self, setup: Setup, queues: Queues, span: tuple[int, int], taker: Taker, *, round_robin: bool) -> None:
        super().__init__(setup, queues, span, taker, round_robin=round_robin)
        assert setup.edge.source_ns is not None
        self._run = setup.function(send_served, own=True)
        self._order = OrderOfService(setup.function, setup.edge.source_ns)

    def _unsent(self) -> int:
        return self._order.first_unsent(self._end)

    def chunk(self, ready: Ready) -> None:
        """Send the tuples of a chunk that leave before any that was not read."""
        self._costs = ready.cost is not None
        self._load(ready)
        size = len(ready.key)
        for begin in range(0, size, BLOCK):
            end = min(begin + BLOCK, size)
            self._order.read(ready, begin, end)
            while self._order.next(last=bool(self._last) and end == size):
                self._advance()

    def _simulate(self, sources: Sources, until: Until) -> tuple[int, Clock]:
        found: tuple[int, Clock] = self._run(
            self._grouping.hooks, sources, self._workers, self._state, self._stream, self._events, until,
            self._order.now,
        )  # fmt: skip
        return found
