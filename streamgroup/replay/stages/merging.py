"""What follows the workers: partial results of each window, and the aggregators that merge them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.outcome import Aggregation
from streamgroup.replay.stages.aggregators import Aggregators
from streamgroup.replay.stages.partial_results import PartialResults

__all__ = ["Merging"]

I64 = NDArray[np.int64]


class Merging:
    """Takes every measured tuple in the order of the stream, and hands what windows come to to the aggregators."""

    def __init__(self, partials: PartialResults, aggregators: Aggregators) -> None:
        self._partials, self._aggregators = partials, aggregators

    def add(self, offset: int, arrival: I64, key: NDArray[Any], worker: NDArray[Any], finish: I64) -> None:
        """Add measured tuples from number `offset` of them on; `finish` is negative where no worker finished it."""
        done = np.where(finish < 0, np.int64(-1), worker)
        _, ended = self._partials.add(offset, arrival, key, done, finish)
        if ended is not None:
            self._aggregators.take(ended)

    def finish(self) -> Aggregation:
        """End the last window; return what the aggregators did."""
        ended = self._partials.finish()
        if ended is not None:
            self._aggregators.take(ended)
        return self._aggregators.finish()
