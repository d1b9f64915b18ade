"""Exact divisions of integers, rounded once at the end; a ratio to 0 is None."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["I64", "NS_PER_MS", "NS_PER_S", "integers", "ratio"]

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

I64 = NDArray[np.int64]


def integers(values: I64) -> list[int]:
    """Return the values as Python ints, which no sum overflows."""
    return [int(value) for value in values]


def ratio(a: int | Fraction, b: int | Fraction) -> float | None:
    """Divide exactly and round once; None when b is 0."""
    return float(Fraction(a) / Fraction(b)) if b else None
