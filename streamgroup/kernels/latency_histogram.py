"""Latency distributions in constant memory: a histogram whose buckets grow with the value.

A bucket is given by the exponent and the first 7 bits of the mantissa of the value in ns, so it is at most 1/128 of
its values wide and its middle is within 0.4 % of each of them; values under 256 ns have a bucket of their own.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["BUCKETS", "bucket_of", "buckets_of", "lower_bounds", "middle"]

_SHIFT = 45
_OFFSET = 1023 * 128 - 1
# Values up to 2^62: 62 powers of two with 128 buckets each, 0, and 2^62 itself.
BUCKETS = 62 * 128 + 2


@njit
def bucket_of(ns: Any) -> Any:
    """Give the bucket (0..BUCKETS-1) of a duration of 0..2^62 ns."""
    if ns <= 0:
        return np.int64(0)
    return (np.float64(ns).view(np.int64) >> np.int64(_SHIFT)) - np.int64(_OFFSET)


def buckets_of(ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the buckets of durations: int64, as `bucket_of` gives each."""
    found = (ns.astype(np.float64).view(np.int64) >> np.int64(_SHIFT)) - np.int64(_OFFSET)
    return np.where(ns <= 0, np.int64(0), found)


@njit
def lower_bound(bucket: Any) -> Any:
    """Give the smallest whole number of ns that falls in a bucket."""
    if bucket <= 0:
        return np.int64(0)
    place = bucket - 1
    power = place >> 7
    mantissa = np.int64(128) + (place & 127)
    if power >= 7:
        return mantissa << (power - 7)
    return -((-mantissa) >> (7 - power))


@njit
def middle(bucket: Any) -> Any:
    """Give the middle of the whole numbers in a bucket, in ns (float64)."""
    low = lower_bound(bucket)
    high = lower_bound(bucket + 1) - 1
    if high < low:
        return np.float64(low)
    return (np.float64(low) + np.float64(high)) / 2.0


def lower_bounds() -> NDArray[np.int64]:
    """Give the smallest value of every bucket: int64[BUCKETS], in ns."""
    place = np.arange(BUCKETS - 1, dtype=np.int64)
    power, mantissa = place >> 7, 128 + (place & 127)
    exact = np.where(power >= 7, mantissa << np.maximum(power - 7, 0), -((-mantissa) >> np.maximum(7 - power, 0)))
    return np.concatenate([np.zeros(1, dtype=np.int64), exact])
