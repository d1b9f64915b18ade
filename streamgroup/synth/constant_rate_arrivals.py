"""Arrival times of synthetic streams: tuples at a constant interval."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrival_times"]


def arrival_times(start: int, interval: Fraction, first: int, rows: int) -> NDArray[np.int64]:
    """Return the times in us of the tuples first, ..., first + rows - 1 (rows up to 2^20).

    Tuple i comes at start + floor(i * interval), exactly, for intervals of which the numerator is at most 10^12 or the
    denominator at most 10^6.
    """
    # The rest is below the denominator and not above the numerator: 2^20 times it stays below 2^63.
    step, rest = divmod(interval.numerator, interval.denominator)
    whole, begun = divmod(first * rest, interval.denominator)
    index = np.arange(rows, dtype=np.int64)
    return index * step + (index * rest + begun) // interval.denominator + (start + first * step + whole)
