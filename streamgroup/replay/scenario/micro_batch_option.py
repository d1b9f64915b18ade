"""`--engine-model micro-batch=...`: an engine that serves tuples in batches, and which tuples are a batch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import parse_duration_ns

__all__ = ["Batches", "Cut", "MicroBatch", "parse_engine_model"]

_FLAG = "--engine-model"
_FORM = "write micro-batch=1000 or micro-batch=2s, with ,overhead=300ms behind it where a batch has one"


class MicroBatch(NamedTuple):
    """Batches of `tuples`, or of all that arrived by a tick of `every_ns` (the other one is 0), each of which takes
    `overhead_ns` besides its services.
    """

    tuples: int
    every_ns: int
    overhead_ns: int = 0


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


def parse_engine_model(text: str | None) -> MicroBatch | None:
    """Read `micro-batch=N|T[,overhead=DURATION]`; None for None, UsageError for anything else."""
    if text is None:
        return None
    model, _, rest = text.partition(",")
    name, _, size = model.partition("=")
    if name != "micro-batch" or not size:
        raise UsageError(f"{_FLAG} {text}: there is no such model", _FORM)
    overhead = 0
    if rest:
        what, _, value = rest.partition("=")
        if what != "overhead":
            raise UsageError(f"{_FLAG} {text}: micro-batch has no {what!r}", _FORM)
        overhead = parse_duration_ns(value, f"{_FLAG} overhead")
    if size.isdecimal():
        tuples, every = int(size), 0
    else:
        tuples, every = 0, parse_duration_ns(size, _FLAG)
    if not (tuples or every):
        raise UsageError(f"{_FLAG} {text}: a batch would hold nothing", _FORM)
    return MicroBatch(tuples, every, overhead)
