"""Detectors with a Count-Min sketch and a heap of the keys that reached the threshold, with and without emphasis."""

from dataclasses import dataclass, field
from math import ceil, e
from typing import Any

from tests.naive.detectors.detector_base import ShareDetector, extrapolated, of_theta, whole_number
from tests.naive.groupings.simple_groupings import Key, Setting
from tests.naive.kernels.shared_helpers import sketch_column
from tests.naive.share_threshold import share

__all__ = ["AdaCms", "CountMin"]

LARGEST_EMPHASIS = 2.0**400


@dataclass
class Noted:
    """A key in the heap: its estimate at its last tuple, and which of the source's tuples that was."""

    value: Any
    last: int


@dataclass
class Sketch:
    """Of one source. `weight` is that of a tuple now, `whole` that of all."""

    cells: list[list[Any]]
    weight: Any
    whole: Any
    heap: dict[Key, Noted] = field(default_factory=dict)

    def add(self, key: Key) -> None:
        self.whole += self.weight
        for row, cells in enumerate(self.cells):
            cells[sketch_column(key, row, len(cells))] += self.weight

    def estimate(self, key: Key) -> Any:
        return min(cells[sketch_column(key, row, len(cells))] for row, cells in enumerate(self.cells))

    def scale(self, factor: float) -> None:
        self.weight *= factor
        self.whole *= factor
        for cells in self.cells:
            cells[:] = [cell * factor for cell in cells]
        for noted in self.heap.values():
            noted.value *= factor


class CountMin(ShareDetector):
    """All tuples weigh 1."""

    one: Any = 1

    def __init__(
        self,
        setting: Setting,
        theta: str = "1/5n",
        rows: int | str = 4,
        columns: int | str = 0,
        capacity: int | str = 0,
        **more: Any,
    ) -> None:
        super().__init__(setting, theta, **more)
        at_start = share(theta, setting.workers)
        width = whole_number(columns, ceil((2.0 * e * at_start.denominator) / at_start.numerator))
        self.capacity = whole_number(capacity, of_theta(2, theta, setting.workers))
        nothing = self.one - self.one
        self.sketches = [
            Sketch([[nothing] * width for _ in range(int(rows))], self.one, nothing) for _ in range(setting.sources)
        ]

    def count(self, source: int, key: Key) -> None:
        sketch = self.sketches[source]
        sketch.add(key)
        heap, c = sketch.heap, sketch.estimate(key)
        for other in list(heap):
            if not self.enough(heap[other].value, source):
                del heap[other]
        if not self.enough(c, source):
            return
        if key not in heap and len(heap) == self.capacity:
            lowest = min(heap, key=lambda k: (heap[k].value, heap[k].last))
            if c <= heap[lowest].value:
                return
            del heap[lowest]
        heap[key] = Noted(c, self.tuples[source])

    def enough(self, value: Any, source: int) -> bool:
        return self.reaches(value, self.tuples[source])

    def is_hot(self, source: int, key: Key) -> bool:
        """Also between tuples: a value in the heap that the threshold passed does not count."""
        heap = self.sketches[source].heap
        return key in heap and self.enough(heap[key].value, source)

    def reported(self, source: int, key: Key) -> int:
        return int(self.sketches[source].heap[key].value)

    def keys(self, source: int) -> list[Key]:
        return list(self.sketches[source].heap)

    def held(self, source: int) -> int:
        sketch = self.sketches[source]
        cells = sum(len(cells) for cells in sketch.cells)
        return ceil(cells / 2) + len(sketch.heap)


class AdaCms(CountMin):
    """Later tuples weigh more, in float64."""

    one = 1.0

    def __init__(
        self,
        setting: Setting,
        emphasis: str = "exponential",
        base: float | str = 1.0015,
        epoch: int | str = 100,
        **more: Any,
    ) -> None:
        super().__init__(setting, **more)
        self.emphasis, self.base, self.epoch = emphasis, float(base), int(epoch)

    def count(self, source: int, key: Key) -> None:
        time, more = divmod(self.tuples[source] - 1, self.epoch)
        if time > 0 and more == 0:
            self.rise(self.sketches[source], time)
        super().count(source, key)

    def rise(self, sketch: Sketch, time: int) -> None:
        """f(t) of a new t."""
        sketch.weight = float(time + 1) if self.emphasis == "linear" else sketch.weight * self.base
        if sketch.weight >= LARGEST_EMPHASIS:
            sketch.scale(2.0**-400)

    def enough(self, value: Any, source: int) -> bool:
        return self.reaches_as_float(value, self.sketches[source].whole)

    def reported(self, source: int, key: Key) -> int:
        sketch = self.sketches[source]
        return extrapolated(sketch.heap[key].value, sketch.whole, self.tuples[source])
