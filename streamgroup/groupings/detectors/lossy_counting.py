"""Detects hot keys by lossy counting: rare keys are dropped at the end of each bucket of tuples."""

from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._share_threshold import share_of
from streamgroup.groupings.detectors._threshold import (
    LARGEST_CAPACITY,
    Threshold,
    ThresholdParams,
    bound,
    reaches,
    threshold_of,
    with_share,
)
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.counts.key_tables_of_sources import (
    COUNT,
    NUMBER,
    KeyCounts,
    drop,
    enter,
    grown,
    headroom,
    headroom_after,
    make_key_counts,
    place_of,
    top,
)

__all__ = ["LossyCounting", "Params", "start"]

_ROOM = 1024
_WHAT = "detector=lossy_counting"
# Counts times a denominator stay below 2^63.
_LARGEST_DENOMINATOR = 1 << 28


class Params(ThresholdParams):
    """Parameters of the detector: from which share on a key is hot, and how exactly it is counted."""

    bucket: int = Field(
        default=0, ge=0, le=LARGEST_CAPACITY, description="tuples of a bucket (1/epsilon); 0: 10/theta; above 1/theta"
    )

    def size(self, workers: int) -> int:
        """Return the tuples of a bucket."""
        return self.bucket or self.by_theta(10, workers)

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """With a bucket that is too small, counts are too low by theta and more."""
        least, size = ceil(1 / share_of(self.theta, workers)), self.size(workers)
        doubts = super().doubts(workers, sources, keys)
        if size <= least:
            doubts.append(f"bucket={size} is not above 1/theta = {least}, so that every key is hot")
        return doubts


class LossyCounting(NamedTuple):
    """A key is hot while its count is at least theta - epsilon of its source's tuples (Manku and Motwani, VLDB 2002).

    A count is too low by at most epsilon = 1 / `bucket` of the tuples: no key with a share of theta is missed, and none
    below theta - epsilon is hot. `counts` are the keys that a source holds, each with the largest number of its tuples
    that may have come before (Delta); `total` int64[sources] its tuples, `room` int64[1] for how many more keys any
    source has room.
    """

    counts: KeyCounts
    total: NDArray[np.int64]
    held: NDArray[np.int64]
    entries: NDArray[np.int64]
    room: NDArray[np.int64]
    most: int
    threshold: Threshold
    bucket: int

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
            enter(self.counts, source, key, count, (total - 1) // self.bucket)
            self.held[source] += 1
            self.entries[0] += 1
            self.room[0] = headroom_after(self.counts, source, self.room[0])
        if total % self.bucket == 0:
            _end_bucket(self, source, total // self.bucket)
        return int(count) if reaches(self.threshold, count, total) and total >= self.threshold.min_count else 0

    def tick(self, now: int) -> None:
        """Wait for nothing."""

    def hottest(self, source: int, estimates: Any) -> int:
        """Return the counts of the hot keys, largest first, and how many there are."""
        least = bound(self.threshold, self.total[source])
        return top(self.counts, source, self.threshold.denominator, least, estimates)

    def grown(self) -> "LossyCounting":
        """Make room for twice as many keys."""
        counts = grown(self.counts, _WHAT)
        self.room[0] = call(headroom, counts)
        return self._replace(counts=counts)

    def workers_changed(self, change: WorkersChange, context: Context) -> "LossyCounting":
        """Let theta follow the number of workers; the buckets stay as they are."""
        share = _lowered(share_of(self.threshold.theta, context.workers), self.bucket)
        return self._replace(threshold=with_share(self.threshold, share))


@njit
def _end_bucket(state: Any, source: Any, bucket: Any) -> None:
    """Drop the keys that may not have had a tuple in each bucket so far; the last ended is number `bucket`."""
    counts = state.counts
    place = counts.used[source] - 1
    while place >= 0:
        if counts.rows[source, place, COUNT] + counts.rows[source, place, NUMBER] <= bucket:
            drop(counts, source, place)
        place -= 1
    dropped = state.held[source] - counts.used[source]
    state.held[source] -= dropped
    state.entries[0] -= dropped
    state.room[0] = headroom(counts)


def _lowered(theta: Fraction, bucket: int) -> Fraction:
    """Return theta - epsilon, 0 at least, rounded down to 28 bits if need be."""
    share = max(theta - Fraction(1, bucket), Fraction(0))
    if share.denominator <= _LARGEST_DENOMINATOR:
        return share
    return Fraction(int(share * _LARGEST_DENOMINATOR), _LARGEST_DENOMINATOR)


def start(params: Params, context: Context) -> LossyCounting:
    """Start without keys."""
    counts = make_key_counts(context.sources, context.keys, _ROOM, _WHAT)
    bucket = params.size(context.workers)
    share = _lowered(share_of(params.theta, context.workers), bucket)
    return LossyCounting(
        counts=counts,
        total=np.zeros(context.sources, dtype=np.int64),
        held=np.zeros(context.sources, dtype=np.int64),
        entries=np.zeros(1, dtype=np.int64),
        room=np.full(1, call(headroom, counts), dtype=np.int64),
        most=context.keys,
        threshold=with_share(threshold_of(params, context.workers), share),
        bucket=bucket,
    )
