"""Imbalance of the work over the workers: the imbalance metrics in service time instead of tuples (004)."""

from streamgroup.metrics.exact_ratios import integers
from streamgroup.metrics.imbalance import imbalance, peak_to_mean
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["measure"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return imbalance and peak-to-mean of the busy times; None when no tuple took any time."""
    busy = integers(outcome.worker.busy_ns)
    return {"work_imbalance": imbalance(busy), "work_peak_to_mean": peak_to_mean(busy)}
