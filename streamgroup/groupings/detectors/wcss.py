"""Detects hot keys of a sliding window of tuples, with Window Compact Space Saving in each source."""

from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._share_threshold import share_of
from streamgroup.groupings.detectors._threshold import (
    Threshold,
    ThresholdParams,
    bound,
    for_workers,
    reaches,
    threshold_of,
)
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.counts.key_tables_of_sources import (
    COUNT,
    KEY,
    KeyCounts,
    drop,
    enter,
    make_key_counts,
    place_of,
)
from streamgroup.kernels.counts.space_saving import (
    SpaceSaving,
    cells_taken,
    count_of,
    forget_source,
    make_space_saving,
    offer,
    top_counts,
    used,
)
from streamgroup.kernels.ordered.top_k import sort_descending

__all__ = ["Params", "WindowDetector", "start"]

# Columns of `ends`: the place of the oldest recorded overflow, and how many there are.
_OLDEST, _RECORDED = range(2)


class Params(ThresholdParams):
    """Parameters of the detector: from which share of the window on a key is hot, and how it is counted."""

    window: int = Field(default=0, ge=0, le=1 << 28, description="tuples of a source's window (W); 0: 128/theta")
    blocks: int = Field(
        default=0,
        ge=0,
        le=1 << 20,
        description="blocks of a window (k = 4/epsilon), and keys of its table; 0: 8/theta; above 4/theta",
    )

    def split(self, workers: int) -> tuple[int, int]:
        """Return the number of blocks in a window, and the tuples of a block."""
        blocks = self.blocks or min(self.by_theta(8, workers), 1 << 20)
        return blocks, ceil((self.window or self.by_theta(128, workers)) / blocks)

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """With few blocks, counts are too high by theta and more."""
        most, (blocks, _) = ceil(4 / share_of(self.theta, workers)), self.split(workers)
        doubts = super().doubts(workers, sources, keys)
        if blocks <= most:
            doubts.append(f"blocks={blocks} is not above 4/theta = {most}, so that every key can pass for hot")
        return doubts


class WindowDetector(NamedTuple):
    """A key is hot while its estimated share of its source's last tuples is at least theta (WCSS; Ben-Basat et al.).

    `frame` counts the keys of the current frame of `blocks` x `block` tuples. Each time a count reaches a multiple of
    `block`, an overflow is recorded in `recorded` int64[sources, 2 x blocks + 1, 2], a ring of (key, number of the
    block), oldest first from `ends` int64[sources, 2]; `overflows` are how many of each key there are. They leave after
    a window. `total` int64[sources] are a source's tuples, `held` int64[sources] the entries of its tables, `room`
    in entries as large as two recorded keys.

    Departures from the paper: until a window is full, counts are those of SpaceSaving, and shares those of the tuples
    so far; the frame's table is emptied at once.
    """

    frame: SpaceSaving
    overflows: KeyCounts
    recorded: NDArray[np.int64]
    ends: NDArray[np.int64]
    total: NDArray[np.int64]
    held: NDArray[np.int64]
    entries: NDArray[np.int64]
    most: int
    threshold: Threshold
    blocks: int
    block: int

    def detect(self, source: int, key: int, now: int) -> int:
        """Count the tuple; return the estimate of its key if the key is hot, else 0."""
        before, window = self.total[source], self.blocks * self.block
        block = before // self.block
        if before > 0 and before % window == 0:
            forget_source(self.frame, source)
        _expire(self, source, block - self.blocks)
        count = offer(self.frame, source, key, True)
        if count % self.block == 0:
            _record(self, source, key, block)
        total = before + 1
        self.total[source] = total
        held = used(self.frame, source) + self.overflows.used[source] + (self.ends[source, _RECORDED] + 1) // 2
        self.entries[0] += held - self.held[source]
        self.held[source] = held
        estimate, whole = np.int64(count), total
        if total > window:
            estimate, whole = _estimate(self, source, key, count), np.int64(window)
        hot = reaches(self.threshold, estimate, whole) and total >= self.threshold.min_count
        return int(_extrapolated(estimate, whole, total)) if hot else 0

    def tick(self, now: int) -> None:
        """Wait for nothing."""

    def hottest(self, source: int, estimates: Any) -> Any:
        """Return the estimates of the hot keys, largest first, and how many there are."""
        total, window, denominator = self.total[source], self.blocks * self.block, self.threshold.denominator
        if total <= window:
            return top_counts(self.frame, source, denominator, bound(self.threshold, total), estimates)
        found = np.int64(0)
        for place in range(self.overflows.used[source]):
            key = self.overflows.rows[source, place, KEY]
            estimate = _estimate(self, source, key, count_of(self.frame, source, key))
            if reaches(self.threshold, estimate, window):
                estimates[found] = _extrapolated(estimate, window, total)
                found += 1
        sort_descending(estimates, found)
        return found

    def workers_changed(self, change: WorkersChange, context: Context) -> "WindowDetector":
        """Let theta follow the number of workers; the window stays as it is."""
        return self._replace(threshold=for_workers(self.threshold, context.workers))


@njit
def _expire(state: Any, source: Any, block: Any) -> None:
    """Remove the oldest recorded overflow if it is from a block that is no later than `block`."""
    ends, overflows = state.ends, state.overflows
    oldest = ends[source, _OLDEST]
    if ends[source, _RECORDED] == 0 or state.recorded[source, oldest, 1] > block:
        return
    place = place_of(overflows, source, state.recorded[source, oldest, 0])
    overflows.rows[source, place, COUNT] -= 1
    if overflows.rows[source, place, COUNT] == 0:
        drop(overflows, source, place)
    ends[source, _OLDEST] = (oldest + 1) % state.recorded.shape[1]
    ends[source, _RECORDED] -= 1


@njit
def _record(state: Any, source: Any, key: Any, block: Any) -> None:
    """Record an overflow of a key in a block."""
    ends, overflows = state.ends, state.overflows
    at = (ends[source, _OLDEST] + ends[source, _RECORDED]) % state.recorded.shape[1]
    state.recorded[source, at, 0] = key
    state.recorded[source, at, 1] = block
    ends[source, _RECORDED] += 1
    place = place_of(overflows, source, key)
    if place >= 0:
        overflows.rows[source, place, COUNT] += 1
    else:
        enter(overflows, source, key, np.int64(1), np.int64(0))


@njit
def _estimate(state: Any, source: Any, key: Any, count: Any) -> Any:
    """Return the estimate of a key's tuples in the window, with its count in the frame."""
    place = place_of(state.overflows, source, key)
    if place < 0:
        return np.int64(2 * state.block + count)
    return np.int64(state.block * (state.overflows.rows[source, place, COUNT] + 2) + count % state.block)


@njit
def _extrapolated(estimate: Any, whole: Any, total: Any) -> Any:
    """Return the share estimate / whole of all tuples, rounded up, at most all of them."""
    return min((estimate * total + whole - 1) // whole, total)


def start(params: Params, context: Context) -> WindowDetector:
    """Start with an empty window; UsageError if the tables would be too large."""
    blocks, block = params.split(context.workers)
    # More places than keys would stay empty.
    places = min(blocks, max(1, context.keys))
    what = f"detector=wcss: {blocks} blocks at each of {context.sources} sources"
    cells = cells_taken(context.sources, places) + context.sources * 4 * (blocks + 1)
    fits(cells, MOST_CELLS, what, "set fewer blocks, or raise theta")
    return WindowDetector(
        frame=make_space_saving(context.sources, places),
        overflows=make_key_counts(context.sources, context.keys, 2 * blocks, what),
        # A frame has as many overflows as blocks at most, and those of two frames are recorded.
        recorded=np.zeros((context.sources, 2 * blocks + 1, 2), dtype=np.int64),
        ends=np.zeros((context.sources, 2), dtype=np.int64),
        total=np.zeros(context.sources, dtype=np.int64),
        held=np.zeros(context.sources, dtype=np.int64),
        entries=np.zeros(1, dtype=np.int64),
        most=2 * blocks,
        threshold=threshold_of(params, context.workers),
        blocks=blocks,
        block=block,
    )
