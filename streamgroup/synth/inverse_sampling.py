"""Inverse transform sampling: exact inversion of a tabulated distribution function."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["invert_cdf"]

_GUIDE = 1 << 18


def invert_cdf(cdf: NDArray[np.float64]) -> Callable[[NDArray[np.float64]], NDArray[np.int64]]:
    """Invert a distribution function: u in [0, 1) to the first index whose cdf is above u.

    `cdf` holds fewer than 2^31 values, non-decreasing, the last one 1. A guide table (Chen and Asau, 1974) settles at
    once every u whose cell, 2^-18 wide, holds no step of the cdf, and gives the others bounds, between which all are
    searched in step. Best for some ten thousand draws at a time, which a processor's cache holds.
    """
    guide = np.searchsorted(cdf, np.arange(_GUIDE + 1) / _GUIDE, side="right").astype(np.int32)

    def index(u: NDArray[np.float64]) -> NDArray[np.int64]:
        cell = (u * _GUIDE).astype(np.int64)
        found, above = guide.take(cell), guide.take(cell + 1)
        left = np.flatnonzero(found != above)
        low, high, wanted = found.take(left), above.take(left), u.take(left)
        while len(left):
            middle = (low + high) >> 1
            beyond = cdf.take(middle) > wanted
            low, high = np.where(beyond, low, middle + 1), np.where(beyond, middle, high)
            found[left] = low
            going = np.flatnonzero(low != high)
            left, low, high, wanted = left.take(going), low.take(going), high.take(going), wanted.take(going)
        return found.astype(np.int64)

    return index
