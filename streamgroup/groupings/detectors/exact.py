"""Detects hot keys by their true counts since the start, for comparison."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.detectors._threshold import (
    Threshold,
    ThresholdParams,
    bound,
    for_workers,
    reaches,
    threshold_of,
)
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.counts.key_tables_of_sources import (
    COUNT,
    KeyCounts,
    enter,
    grown,
    headroom,
    headroom_after,
    make_key_counts,
    place_of,
    top,
)

__all__ = ["ExactDetector", "Params", "start"]

_ROOM = 1024
_WHAT = "detector=exact"


class Params(ThresholdParams):
    """Parameters of the detector: from which share on a key is hot."""


class ExactDetector(NamedTuple):
    """A key is hot while its count is at least theta of its source's tuples.

    `counts` are all keys of each source, `total` int64[sources] its tuples, `room` int64[1] for how many more keys any
    source has room.
    """

    counts: KeyCounts
    total: NDArray[np.int64]
    held: NDArray[np.int64]
    entries: NDArray[np.int64]
    room: NDArray[np.int64]
    most: int
    threshold: Threshold

    def detect(self, source: int, key: int, now: int) -> int:
        """Count the tuple; return the count of its key if the key is hot, else 0."""
        total = self.total[source] + 1
        self.total[source] = total
        place = place_of(self.counts, source, key)
        count = np.int64(1)
        if place >= 0:
            count = self.counts.rows[source, place, COUNT] + 1
            self.counts.rows[source, place, COUNT] = count
        else:
            enter(self.counts, source, key, count, np.int64(0))
            self.held[source] += 1
            self.entries[0] += 1
            self.room[0] = headroom_after(self.counts, source, self.room[0])
        return int(count) if reaches(self.threshold, count, total) and total >= self.threshold.min_count else 0

    def tick(self, now: int) -> None:
        """Wait for nothing."""

    def hottest(self, source: int, estimates: Any) -> int:
        """Return the counts of the hot keys, largest first, and how many there are."""
        least = bound(self.threshold, self.total[source])
        return top(self.counts, source, self.threshold.denominator, least, estimates)

    def grown(self) -> "ExactDetector":
        """Make room for twice as many keys."""
        counts = grown(self.counts, _WHAT)
        self.room[0] = call(headroom, counts)
        return self._replace(counts=counts)

    def workers_changed(self, change: WorkersChange, context: Context) -> "ExactDetector":
        """Let theta follow the number of workers."""
        return self._replace(threshold=for_workers(self.threshold, context.workers))


def start(params: Params, context: Context) -> ExactDetector:
    """Start without keys."""
    counts = make_key_counts(context.sources, context.keys, _ROOM, _WHAT)
    return ExactDetector(
        counts=counts,
        total=np.zeros(context.sources, dtype=np.int64),
        held=np.zeros(context.sources, dtype=np.int64),
        entries=np.zeros(1, dtype=np.int64),
        room=np.full(1, call(headroom, counts), dtype=np.int64),
        most=context.keys,
        threshold=threshold_of(params, context.workers),
    )
