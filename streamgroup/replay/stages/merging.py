"""What follows the workers: partial results of each window, their results, and the aggregators that merge them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.outcome import Aggregation, AppResults
from streamgroup.replay.stages.aggregators import Aggregators
from streamgroup.replay.stages.application import Application
from streamgroup.replay.stages.partial_results import PartialResults, Partials

__all__ = ["Merging"]

I64 = NDArray[np.int64]


class Merging:
    """Takes every measured tuple in the order of the stream, and hands the partial results of windows that end on."""

    def __init__(
        self, partials: PartialResults, aggregators: Aggregators | None, application: Application | None
    ) -> None:
        self._partials, self._aggregators, self._application = partials, aggregators, application

    def add(self, offset: int, arrival: I64, key: NDArray[Any], worker: NDArray[Any], finish: I64) -> None:
        """Add measured tuples from number `offset` of them on; `finish` is negative where no worker finished it."""
        slot, ended = self._partials.add(offset, arrival, key, worker, finish)
        if self._application is not None:
            assert slot is not None
            self._application.add(slot, key)
        self._end(ended)

    def _end(self, ended: Partials | None) -> None:
        if ended is not None and self._application is not None:
            self._application.take(ended)
        if ended is not None and self._aggregators is not None:
            self._aggregators.take(ended)

    def finish(self) -> tuple[Aggregation | None, AppResults | None]:
        """End the last window; return what the aggregators did and the results, each None where it is not there."""
        self._end(self._partials.finish())
        merged = None if self._aggregators is None else self._aggregators.finish()
        return merged, None if self._application is None else self._application.finish()
