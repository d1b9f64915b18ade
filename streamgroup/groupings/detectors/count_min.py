"""Detects hot keys by a Count-Min sketch in each source, with a heap of the keys that are hot."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.detectors._sketch import SketchParams, hot_values, sketch_of
from streamgroup.groupings.detectors._threshold import Threshold, bound, for_workers, reaches, threshold_of
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.counts.count_min import count
from streamgroup.kernels.ordered.heap_of_largest_keys import KeyHeap, drop_least, keep

__all__ = ["CountMin", "Params", "start"]


class Params(SketchParams):
    """Parameters of the detector: from which share on a key is hot, and the size of the sketch and the heap."""


class CountMin(NamedTuple):
    """A key is hot while it is in the heap of its source (Cormode and Muthukrishnan, J. Algorithms 2005).

    The heap keeps the keys whose estimate, at their last tuple, is at least theta of the source's tuples now. `cells`
    int64[sources, rows x columns] are the sketches, `cell_of` [keys, rows] the cells of each key, `total`
    int64[sources] the tuples of each source.
    """

    cells: NDArray[np.int64]
    cell_of: NDArray[np.uint32] | NDArray[np.uint16]
    heap: KeyHeap
    total: NDArray[np.int64]
    held: NDArray[np.int64]
    entries: NDArray[np.int64]
    most: int
    threshold: Threshold

    def detect(self, source: int, key: int, now: int) -> int:
        """Count the tuple; return the estimate of its key if the key is hot, else 0."""
        heap = self.heap
        total = self.total[source] + 1
        self.total[source] = total
        estimate = count(self.cells, source, self.cell_of, key, np.int64(1))
        before = heap.used[source]
        while heap.used[source] > 0 and not reaches(self.threshold, heap.value[source, 0], total):
            drop_least(heap, source)
        hot = reaches(self.threshold, estimate, total) and keep(heap, source, key, estimate, total)
        added = heap.used[source] - before
        self.held[source] += added
        self.entries[0] += added
        return int(estimate) if hot and total >= self.threshold.min_count else 0

    def tick(self, now: int) -> None:
        """Wait for nothing."""

    def hottest(self, source: int, estimates: Any) -> int:
        """Return the estimates of the hot keys, largest first, and how many there are."""
        least = bound(self.threshold, self.total[source])
        return hot_values(self.heap, source, self.threshold.denominator, least, estimates)

    def workers_changed(self, change: WorkersChange, context: Context) -> "CountMin":
        """Let theta follow the number of workers; sketch and heap stay as they are."""
        return self._replace(threshold=for_workers(self.threshold, context.workers))


def start(params: Params, context: Context) -> CountMin:
    """Start with empty sketches and heaps; UsageError if they would be too large."""
    sketch = sketch_of(params, context, np.int64)
    return CountMin(
        **sketch, total=np.zeros(context.sources, dtype=np.int64), threshold=threshold_of(params, context.workers)
    )
