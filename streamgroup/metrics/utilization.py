"""Utilization of the workers while they were alive; the mean never comes without the maximum."""

from fractions import Fraction

from streamgroup.metrics.exact_ratios import integers, ratio
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["measure", "of_workers"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return mean and maximum utilization, 0..1, of the workers alive within the makespan; None without any."""
    found = [Fraction(busy, alive) for busy, alive in _times(outcome) if alive]
    return {
        "utilization_mean": ratio(sum(found), len(found)),
        "utilization_max": float(max(found)) if found else None,
    }


def of_workers(outcome: Outcome) -> list[float | None]:
    """Return each worker's utilization; an idle worker's is 0, None is that of one not alive within the makespan."""
    return [ratio(busy, alive) for busy, alive in _times(outcome)]


def _times(outcome: Outcome) -> list[tuple[int, int]]:
    """Return each worker's busy time and the part of the makespan for which it was alive, in ns."""
    workers = outcome.worker
    busy = integers(workers.busy_ns)
    begin = outcome.first_arrival_ns
    end = begin if outcome.last_finish_ns is None else outcome.last_finish_ns
    joined = [begin] * len(busy) if workers.alive_from_ns is None else integers(workers.alive_from_ns)
    gone = [end] * len(busy) if workers.alive_to_ns is None else integers(workers.alive_to_ns)
    alive = (max(min(b, end) - max(a, begin), 0) for a, b in zip(joined, gone, strict=True))
    return list(zip(busy, alive, strict=True))
