"""Changes of the workers in an open loop: at which time and before which tuple each comes, known before the run."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import RunError
from streamgroup.cluster.membership import Event
from streamgroup.replay.input.make_arrivals import make_arrivals
from streamgroup.replay.live_workers import Members
from streamgroup.replay.scenario.plan import Plan
from streamgroup.replay.tuple_arrays import NEVER
from streamgroup.traces.trace import Trace

__all__ = ["deaths", "timed_events"]

I64 = NDArray[np.int64]


def _places(trace: Trace, plan: Plan) -> list[tuple[int, int, Event]]:
    """Return before which tuple and when each event comes, in order, in an open loop: known without a run."""
    arrivals = make_arrivals(trace, plan)
    assert arrivals is not None
    place = dict.fromkeys((event.number for event in plan.events), trace.tuples)
    when = {event.number: event.time_ns or 0 for event in plan.events}
    column = "timestamp" if plan.arrivals.name == "trace" else "key_id"
    for batch in trace.batches((column,)):
        rows = batch.timestamp if batch.timestamp is not None else batch.key_id
        assert rows is not None
        arrival = arrivals.chunk(batch.offset, batch.timestamp, len(rows))
        for event in plan.events:
            if event.time_ns is not None:
                here = int(np.searchsorted(arrival, event.time_ns, side="left"))
                place[event.number] = min(
                    place[event.number], batch.offset + here if here < len(rows) else trace.tuples
                )
            elif event.index is not None and batch.offset <= event.index < batch.offset + len(rows):
                place[event.number], when[event.number] = event.index, int(arrival[event.index - batch.offset])
        if max(place.values()) < trace.tuples:
            break
    found = [(place[event.number], when[event.number], event) for event in plan.events]
    return sorted(found, key=lambda item: (item[0], item[1], item[2].number))


def timed_events(trace: Trace, plan: Plan) -> list[Event]:
    """Return the changes of the workers, those at an index at the time at which that tuple arrives."""
    when = {event.number: time for _, time, event in _places(trace, plan)} if plan.events else {}
    return [
        event if event.index is None else replace(event, index=None, time_ns=when[event.number])
        for event in plan.events
    ]


def deaths(trace: Trace, plan: Plan) -> I64:
    """Return when each worker will crash, else `NEVER`: where queues have no limit, what is lost follows from it."""
    members = Members(plan.events, plan.options.workers, plan.options.seed)
    dies = np.full(members.most, NEVER, dtype=np.int64)
    for place, when, event in _places(trace, plan):
        try:
            change = members.apply(event, when, place)
        except RunError:
            # The run will say so, if it comes so far.
            break
        if event.kind == "crash":
            dies[list(change.left)] = when
    return dies
