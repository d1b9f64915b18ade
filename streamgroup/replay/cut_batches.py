"""Cuts a stream into the batches of a micro-batch engine: when each begins, and which tuples it has."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.scenario.micro_batch_option import MicroBatch

__all__ = ["Batches", "Cut"]


class Cut(NamedTuple):
    """When a batch begins, in ns, and the place behind its last tuple."""

    begin: int
    stop: int


class Batches:
    """The batches of a stream, one after the other."""

    def __init__(self, model: MicroBatch) -> None:
        self._model, self._tick = model, model.every_ns

    def cut(self, arrival: NDArray[np.int64], first: int, committed: int, *, whole: bool = True) -> Cut | None:
        """Return the batch whose first tuple is at a place, where the batch before is committed at a time in ns.

        `arrival` are those of all tuples or, if it is not `whole`, of the first ones: None where more of them belong to
        the batch, or may.
        """
        size, every = self._model.tuples, self._model.every_ns
        if size:
            stop = min(first + size, len(arrival))
            if not whole and stop - first < size:
                return None
            return Cut(max(int(arrival[stop - 1]), committed), stop)
        begin = max(self._tick, committed)
        if arrival[first] > begin:
            # Nothing happens at a tick by which no tuple arrived.
            begin = -(-int(arrival[first]) // every) * every
        if not whole and arrival[-1] <= begin:
            return None
        self._tick = (begin // every + 1) * every
        return Cut(begin, int(np.searchsorted(arrival, begin, side="right")))
