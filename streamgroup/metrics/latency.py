"""Latency (finish minus arrival): exact mean and extremes, percentiles by nearest rank from pooled histograms."""

import functools
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.latency_histogram import lower_bounds
from streamgroup.metrics.exact_ratios import I64, NS_PER_MS, integers, ratio
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome, WindowTable, WorkerTable

__all__ = ["measure", "middles", "quantile_ns", "window_quantiles_ms", "worker_latencies"]

_QUANTILES = {
    "p50": Fraction(1, 2),
    "p95": Fraction(95, 100),
    "p99": Fraction(99, 100),
    "p999": Fraction(999, 1000),
}


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the latency family in ms, over all finished tuples (never a mean of percentiles); 001 fig. 14.

    Of the mean, `service_ms_mean` is service; the rest is waiting, and the network.
    """
    workers = outcome.worker
    pooled = workers.histogram.sum(axis=0)
    limits = outcome.latency_min_ns, outcome.latency_max_ns
    found: dict[str, Number] = {
        "latency_mean_ms": ratio(sum(workers.latency_sum_ns), sum(integers(workers.served)) * NS_PER_MS),
        "latency_max_ms": ratio(outcome.latency_max_ns, NS_PER_MS) if workers.served.any() else None,
    }
    for name, quantile in _QUANTILES.items():
        value = quantile_ns(pooled, quantile, *limits)
        found[f"latency_{name}_ms"] = None if value is None else value / NS_PER_MS
    pairs = zip(workers.latency_sum_ns, integers(workers.served), strict=True)
    worst = max((Fraction(total, tuples) for total, tuples in pairs if tuples), default=None)
    found["service_ms_mean"] = ratio(sum(integers(workers.busy_ns)), sum(integers(workers.served)) * NS_PER_MS)
    found["latency_worst_worker_mean_ms"] = None if worst is None else ratio(worst, NS_PER_MS)
    return found


@functools.cache
def middles() -> NDArray[np.float64]:
    """Return the middle of the whole numbers in every bucket: float64[BUCKETS], in ns, read-only."""
    low = lower_bounds()
    high = np.maximum(np.append(low[1:] - 1, low[-1]), low)
    middle: NDArray[np.float64] = (low.astype(np.float64) + high.astype(np.float64)) / 2
    middle.flags.writeable = False
    return middle


def quantile_ns(histogram: I64, quantile: Fraction, low: int, high: int) -> float | None:
    """Return the entry of rank ceil(quantile x entries), in ns, from a histogram of buckets; None of no entry.

    Within 0.4 % of the exact one, and between `low` and `high`, which bound the entries.
    """
    seen = np.cumsum(histogram)
    total = int(seen[-1])
    if total == 0:
        return None
    bucket = int(np.searchsorted(seen, _rank(total, quantile)))
    return float(min(max(middles()[bucket], low), high))


def window_quantiles_ms(windows: WindowTable) -> NDArray[np.float64]:
    """Return the percentiles of each window in ms, float64[r, 6]: within the window's own bounds.

    Of a window that served nothing they mean nothing.
    """
    low = windows.latency_min_ns.astype(np.float64)[:, None]
    high = windows.latency_max_ns.astype(np.float64)[:, None]
    bounded: NDArray[np.float64] = np.clip(windows.quantile_ns, low, high) / NS_PER_MS
    return bounded


def worker_latencies(outcome: Outcome) -> tuple[list[float | None], list[float | None]]:
    """Return each worker's mean and 99th percentile in ms; None for one that finished no tuple."""
    workers: WorkerTable = outcome.worker
    means = [
        ratio(total, tuples * NS_PER_MS)
        for total, tuples in zip(workers.latency_sum_ns, integers(workers.served), strict=True)
    ]
    found = (
        quantile_ns(row, _QUANTILES["p99"], outcome.latency_min_ns, outcome.latency_max_ns) for row in workers.histogram
    )
    return means, [None if value is None else value / NS_PER_MS for value in found]


def _rank(total: int, quantile: Fraction) -> int:
    return max(-(-total * quantile.numerator // quantile.denominator), 1)
