"""Detects hot keys by their count since the start, with a SpaceSaving table in each source."""

from math import ceil
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._share_threshold import share_of
from streamgroup.groupings.detectors._threshold import (
    TableParams,
    Threshold,
    bound,
    for_workers,
    reaches,
    threshold_of,
)
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.counts.space_saving import (
    SpaceSaving,
    cells_taken,
    error_of,
    make_space_saving,
    offer,
    top_counts,
    top_estimates,
    used,
)

__all__ = ["Params", "SpaceSavingDetector", "start"]

_SIGNS = {"count": 0, "count+error": 1, "count-error": -1}


class Params(TableParams):
    """Parameters of the detector: from which share on a key is hot, and how it is counted."""

    estimate: Literal["count", "count+error", "count-error"] = Field(
        default="count",
        description="what is compared: the count, an upper bound; plus its error (authors' code); or less it",
    )
    replacement: bool = Field(
        default=True, description="a new key takes the place of the rarest in a full table; else it is not counted"
    )

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """A table that is too small takes cold keys for hot."""
        least, places = ceil(1 / share_of(self.theta, workers)), self.places(workers)
        doubts = super().doubts(workers, sources, keys)
        if self.replacement and places < min(least, keys):
            doubts.append(
                f"capacity={places} is under 1/theta = {least}, so that any key just counted can pass for hot"
            )
        return doubts


class SpaceSavingDetector(NamedTuple):
    """A key is hot while its estimated share of its source's tuples is at least theta (001, section III-A).

    `tables` are the sources' SpaceSaving tables, `total` int64[sources] their tuples. The paper compares the count,
    which is never below the true one; a table of 2/theta keys keeps the overestimate under theta/2.
    """

    tables: SpaceSaving
    total: NDArray[np.int64]
    held: NDArray[np.int64]
    entries: NDArray[np.int64]
    most: int
    threshold: Threshold
    sign: int
    replacement: bool

    def detect(self, source: int, key: int, now: int) -> int:
        """Count the tuple; give the estimate of its key if the key is hot, else 0."""
        row = np.uint64(source)
        total = self.total[row] + 1
        self.total[row] = total
        estimate = offer(self.tables, source, key, self.replacement)
        held = used(self.tables, source)
        if held != self.held[row]:
            self.held[row] = held
            self.entries[0] += 1
        if self.sign != 0:
            estimate += self.sign * error_of(self.tables, source, key)
        hot = reaches(self.threshold, estimate, total) and total >= self.threshold.min_count
        return int(estimate) if hot and estimate > 0 else 0

    def tick(self, now: int) -> None:
        """Wait for nothing."""

    def hottest(self, source: int, estimates: Any) -> int:
        """Return the estimates of the hot keys, largest first, and how many there are."""
        least, denominator = bound(self.threshold, self.total[source]), self.threshold.denominator
        if self.sign == 0:
            return top_counts(self.tables, source, denominator, least, estimates)
        return top_estimates(self.tables, source, denominator, least, self.sign, estimates)

    def workers_changed(self, change: WorkersChange, context: Context) -> "SpaceSavingDetector":
        """Let theta follow the number of workers; the tables stay as they are."""
        return self._replace(threshold=for_workers(self.threshold, context.workers))


def start(params: Params, context: Context) -> SpaceSavingDetector:
    """Make empty tables; UsageError if they would be too large."""
    # More places than keys would stay empty.
    places = min(params.places(context.workers), max(1, context.keys))
    fits(
        cells_taken(context.sources, places),
        MOST_CELLS,
        f"detector=space_saving: {places} keys at each of {context.sources} sources",
        "set a lower capacity, or raise theta",
    )
    return SpaceSavingDetector(
        tables=make_space_saving(context.sources, places),
        total=np.zeros(context.sources, dtype=np.int64),
        held=np.zeros(context.sources, dtype=np.int64),
        entries=np.zeros(1, dtype=np.int64),
        most=places,
        threshold=threshold_of(params, context.workers),
        sign=_SIGNS[params.estimate],
        replacement=params.replacement,
    )
