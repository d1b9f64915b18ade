"""Arrivals and changes of the workers in an open loop, which are known before the run."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import RunError, UsageError
from streamgroup.cluster.membership import Event
from streamgroup.replay.input.arrivals import (
    SEARCHED,
    Arrivals,
    ConstantArrivals,
    PoissonArrivals,
    TraceArrivals,
    find_ties,
)
from streamgroup.replay.scenario.live_workers import Members
from streamgroup.replay.scenario.plan import Plan, trace_span
from streamgroup.replay.tuple_arrays import NEVER
from streamgroup.traces.trace import Trace

__all__ = ["deaths", "make_arrivals", "timed_events", "tuples_before"]

I64 = NDArray[np.int64]


def make_arrivals(trace: Trace, plan: Plan) -> Arrivals | None:
    """Make the arrival times; None for a closed loop, which finds them itself."""
    kind, tuples = plan.arrivals, trace.tuples
    if kind.name == "saturate":
        return None
    if kind.name in SEARCHED:
        raise UsageError(f"--arrivals {kind.name} is a search, and this is one run", "use replay, sweep or rate=R")
    if kind.name == "trace":
        ties = None
        if plan.options.spread_ties:
            batches = trace.batches(("timestamp",))
            ties = find_ties((b.offset, b.timestamp) for b in batches if b.timestamp is not None)
        return TraceArrivals(*trace_span(trace), plan.speedup, ties)
    assert kind.value is not None
    spacing = 1 / (kind.value * plan.capacity) if "utilization" in kind.name else Fraction(10**9) / kind.value
    if kind.name in ("rate", "utilization"):
        return ConstantArrivals(spacing, tuples)
    return PoissonArrivals(spacing, tuples, plan.options.seed)


def tuples_before(trace: Trace, plan: Plan, at_ns: int) -> int:
    """Count the tuples that arrive before a time, in an open loop."""
    arrivals = make_arrivals(trace, plan)
    assert arrivals is not None
    column = "timestamp" if plan.arrivals.name == "trace" else "key_id"
    before = 0
    for batch in trace.batches((column,)):
        rows = batch.timestamp if batch.timestamp is not None else batch.key_id
        assert rows is not None
        arrival = arrivals.chunk(batch.offset, batch.timestamp, len(rows))
        before += int(np.searchsorted(arrival, at_ns, side="left"))
        if before < batch.offset + len(rows):
            break
    return before


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
