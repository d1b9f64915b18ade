"""Exact divisions of integers, rounded once at the end; a ratio to 0 is None."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "I64",
    "NS_PER_MS",
    "NS_PER_S",
    "deviation",
    "imbalance",
    "integers",
    "peak_to_mean",
    "ratio",
    "row_deviation",
]

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

I64 = NDArray[np.int64]


def integers(values: I64) -> list[int]:
    """Return the values as Python ints, which no sum overflows."""
    return [int(value) for value in values]


def ratio(a: int | Fraction, b: int | Fraction) -> float | None:
    """Divide exactly and round once; None when b is 0."""
    return float(Fraction(a) / Fraction(b)) if b else None


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
