"""Virtual run time, and the rate that the run and its most loaded worker sustain."""

from fractions import Fraction

from streamgroup.metrics.exact_ratios import NS_PER_S, integers, ratio
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["makespan_ns", "measure"]


def makespan_ns(outcome: Outcome) -> int:
    """Return the time from the first measured arrival to the last finish (000: execution time); 0 if none finished."""
    last = outcome.last_finish_ns
    return 0 if last is None else last - outcome.first_arrival_ns


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return makespan, throughput and offered load; the lower bound is that of 004 section IV-A.

    The bound holds only as long as speeds and workers stay as they are.
    """
    makespan = makespan_ns(outcome)
    finished = sum(integers(outcome.worker.served))
    bound: int | Fraction = 0
    if outcome.steady:
        speed = sum((1 / factor for factor in outcome.slowdown), Fraction(0))
        bound = max(outcome.base_work_ns / speed, outcome.longest_cost_ns * min(outcome.slowdown))
    return {
        "makespan_s": None if outcome.last_finish_ns is None else ratio(makespan, NS_PER_S),
        "makespan_vs_lower_bound": ratio(makespan, bound),
        "throughput_tps": ratio(finished * NS_PER_S, makespan),
        "throughput_limit_tps": ratio(finished * NS_PER_S, max(integers(outcome.worker.busy_ns))),
        "offered_load": None if outcome.offered_load is None else float(outcome.offered_load),
    }
