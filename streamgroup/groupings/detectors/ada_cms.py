"""Detects keys that are hot of late by a time-adaptive Count-Min sketch: later tuples are counted with more weight."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings.detectors._sketch import SketchParams, sketch_of
from streamgroup.groupings.detectors._threshold import Threshold, extrapolated, for_workers, is_passed, threshold_of
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.counts.count_min import count
from streamgroup.kernels.ordered.heap_of_largest_keys import KeyHeap, drop_least, keep
from streamgroup.kernels.ordered.top_k import sort_descending

__all__ = ["AdaptiveCountMin", "Params", "start"]

# Weights that large are scaled back, by a power of two, which is exact.
_LARGE = 2.0**400
_BACK = 2.0**-400


class Params(SketchParams):
    """Parameters of the detector: those of count_min, and how the weight of tuples grows."""

    emphasis: Literal["exponential", "linear"] = Field(
        default="exponential", description="weight of a tuple: base^t, or linear in t (f(t) in the paper)"
    )
    base: float = Field(default=1.0015, ge=1, le=4, description="factor of the weight from one t to the next")
    epoch: int = Field(default=100, ge=1, le=1 << 40, description="tuples of a source after which t grows by one")


class AdaptiveCountMin(NamedTuple):
    """A key is hot while it is in the heap of its source (Ada-CMS; Shrivastava, Koenig, Bilenko, SIGMOD 2016).

    As in `CountMin`, but a tuple counts with the weight f(t), which rises with the time t of its source
    (pre-emphasis). Estimates and their sum would both be divided by the current f(t) (de-emphasis), so neither is.
    `weight` float64[sources] is f(t), `whole` float64[sources] the weight of all tuples.

    Departures from the paper: it hashes pairs of key and time, to answer how often a key came at a given time. Here a
    key has the same cells at all times, so that its estimate is a count that fades.
    """

    cells: NDArray[np.float64]
    cell_of: NDArray[np.uint32] | NDArray[np.uint16]
    heap: KeyHeap
    weight: NDArray[np.float64]
    whole: NDArray[np.float64]
    total: NDArray[np.int64]
    held: NDArray[np.int64]
    entries: NDArray[np.int64]
    most: int
    threshold: Threshold
    base: float
    is_linear: bool
    epoch: int

    def detect(self, source: int, key: int, now: int) -> int:
        """Count the tuple; return the estimate of its key if the key is hot, else 0."""
        heap = self.heap
        total = self.total[source]
        if total > 0 and total % self.epoch == 0:
            _advance(self, source, total // self.epoch)
        total += 1
        self.total[source] = total
        weight = self.weight[source]
        whole = self.whole[source] + weight
        self.whole[source] = whole
        estimate = count(self.cells, source, self.cell_of, key, weight)
        before = heap.used[source]
        while heap.used[source] > 0 and not is_passed(self.threshold, heap.value[source, 0], whole):
            drop_least(heap, source)
        hot = is_passed(self.threshold, estimate, whole) and keep(heap, source, key, estimate, total)
        added = heap.used[source] - before
        self.held[source] += added
        self.entries[0] += added
        return int(extrapolated(estimate, whole, total)) if hot and total >= self.threshold.min_count else 0

    def tick(self, now: int) -> None:
        """Wait for nothing."""

    def hottest(self, source: int, estimates: Any) -> Any:
        """Return the estimates of the hot keys, largest first, and how many there are."""
        heap, whole, found = self.heap, self.whole[source], np.int64(0)
        for place in range(heap.used[source]):
            value = heap.value[source, place]
            if is_passed(self.threshold, value, whole):
                estimates[found] = extrapolated(value, whole, self.total[source])
                found += 1
        sort_descending(estimates, found)
        return found

    def workers_changed(self, change: WorkersChange, context: Context) -> "AdaptiveCountMin":
        """Let theta follow the number of workers; sketch and heap stay as they are."""
        return self._replace(threshold=for_workers(self.threshold, context.workers))


@njit
def _advance(state: Any, source: Any, time: Any) -> None:
    """Take the weight of tuples at a time, one later than before."""
    weight = np.float64(time + 1) if state.is_linear else state.weight[source] * state.base
    if weight >= _LARGE:
        weight *= _BACK
        state.whole[source] *= _BACK
        for cell in range(state.cells.shape[1]):
            state.cells[source, cell] *= _BACK
        for place in range(state.heap.used[source]):
            state.heap.value[source, place] *= _BACK
    state.weight[source] = weight


def start(params: Params, context: Context) -> AdaptiveCountMin:
    """Start with empty sketches and heaps; UsageError if they would be too large."""
    return AdaptiveCountMin(
        **sketch_of(params, context, np.float64),
        weight=np.ones(context.sources),
        whole=np.zeros(context.sources),
        total=np.zeros(context.sources, dtype=np.int64),
        threshold=threshold_of(params, context.workers),
        base=params.base,
        is_linear=params.emphasis == "linear",
        epoch=params.epoch,
    )
