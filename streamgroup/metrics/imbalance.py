"""How unevenly the tuples fell on the workers: in total, as it grew, and within each window."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from streamgroup.metrics.exact import I64, deviation, imbalance, integers, peak_to_mean, ratio, row_deviation
from streamgroup.metrics.names import Number
from streamgroup.replay.outcome import Outcome, WindowTable

__all__ = ["cumulative_imbalance", "measure", "own_imbalance", "skew_score"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Give the imbalance family (001 section II, figs. 10 and 11; 002 fig. 17; 003 eq. 7) in tuples."""
    loads = integers(outcome.worker.tuples)
    windows = outcome.window
    grown, own = cumulative_imbalance(windows), own_imbalance(windows)
    return {
        "imbalance": imbalance(loads),
        "imbalance_mean": _mean(grown),
        "window_imbalance_mean": _mean(own),
        "window_imbalance_max": float(own.max()) if len(own) else None,
        "peak_to_mean": peak_to_mean(loads),
        "load_stddev_percent": ratio(Fraction(100 * deviation(loads)), sum(loads)),
        "window_load_stddev_mean": _mean(row_deviation(windows.tuples)),
        "skew_score": skew_score(loads),
        "idle_workers": loads.count(0),
    }


def skew_score(loads: list[int]) -> float:
    """Give Flink's data-skew score (FLINK-34025): mean absolute deviation over mean, in percent, at most 100.

    Nothing is not skewed: 0.
    """
    total = sum(loads)
    if total == 0:
        return 0.0
    off = sum(abs(len(loads) * load - total) for load in loads)
    return float(min(Fraction(100), Fraction(100 * off, len(loads) * total)))


def cumulative_imbalance(windows: WindowTable) -> NDArray[np.float64]:
    """Give the imbalance of all tuples up to the end of each window: float64[r]."""
    return _row_imbalance(np.cumsum(windows.tuples, axis=0, dtype=np.int64))


def own_imbalance(windows: WindowTable) -> NDArray[np.float64]:
    """Give the imbalance of each window's own tuples: float64[r]."""
    return _row_imbalance(windows.tuples)


def _row_imbalance(loads: I64) -> NDArray[np.float64]:
    # The numerator is an exact integer (tuples x workers stays far below 2^63), so nothing cancels in floats.
    workers = loads.shape[1]
    total = loads.sum(axis=1)
    above = workers * loads.max(axis=1, initial=0) - total
    shares: NDArray[np.float64] = above.astype(np.float64) / (workers * total).astype(np.float64)
    return shares


def _mean(values: NDArray[np.float64]) -> float | None:
    # fsum rounds once, so the mean does not depend on how the windows are added.
    return math.fsum(values.tolist()) / len(values) if len(values) else None
