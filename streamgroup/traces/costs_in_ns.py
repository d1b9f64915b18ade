"""Costs of tuples as whole nanoseconds."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["cost_ns", "whole_ns"]


def whole_ns(cost: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return costs in us as whole ns, halves to even, as floats: an int64 does not hold every float32."""
    # A float32 times 1000 is exact in float64 (24 + 10 bits), so this is the only rounding.
    each: NDArray[np.float64] = np.rint(cost.astype(np.float64) * 1000.0)
    return each


def cost_ns(cost: NDArray[np.float32]) -> int:
    """Sum costs given in us as whole ns; exact, however large."""
    each = whole_ns(cost)
    if not len(each) or each.max() * len(each) < 2.0**62:
        return int(each.astype(np.int64).sum())
    return sum(map(int, each.tolist()))
