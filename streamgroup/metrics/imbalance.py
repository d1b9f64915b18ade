"""Imbalance of the tuples over the workers: in total, over time, and within each window."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from streamgroup.metrics.exact_ratios import I64, integers, ratio
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome, WindowTable

__all__ = [
    "cumulative_imbalance",
    "deviation",
    "imbalance",
    "measure",
    "own_imbalance",
    "peak_to_mean",
    "row_deviation",
    "skew_score",
]


def imbalance(loads: list[int]) -> float | None:
    """Return max_w L_w - mean_w L_w, L_w the share of worker w (001 section II); None of nothing."""
    total = sum(loads)
    return ratio(len(loads) * max(loads) - total, len(loads) * total)


def peak_to_mean(loads: list[int]) -> float | None:
    """Return the largest load over the mean load; None of nothing."""
    return ratio(max(loads) * len(loads), sum(loads))


def deviation(values: list[int]) -> float:
    """Return the population standard deviation; the variance is exact before the root."""
    n = len(values)
    spread = n * sum(value * value for value in values) - sum(values) ** 2
    return float(np.sqrt(np.float64(spread)) / n)


def row_deviation(table: I64, among: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return the population standard deviation of each row: float64[r] from int64[r, n] of values >= 0.

    `among` bool[r, n] marks which values of a row count, at least one of each; None: all. Exact before the root: the
    squares are Python ints where they could pass 2^63.
    """
    counted = table if among is None else np.where(among, table, 0)
    n = np.full(len(table), table.shape[1], dtype=np.int64) if among is None else among.sum(axis=1, dtype=np.int64)
    total = counted.sum(axis=1)
    if table.shape[1] * int(total.max(initial=0)) ** 2 < 1 << 62:
        spread = n * np.einsum("ij,ij->i", counted, counted) - total * total
        rooted: NDArray[np.float64] = np.sqrt(spread.astype(np.float64)) / n
        return rooted
    rows = table if among is None else (row[kept] for row, kept in zip(table, among, strict=True))
    return np.array([deviation(integers(row)) for row in rows], dtype=np.float64)


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the imbalance family (001 section II, figs. 10 and 11; 002 fig. 17; 003 eq. 7) in accepted deliveries.

    The totals are over the workers ever alive, a window's own figures over those alive at its end. A window in which
    nothing was accepted has no imbalance.
    """
    loads = integers(outcome.worker.tuples)
    windows = outcome.window
    grown, own = _that_exist(cumulative_imbalance(windows)), _that_exist(own_imbalance(windows))
    return {
        "imbalance": imbalance(loads),
        "imbalance_mean": _mean(grown),
        "window_imbalance_mean": _mean(own),
        "window_imbalance_max": float(own.max()) if len(own) else None,
        "peak_to_mean": peak_to_mean(loads),
        "load_stddev_percent": ratio(Fraction(100 * deviation(loads)), sum(loads)),
        "window_load_stddev_mean": _mean(row_deviation(windows.tuples, windows.alive)),
        "skew_score": skew_score(loads),
        "idle_workers": loads.count(0),
    }


def skew_score(loads: list[int]) -> float:
    """Return Flink's data-skew score (FLINK-34025): mean absolute deviation over mean, in percent, at most 100.

    Nothing is not skewed: 0.
    """
    total = sum(loads)
    if total == 0:
        return 0.0
    off = sum(abs(len(loads) * load - total) for load in loads)
    return float(min(Fraction(100), Fraction(100 * off, len(loads) * total)))


def cumulative_imbalance(windows: WindowTable) -> NDArray[np.float64]:
    """Return the imbalance of all tuples up to the end of each window, over all workers live by then: float64[r].

    The shares are of all those tuples; one who joins later may have got one of them, delivered again. NaN as long as
    nothing was accepted.
    """
    grown = np.cumsum(windows.tuples, axis=0, dtype=np.int64)
    ever = windows.ever
    return _row_imbalance(grown, None if ever is None else np.arange(grown.shape[1]) < ever[:, None])


def own_imbalance(windows: WindowTable) -> NDArray[np.float64]:
    """Return the imbalance of each window's own tuples, among the workers alive at its end: float64[r].

    The shares are of all tuples of the window, also those that went to workers that are gone. NaN where nothing was
    accepted.
    """
    return _row_imbalance(windows.tuples, windows.alive)


def _row_imbalance(loads: I64, among: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    total = loads.sum(axis=1)
    theirs, count = loads, np.full(len(loads), loads.shape[1], dtype=np.int64)
    if among is not None:
        theirs, count = np.where(among, loads, 0), among.sum(axis=1, dtype=np.int64)
    # The numerator is an exact integer (tuples x workers stays far below 2^63), so nothing cancels in floats.
    above, whole = count * theirs.max(axis=1, initial=0) - theirs.sum(axis=1), count * total
    shares = np.full(len(loads), np.nan)
    np.divide(above.astype(np.float64), whole.astype(np.float64), out=shares, where=whole > 0)
    return shares


def _that_exist(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]


def _mean(values: NDArray[np.float64]) -> float | None:
    # fsum rounds once, so the mean does not depend on how the windows are added.
    return math.fsum(values.tolist()) / len(values) if len(values) else None
