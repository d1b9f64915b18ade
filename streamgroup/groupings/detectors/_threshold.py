"""What detectors with a threshold share: parameters, and the comparison of an estimate with a share of the tuples."""

from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from streamgroup.groupings._share_threshold import Share, share_of
from streamgroup.groupings.protocol import GroupingParams
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = [
    "LARGEST_CAPACITY",
    "TableParams",
    "Threshold",
    "ThresholdParams",
    "bound",
    "extrapolated",
    "for_workers",
    "is_passed",
    "reaches",
    "threshold_of",
    "with_share",
]

LARGEST_CAPACITY = 1 << 24


class ThresholdParams(GroupingParams):
    """From which share on a key is hot."""

    theta: Share = Field(
        default="1/5n", description="share of a source's tuples from which on a key is hot (theta in 001)"
    )
    strict: bool = Field(default=False, description="a key is hot above theta, not from theta on (the authors' code)")
    min_count: int = Field(default=1, ge=1, le=1 << 40, description="tuples that a source counts before any key is hot")

    def seeds_used(self) -> tuple[str, ...]:
        """Counting draws nothing."""
        return ()

    def hot_share(self, workers: int) -> Fraction:
        """A key ought to be hot from theta on."""
        return share_of(self.theta, workers)

    def by_theta(self, factor: int, workers: int) -> int:
        """Return factor / theta, rounded up, at most 2^24: what sizes are by default."""
        return min(ceil(factor / share_of(self.theta, workers)), LARGEST_CAPACITY)


class TableParams(ThresholdParams):
    """The threshold, and how many keys each source keeps."""

    capacity: int = Field(
        default=0,
        ge=0,
        le=LARGEST_CAPACITY,
        description="keys that each source counts; 0: 2/theta; under 1/theta cold keys count as hot",
    )

    def places(self, workers: int) -> int:
        """Return how many keys each source keeps."""
        return self.capacity or self.by_theta(2, workers)


class Threshold(NamedTuple):
    """The share numerator / denominator, `least` 1 where a key must be above it, and the tuples before any is hot.

    `share` is the quotient, for estimates that are no integers. `theta` is the share as it was given.
    """

    numerator: int
    denominator: int
    least: int
    share: float
    min_count: int
    theta: str


def threshold_of(params: ThresholdParams, workers: int) -> Threshold:
    """Return the threshold of the parameters for so many workers."""
    share = share_of(params.theta, workers)
    return Threshold(
        numerator=share.numerator,
        denominator=share.denominator,
        least=int(params.strict),
        share=share.numerator / share.denominator,
        min_count=params.min_count,
        theta=params.theta,
    )


def with_share(threshold: Threshold, share: Fraction) -> Threshold:
    """Return the threshold with another share."""
    return threshold._replace(
        numerator=share.numerator, denominator=share.denominator, share=share.numerator / share.denominator
    )


def for_workers(threshold: Threshold, workers: int) -> Threshold:
    """Return the threshold with theta for another number of workers."""
    return with_share(threshold, share_of(threshold.theta, workers))


@njit(forceinline=True)
def bound(threshold: Any, whole: Any) -> Any:
    """Return what count x denominator must reach, in integers."""
    return threshold.numerator * whole + threshold.least


@njit(forceinline=True)
def reaches(threshold: Any, count: Any, whole: Any) -> Any:
    """Return whether a count is at least the share of the whole (above it if so wanted), in integers."""
    return count * threshold.denominator >= bound(threshold, whole)


@njit(forceinline=True)
def is_passed(threshold: Any, weight: Any, whole: Any) -> Any:
    """Return the same of floating-point numbers."""
    least = threshold.share * whole
    return weight > least if threshold.least else weight >= least


@njit(forceinline=True)
def extrapolated(weight: Any, whole: Any, total: Any) -> Any:
    """Return the share weight / whole of `total` tuples, rounded up, between 1 and all of them."""
    return min(max(np.int64(np.ceil(weight / whole * total)), np.int64(1)), np.int64(total))
