"""Candidates that follow one another in the list of live workers, compared by their share of a source's tuples.

The j-th candidate of a key whose first one is at place `base` of `live` int64[n] is live[(base + j) mod n]. `counts`
int64[sources, N] are by worker id, `total` int64[sources]. A share is 100 counts / total in percent, in float64 and in
this order, 0 while total is 0; `whole` cuts it down to whole percents.
"""

from typing import Any

import numpy as np

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["at_or_after", "count_below", "least_share", "share"]


@njit(forceinline=True)
def at_or_after(live: Any, base: Any, steps: Any) -> Any:
    """Return the worker `steps` (0..n-1) places after place `base`, around the end."""
    place = base + steps
    n = live.shape[0]
    return live[np.uint64(place - n if place >= n else place)]


@njit(forceinline=True)
def share(count: Any, total: Any, whole: Any) -> Any:
    """Return a worker's share in percent."""
    percent = 100.0 * count / total if total > 0 else 0.0
    return np.floor(percent) if whole else percent


@njit(forceinline=True)
def least_share(counts: Any, total: Any, live: Any, source: Any, base: Any, width: Any, whole: Any) -> Any:
    """Return the worker with the least share among the first `width` (at least 1) candidates, ties to the first.

    Counts below 2^46 are in the same order as their shares, and equal only where these are: two shares differ by more
    than float64 rounds off. So nothing is divided, unless whole percents make more of them equal.
    """
    row = np.uint64(source)
    best = at_or_after(live, base, np.int64(0))
    least = counts[row, np.uint64(best)]
    if whole:
        lowest = share(least, total[row], whole)
        for step in range(1, width):
            worker = at_or_after(live, base, step)
            percent = share(counts[row, np.uint64(worker)], total[row], whole)
            if percent < lowest:
                lowest, best = percent, worker
        return best
    for step in range(1, width):
        worker = at_or_after(live, base, step)
        count = counts[row, np.uint64(worker)]
        # Without a branch: which of two is the lower is a coin that no processor can predict.
        best += np.int64(count < least) * (worker - best)
        least = min(count, least)
    return best


@njit
def count_below(counts: Any, total: Any, live: Any, source: Any, base: Any, width: Any, bound: Any) -> Any:
    """Count the first `width` candidates with a share below bound[0], in whole percents if bound[1] is not 0."""
    found = np.int64(0)
    for step in range(width):
        percent = share(counts[source, at_or_after(live, base, step)], total[source], bound[1] != 0)
        found += np.int64(percent < bound[0])
    return found
