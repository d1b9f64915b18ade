"""Latency of tuple trees, the obvious way: a dict of the tuples of each."""

from fractions import Fraction
from typing import Any

from tests.naive.metrics.metric_formulas import as_float, mean, nearest_rank

__all__ = ["tree_metrics"]

MILLISECOND = 1_000_000


def tree_metrics(
    parents: list[int], arrivals: list[int], finishes: list[int | None], warmup: int = 0
) -> dict[str, Any]:
    """Of trees whose first tuple is not among the `warmup` first of all and of which every tuple finished."""
    trees: dict[int, list[int]] = {}
    for number, parent in enumerate(parents):
        trees.setdefault(parent, []).append(number)
    latencies = []
    for numbers in trees.values():
        done = [finishes[number] for number in numbers]
        if numbers[0] >= warmup and None not in done:
            latencies.append(max(done) - min(arrivals[number] for number in numbers))  # type: ignore[type-var, operator]
    found: dict[str, Any] = {
        "trees": len(latencies),
        "latency_tree_mean_ms": as_float(mean(latencies), MILLISECOND) if latencies else None,
        "latency_tree_max_ms": as_float(max(latencies), MILLISECOND) if latencies else None,
    }
    for name, quantile in (("p50", Fraction(1, 2)), ("p95", Fraction(95, 100)), ("p99", Fraction(99, 100))):
        rank = nearest_rank(latencies, quantile) if latencies else None
        found[f"latency_tree_{name}_ms"] = as_float(rank, MILLISECOND)
    return found
