"""What workers hold in a run where that costs: made from the plan, and what was found of it."""

from fractions import Fraction
from typing import NamedTuple

from streamgroup.replay.accounting.account import Meters
from streamgroup.replay.accounting.windows import WindowRule
from streamgroup.replay.scenario.plan import Plan
from streamgroup.replay.simulation.worker_state import Held, Windows, make_held
from streamgroup.traces.trace import Trace

__all__ = ["HeldFindings", "findings", "held_keys"]


class HeldFindings(NamedTuple):
    """The most entries that a finished tuple found on its worker, and the sum of the factors of all of them.

    Both are None where state costs nothing.
    """

    most: int | None
    slowdown_sum: Fraction | None


def held_keys(trace: Trace, plan: Plan, warmup: int, workers: int) -> Held | None:
    """Make what `workers` workers hold at the start, None where state costs nothing; `warmup` tuples are not measured.

    UsageError for windows that cannot be counted in 64 bits.
    """
    if plan.state is None:
        return None
    windows = None
    if (every := plan.options.aggregate_every) is not None:
        rule, warm = (WindowRule(every, count, "--aggregate-every") for count in (trace.tuples - warmup, trace.tuples))
        windows = Windows(rule.width_ns or 0, rule.length, warm.length, warmup)
    return make_held(plan.state, trace.keys, workers, windows, trace.tuples)


def findings(plan: Plan, meters: Meters) -> HeldFindings:
    """Return what was measured of the finished tuples."""
    if plan.state is None:
        return HeldFindings(None, None)
    _, most, over, entries_over, entries = meters.held.tolist()
    finished = int(meters.sums.parts.sum()) - int(meters.sums.lost.sum())
    return HeldFindings(most, plan.state.slowdown_sum(finished, entries, over, entries_over))
