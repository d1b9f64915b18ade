"""The arrival times that a plan asks for, and how many tuples arrive before a time."""

from fractions import Fraction

import numpy as np

from streamgroup.base.errors import UsageError
from streamgroup.replay.input.arrivals import (
    Arrivals,
    ConstantArrivals,
    PoissonArrivals,
    TraceArrivals,
    find_ties,
)
from streamgroup.replay.scenario.arrivals_option import SEARCHED
from streamgroup.replay.scenario.plan import Plan, trace_span
from streamgroup.traces.trace import Trace

__all__ = ["make_arrivals", "tuples_before"]


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
