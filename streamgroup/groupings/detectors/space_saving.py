"""Detects hot keys by their count since the start, with a SpaceSaving table in each source."""

from fractions import Fraction
from math import ceil
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._share_threshold import Share, share_of
from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange
from streamgroup.kernels.space_saving import (
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


class Params(GroupingParams):
    """Parameters of the detector: from which share on a key is hot, and how it is counted."""

    theta: Share = Field(
        default="1/5n", description="share of a source's tuples from which on a key is hot (theta in 001)"
    )
    capacity: int = Field(
        default=0,
        ge=0,
        le=1 << 24,
        description="keys that each source counts; 0: 2/theta; under 1/theta cold keys count as hot",
    )
    estimate: Literal["count", "count+error", "count-error"] = Field(
        default="count",
        description="what is compared: the count, an upper bound; plus its error (authors' code); or less it",
    )
    strict: bool = Field(default=False, description="a key is hot above theta, not from theta on (the authors' code)")
    min_count: int = Field(default=1, ge=1, le=1 << 40, description="tuples that a source counts before any key is hot")
    replacement: bool = Field(
        default=True, description="a new key takes the place of the rarest in a full table; else it is not counted"
    )

    def seeds_used(self) -> tuple[str, ...]:
        """Counting draws nothing."""
        return ()

    def hot_share(self, workers: int) -> Fraction:
        """A key ought to be hot from theta on."""
        return share_of(self.theta, workers)

    def places(self, workers: int) -> int:
        """Return how many keys each source counts."""
        return self.capacity or min(ceil(2 / share_of(self.theta, workers)), 1 << 24)

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

    `tables` are the sources' SpaceSaving tables, `total` int64[sources] their tuples; hot: estimate x denominator >=
    numerator x total, in integers; `least` is 1 where it must be above. The paper compares the count, which is never
    below the true one; a table of 2/theta keys keeps the overestimate under theta/2.
    """

    tables: SpaceSaving
    total: NDArray[np.int64]
    held: NDArray[np.int64]
    entries: NDArray[np.int64]
    most: int
    numerator: int
    denominator: int
    least: int
    sign: int
    min_count: int
    replacement: bool
    theta: str

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
        hot = estimate * self.denominator >= self.numerator * total + self.least and total >= self.min_count
        return int(estimate) if hot and estimate > 0 else 0

    def tick(self, now: int) -> None:
        """Wait for nothing."""

    def hottest(self, source: int, estimates: Any) -> int:
        """Return the estimates of the hot keys, largest first, and how many there are."""
        least = self.numerator * self.total[source] + self.least
        if self.sign == 0:
            return top_counts(self.tables, source, self.denominator, least, estimates)
        return top_estimates(self.tables, source, self.denominator, least, self.sign, estimates)

    def workers_changed(self, change: WorkersChange, context: Context) -> "SpaceSavingDetector":
        """Let theta follow the number of workers; the tables stay as they are."""
        share = share_of(self.theta, context.workers)
        return self._replace(numerator=share.numerator, denominator=share.denominator)


def start(params: Params, context: Context) -> SpaceSavingDetector:
    """Make empty tables; UsageError if they would be too large."""
    share = share_of(params.theta, context.workers)
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
        numerator=share.numerator,
        denominator=share.denominator,
        least=int(params.strict),
        sign=_SIGNS[params.estimate],
        min_count=params.min_count,
        replacement=params.replacement,
        theta=params.theta,
    )
