"""One row for each window that ends: what the run came to by then, and the latencies of the window."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.latency_histogram import bucket_of, middle

__all__ = ["CARRY", "PERCENTS", "WindowRows", "end_window"]

I64 = NDArray[np.int64]

# Sums of latencies are high x 2^62 + low with 0 <= low < 2^62, so they never overflow.
CARRY = 1 << 62
# The percentiles of latency of each window.
PERCENTS = np.array([5, 25, 50, 75, 95, 99])


class WindowRows(NamedTuple):
    """One row for each window that ends: `ends` int64[rows] is the number of the tuple before which it does.

    Of the run up to there: `tuples` int64[rows, n]; `busy` int64[rows, n], the service times, or the tuples that
    finished where all have the same; `served` int64[rows]; `low`, `high` int64[rows], the sum of latencies; `pairs`
    int64[rows]. Of the window: `latency_min`, `latency_max` int64[rows]; `quantile` float64[rows, 6]: the PERCENTS.
    """

    ends: I64
    tuples: I64
    busy: I64
    served: I64
    low: I64
    high: I64
    pairs: I64
    latency_min: I64
    latency_max: I64
    quantile: NDArray[np.float64]


@njit
def end_window(row: Any, rows: Any, sums: Any, histogram: Any, least: Any, largest: Any, alike: Any) -> None:
    """Write the row of the window that ended, and empty its histogram; `alike`: in service time."""
    low: Any = np.int64(0)
    high: Any = np.int64(0)
    finished, served, seen, column = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for worker in range(sums.lost.shape[0]):
        sent = sums.parts[2 * worker] + sums.parts[2 * worker + 1]
        rows.tuples[row, worker] = sent
        its = sent - sums.lost[worker]
        finished += its
        rows.busy[row, worker] = its if alike else sums.busy[worker]
        low += sums.low[worker]
        high += sums.high[worker] + (low >> 62)
        low &= CARRY - 1
    rows.low[row], rows.high[row], rows.served[row] = low, high, finished
    rows.latency_min[row], rows.latency_max[row] = least, largest
    if largest >= 0:
        first, last = bucket_of(least), bucket_of(largest)
        for bucket in range(first, last + 1):
            served += histogram[bucket]
        for bucket in range(first, last + 1):
            seen += histogram[bucket]
            histogram[bucket] = 0
            # By nearest rank: the bucket that holds the tuple of rank ceil(percent x served / 100).
            while column < 6 and 100 * seen >= PERCENTS[column] * served:
                rows.quantile[row, column] = middle(bucket)
                column += 1
