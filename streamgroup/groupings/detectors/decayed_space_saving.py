"""Detects keys that are hot of late with FISH's table: SpaceSaving whose counts decay by epochs."""

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings.detectors._threshold import (
    TableParams,
    Threshold,
    extrapolated,
    for_workers,
    is_passed,
    threshold_of,
)
from streamgroup.groupings.fish.decayed_space_saving import (
    LARGEST_CAPACITY,
    SIZE,
    DecayedTable,
    cells_taken,
    checked_alpha,
    count_tuple,
    make_table,
)
from streamgroup.groupings.fish.number_of_choices import denominator
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.ordered.top_k import sort_descending

__all__ = ["DecayedDetector", "Params", "start"]


class Params(TableParams):
    """Parameters of the detector: from which share on a key is hot, and how fast counts decay."""

    capacity: int = Field(
        default=0,
        ge=0,
        le=LARGEST_CAPACITY,
        description="keys that each source counts (K_max); 0: 2/theta; under 1/theta hot keys may be forgotten",
    )
    alpha: Annotated[float, AfterValidator(checked_alpha)] = Field(
        default=0.2, ge=0, le=1, description="what an epoch leaves of all counts (alpha in 000); 1 forgets nothing"
    )
    epoch: int = Field(default=1000, ge=1, le=1 << 40, description="tuples of a source's epoch (N_epoch)")
    f_mode: Literal["ratio", "epoch_end"] = Field(
        default="epoch_end",
        description="a key's frequency is its share of what is counted: now (ratio), or at the epoch's end (epoch_end)",
    )

    def places(self, workers: int) -> int:
        """Return how many keys each source counts."""
        return min(super().places(workers), LARGEST_CAPACITY)


class DecayedDetector(NamedTuple):
    """A key is hot while its decayed count is at least theta of its source's decayed tuples (000, Algorithm 1).

    `table` are the decayed counts of each source, `total` int64[sources] its tuples, without decay.
    """

    table: DecayedTable
    total: NDArray[np.int64]
    held: NDArray[np.int64]
    entries: NDArray[np.int64]
    most: int
    threshold: Threshold
    epoch_end: bool

    def detect(self, source: int, key: int, now: int) -> int:
        """Count the tuple; return the estimate of its key if the key is hot, else 0."""
        total = self.total[source] + 1
        self.total[source] = total
        slot = count_tuple(self.table, source, key)
        held = self.table.numbers[source, SIZE]
        self.entries[0] += held - self.held[source]
        self.held[source] = held
        whole = denominator(self.table, source, self.epoch_end)
        stored = self.table.stored[source, slot]
        hot = is_passed(self.threshold, stored, whole) and total >= self.threshold.min_count
        return int(extrapolated(stored, whole, total)) if hot else 0

    def tick(self, now: int) -> None:
        """Wait for nothing."""

    def hottest(self, source: int, estimates: Any) -> Any:
        """Return the estimates of the hot keys, largest first, and how many there are."""
        table, found = self.table, np.int64(0)
        whole = denominator(table, source, self.epoch_end)
        for place in range(1, table.numbers[source, SIZE] + 1):
            stored = table.stored[source, table.who[source, place] & (LARGEST_CAPACITY - 1)]
            if is_passed(self.threshold, stored, whole):
                estimates[found] = extrapolated(stored, whole, self.total[source])
                found += 1
        sort_descending(estimates, found)
        return found

    def workers_changed(self, change: WorkersChange, context: Context) -> "DecayedDetector":
        """Let theta follow the number of workers; the tables stay as they are."""
        return self._replace(threshold=for_workers(self.threshold, context.workers))


def start(params: Params, context: Context) -> DecayedDetector:
    """Make empty tables; UsageError if they would be too large."""
    # More places than keys would stay empty.
    places = min(params.places(context.workers), max(1, context.keys))
    fits(
        cells_taken(context.sources, places),
        MOST_CELLS,
        f"detector=decayed_space_saving: {places} keys at each of {context.sources} sources",
        "set a lower capacity, or raise theta",
    )
    return DecayedDetector(
        table=make_table(context.sources, places, params.alpha, params.epoch),
        total=np.zeros(context.sources, dtype=np.int64),
        held=np.zeros(context.sources, dtype=np.int64),
        entries=np.zeros(1, dtype=np.int64),
        most=places,
        threshold=threshold_of(params, context.workers),
        epoch_end=params.f_mode == "epoch_end",
    )
