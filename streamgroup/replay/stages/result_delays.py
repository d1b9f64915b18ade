"""How long results take: from the end of a window to the moment at which the last partial result is merged."""

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.latency_histogram import BUCKETS, buckets_of
from streamgroup.replay.accounting.outcome import Aggregation

__all__ = ["ResultDelays"]

I64 = NDArray[np.int64]


class ResultDelays:
    """Sums up the delays of results that are complete."""

    def __init__(self) -> None:
        self.last_served = 0
        self._results = 0
        self._sum = 0
        self._min, self._max = (1 << 62), 0
        self._histogram = np.zeros(BUCKETS, dtype=np.int64)

    def add(self, served: I64, ends: I64) -> None:
        """Add results, at least one: when the last partial result of each was served, and when its window ended."""
        delay = np.maximum(served - ends, 0)
        self.last_served = max(self.last_served, int(served.max()))
        self._results += len(delay)
        self._sum += (int((delay >> 20).sum()) << 20) + int((delay & 0xFFFFF).sum())
        self._min = min(self._min, int(delay.min()))
        self._max = max(self._max, int(delay.max()))
        self._histogram += np.bincount(buckets_of(delay), minlength=BUCKETS)

    def aggregation(self, busy_ns: I64, partials: int) -> Aggregation:
        """Return the findings, with the busy time of each aggregator and the number of partial results."""
        return Aggregation(
            busy_ns, partials, self._results, self.last_served, self._sum, self._min if self._results else 0,
            self._max, self._histogram,
        )  # fmt: skip
