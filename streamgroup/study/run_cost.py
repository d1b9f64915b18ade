"""Estimates of what a replay costs: tuples a second by what slows it down, and the memory of the program itself."""

from collections.abc import Iterable

from streamgroup.replay.scenario.grouping_selection import Selection
from streamgroup.replay.scenario.plan import Plan

__all__ = ["BASE_MB", "CELL_S", "START_S", "TUPLES_PER_S", "receives_feedback", "what_slows"]

# Tuples a second, with all that is read and measured, on two cores of 2.5 GHz and 50 workers: in the feed-forward
# simulation, in the event-driven one (queues with a limit, redelivery, a closed loop) or with a grouping that receives
# feedback, and what slows them down.
TUPLES_PER_S = {
    "fast": 25_000_000, "random factors": 7_000_000, "log": 4_000_000, "ordered": 5_000_000, "held back": 700_000,
}  # fmt: skip
# Seconds in which the program starts and loads compiled code, and what a cell of a sweep takes for its tables.
START_S, CELL_S = 1.0, 0.05
# The program with its libraries, its compiled code and the chunks on their way.
BASE_MB = 320


def receives_feedback(selection: Selection) -> bool:
    """Return whether a grouping receives completion feedback."""
    members = vars(selection.module).values()
    return any(callable(getattr(member, "executed", None)) for member in members if isinstance(member, type))


def what_slows(plan: Plan, *, log: bool) -> Iterable[str]:
    """Name what decides how fast a plan runs: keys of TUPLES_PER_S."""
    yield "ordered" if plan.is_ordered or receives_feedback(plan.selection) else "fast"
    if plan.costs.distribution is not None or plan.arrivals.name.startswith("poisson"):
        yield "random factors"
    if plan.holds_back:
        yield "held back"
    if log:
        yield "log"
