"""The worker with the best score for a hot key."""

from typing import Any

import numpy as np

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.counts.sent_in_sliding_window import TOTAL, holds

__all__ = ["best_worker"]


@njit
def best_worker(windows: Any, source: Any, one: Any, numerator: Any, denominator: Any) -> Any:
    """Return the live worker with the best score for a record's key; times T and the denominator, it is an integer."""
    tuples, live = windows.tuples, windows.live
    reward = numerator * windows.clock[source, TOTAL]
    price = (denominator - numerator) * live.shape[0]
    best, most = live[0], np.int64(-9223372036854775807)
    for place in range(live.shape[0]):
        worker = live[place]
        score = -price * tuples[source, worker]
        # Look for the key only where the reward would make the score the best.
        if score + reward > most and holds(windows, source, one, worker):
            score += reward
        if score > most:
            best, most = worker, score
    return best
