"""Follows tuple trees: runs of tuples that came of one record, which is done when the last of them is."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.kernels.latency_histogram import BUCKETS, lower_bounds
from streamgroup.replay.accounting.outcome import TreeTable
from streamgroup.traces.read_batches import Batch
from streamgroup.traces.trace import Trace

__all__ = ["Trees", "trees_of"]

I64 = NDArray[np.int64]
_LOW = 20


class Trees:
    """Takes the tuples of a run in the order of the stream; `batches` are all of the trace with their parents.

    A tree counts if its first tuple is measured (not one of the first `warmup`) and all of its tuples finished.
    """

    def __init__(self, batches: Iterator[Batch], warmup: int) -> None:
        self._batches = batches
        self._warmup = warmup
        self._ahead = np.zeros(0, dtype=np.int64)
        self._bounds = lower_bounds()
        self._histogram = np.zeros(BUCKETS, dtype=np.int64)
        self._sum = 0
        self._min, self._max = 1 << 62, 0
        # The tree whose tuples may go on: parent, number of its first tuple, first arrival, last finish, all finished.
        self._open: tuple[int, int, int, int, bool] | None = None

    def add(self, offset: int, arrival: I64, finish: I64) -> None:
        """Add tuples from number `offset` on; a finish under 0 is that of a tuple that was lost or dropped."""
        parent = self._parents(offset, len(arrival))
        starts = np.concatenate([[0], np.flatnonzero(parent[1:] != parent[:-1]) + 1])
        number = offset + starts
        first = np.minimum.reduceat(arrival, starts)
        last = np.maximum.reduceat(finish, starts)
        whole = np.minimum.reduceat(finish, starts) >= 0
        if self._open is not None:
            before, begun, arrived, finished, complete = self._open
            if before == parent[0]:
                number[0], whole[0] = begun, whole[0] and complete
                first[0], last[0] = min(first[0], arrived), max(last[0], finished)
            else:
                self._close(*(np.array([value]) for value in self._open[1:]))
        self._close(number[:-1], first[:-1], last[:-1], whole[:-1])
        self._open = int(parent[-1]), int(number[-1]), int(first[-1]), int(last[-1]), bool(whole[-1])

    def table(self) -> TreeTable:
        """Return what was found, once all tuples were added."""
        if self._open is not None:
            self._close(*(np.array([value]) for value in self._open[1:]))
            self._open = None
        trees = int(self._histogram.sum())
        return TreeTable(trees, self._sum, self._min if trees else 0, self._max, self._histogram)

    def _close(self, number: I64, first: I64, last: I64, whole: NDArray[np.bool_]) -> None:
        counted = whole & (number >= self._warmup)
        latency = last[counted] - first[counted]
        if not len(latency):
            return
        bucket = np.searchsorted(self._bounds, latency, side="right") - 1
        self._histogram += np.bincount(bucket, minlength=BUCKETS)
        self._sum += (int((latency >> _LOW).sum()) << _LOW) + int((latency & ((1 << _LOW) - 1)).sum())
        self._min, self._max = min(self._min, int(latency.min())), max(self._max, int(latency.max()))

    def _parents(self, offset: int, size: int) -> I64:
        """Return the parents of the next tuples."""
        pieces, there = [self._ahead], len(self._ahead)
        while there < size:
            batch = next(self._batches)
            assert batch.parent is not None
            pieces.append(batch.parent)
            there += len(batch.parent)
        joined = np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
        parent, self._ahead = joined[:size], joined[size:]
        back = parent[1:] < parent[:-1]
        if back.any() or (self._open is not None and parent[0] < self._open[0]):
            place = offset + (int(np.argmax(back)) + 1 if back.any() else 0)
            raise DataError(
                f"tuple {place} has a smaller parent than the one before it", "run streamgroup validate on the trace"
            )
        return parent


def trees_of(trace: Trace, warmup: int) -> Trees | None:
    """Make what follows the trees of a trace, None where it has none."""
    return Trees(trace.batches(("parent",), decoders=0), warmup) if "parent" in trace.columns else None
