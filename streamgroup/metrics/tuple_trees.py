"""Latency of tuple trees: that of a tree's last tuple to finish (002: a tweet is done when its last word is)."""

from fractions import Fraction

from streamgroup.metrics.exact_ratios import NS_PER_MS, ratio
from streamgroup.metrics.latency import quantile_ns
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["measure"]

_QUANTILES = {"p50": Fraction(1, 2), "p95": Fraction(95, 100), "p99": Fraction(99, 100)}


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the latencies of the finished trees in ms, and their number; None for a trace without trees."""
    found = outcome.trees
    if found is None:
        return {}
    metrics: dict[str, Number] = {
        "trees": found.trees,
        "latency_tree_mean_ms": ratio(found.sum_ns, found.trees * NS_PER_MS),
        "latency_tree_max_ms": ratio(found.max_ns, NS_PER_MS) if found.trees else None,
    }
    for name, quantile in _QUANTILES.items():
        value = quantile_ns(found.histogram, quantile, found.min_ns, found.max_ns)
        metrics[f"latency_tree_{name}_ms"] = None if value is None else value / NS_PER_MS
    return metrics
