"""How much of the makespan the workers were busy; the mean is never given without the maximum."""

from streamgroup.metrics.exact import integers, ratio
from streamgroup.metrics.makespan import makespan_ns
from streamgroup.metrics.names import Number
from streamgroup.replay.outcome import Outcome

__all__ = ["measure", "of_workers"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Give mean and maximum utilization, 0..1; None for a run that took no time."""
    busy, makespan = integers(outcome.worker.busy_ns), makespan_ns(outcome)
    return {
        "utilization_mean": ratio(sum(busy), len(busy) * makespan),
        "utilization_max": ratio(max(busy), makespan),
    }


def of_workers(outcome: Outcome) -> list[float | None]:
    """Give each worker's utilization; an idle worker's is 0, all are None for a run that took no time."""
    makespan = makespan_ns(outcome)
    return [ratio(busy, makespan) for busy in integers(outcome.worker.busy_ns)]
