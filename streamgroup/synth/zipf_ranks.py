"""Ranks by Zipf's law with finite support: rank i = 0, ..., keys - 1 has probability proportional to (i + 1)^-exponent.

Up to 10^7 keys the distribution function is a table, inverted exactly. Above, ranks are drawn by rejection-inversion
(Hörmann and Derflinger, ACM TOMACS 6, 1996), which needs no table. Only additions, multiplications, divisions and
exact conversions decide a rank, in one order, so ranks are the same on every machine.
"""

import itertools
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.elementary_functions import exp, log
from streamgroup.kernels.random_draws import uniform
from streamgroup.synth.inverse_sampling import invert_cdf

__all__ = [
    "LARGEST_TABLE",
    "Ranks",
    "by_inversion",
    "by_rejection",
    "cumulative_distribution",
    "fitted_exponent",
    "zipf_ranks",
    "zipf_sum",
    "zipf_weights",
]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

LARGEST_TABLE = 10**7
# Long formulas go block by block, so that what lies between their steps stays in the cache.
_BLOCK = 1 << 14
_DRAWS = 1 << 16


class Ranks(Protocol):
    """A sampler of ranks: one for each place, which depends on the seed, the purpose and that place alone."""

    def __call__(self, seed: int, purpose: str, place: I64) -> I64:
        """Draw the ranks at these places, from 0 (the most frequent)."""
        ...


def zipf_ranks(keys: int, exponent: float) -> Ranks:
    """Make the sampler for a number of keys and an exponent from 0 (uniform) on."""
    return by_inversion(keys, exponent) if keys <= LARGEST_TABLE else by_rejection(keys, exponent)


def zipf_weights(first: int, stop: int, exponent: float) -> F64:
    """Return i^-exponent for i = first, ..., stop - 1 (relative error below 1e-13)."""
    return exp(-exponent * log(np.arange(first, stop, dtype=np.float64)))


def cumulative_distribution(keys: int, exponent: float) -> F64:
    """Return P(rank <= i) for i = 0, ..., keys - 1; summed one by one from the first."""
    sums = np.empty(keys)
    total = 0.0
    for first in range(0, keys, _BLOCK):
        weights = zipf_weights(first + 1, min(first + _BLOCK, keys) + 1, exponent)
        weights[0] += total
        sums[first : first + _BLOCK] = np.cumsum(weights)
        total = float(sums[min(first + _BLOCK, keys) - 1])
    sums /= total
    return sums


def zipf_sum(keys: int, exponent: float) -> float:
    """Return the sum of i^-exponent for i = 1, ..., keys (relative error below 1e-12), in a time that does not grow."""
    near = min(keys, 1000)
    total = float(np.cumsum(zipf_weights(1, near + 1, exponent))[-1])
    if keys == near:
        return total
    # Euler and Maclaurin's formula from the last key that was added one by one.
    ends = np.array([near, keys], dtype=np.float64)
    area = _area(ends, 1.0 - exponent)
    at = exp(-exponent * log(ends))
    slope = -exponent * at / ends
    return total + float(area[1] - area[0] + (at[1] - at[0]) / 2.0 + (slope[1] - slope[0]) / 12.0)


def fitted_exponent(keys: int, first: int, share: float) -> float | None:
    """Find the exponent from 0 to 3 at which the `first` most frequent keys have a share; 6 decimals, None if none."""

    def reached(exponent: float) -> float:
        return zipf_sum(first, exponent) / zipf_sum(keys, exponent)

    low, high = 0.0, 3.0
    if not reached(low) <= share <= reached(high):
        return None
    while high - low > 1e-9:
        middle = (low + high) / 2.0
        low, high = (middle, high) if reached(middle) < share else (low, middle)
    return round(high, 6)


def by_inversion(keys: int, exponent: float) -> Ranks:
    """Draw by exact inversion: one uniform draw a rank, 8 bytes of memory a key."""
    rank = invert_cdf(cumulative_distribution(keys, exponent))

    def draw(seed: int, purpose: str, place: I64) -> I64:
        ranks = np.empty(len(place), np.int64)
        for first in range(0, len(place), _DRAWS):
            piece = slice(first, first + _DRAWS)
            ranks[piece] = rank(uniform(seed, purpose, place[piece]))
        return ranks

    return draw


def by_rejection(keys: int, exponent: float) -> Ranks:
    """Draw by rejection-inversion: about 1.1 uniform draws a rank, no memory.

    Attempt a = 0, 1, ... at a place takes its own draw, of the purpose followed by a (nothing for the first).
    """
    bend = 1.0 - exponent
    low = float(_area(np.array([1.5]), bend)[0]) - 1.0
    high = float(_area(np.array([keys + 0.5]), bend)[0])
    second = _area(np.array([2.5]), bend) - zipf_weights(2, 3, exponent)
    sure = 2.0 - float(_from_area(second, bend)[0])

    def draw_block(seed: int, purpose: str, place: I64, rank: I64) -> None:
        left = np.arange(len(place))
        for attempt in itertools.count():
            name = f"{purpose} {attempt}" if attempt else purpose
            area = high + uniform(seed, name, place[left]) * (low - high)
            x = _from_area(area, bend)
            nearest = np.clip(np.rint(x), 1.0, keys)
            taken = nearest - x <= sure
            unsure = np.flatnonzero(~taken)
            k = nearest[unsure]
            taken[unsure] = area[unsure] >= _area(k + 0.5, bend) - exp(-exponent * log(k))
            rank[left[taken]] = nearest[taken].astype(np.int64) - 1
            left = left[~taken]
            if not len(left):
                return

    def draw(seed: int, purpose: str, place: I64) -> I64:
        rank = np.empty(len(place), np.int64)
        for first in range(0, len(place), _BLOCK):
            block = slice(first, first + _BLOCK)
            draw_block(seed, purpose, place[block], rank[block])
        return rank

    return draw


def _area(x: F64, bend: float) -> F64:
    """Integrate t^(bend - 1) from 1 to x: (x^bend - 1) / bend, and log x for bend = 0."""
    logarithm = log(x)
    return logarithm * _growth(bend * logarithm)


def _from_area(area: F64, bend: float) -> F64:
    """Invert `_area`: (1 + bend * area)^(1 / bend)."""
    # Far out in the tail of a steep law 1 + bend * area may round to 0.
    return exp(area * _decay(np.maximum(bend * area, -1.0 + 2.0**-53)))


def _growth(t: F64) -> F64:
    """Return (e^t - 1) / t; near 0, where that cancels, by its series."""
    total = np.ones_like(t)
    for k in range(18, 1, -1):
        total = total * t / k + 1.0
    far = np.abs(t) > 0.5
    total[far] = (exp(t[far]) - 1.0) / t[far]
    return total


def _decay(t: F64) -> F64:
    """Return log(1 + t) / t for t > -1; near 0, where that cancels, as 2 artanh(t / (2 + t)) / t by its series."""
    ratio = t / (2.0 + t)
    square = ratio * ratio
    total = np.zeros_like(t)
    for odd in range(25, 0, -2):
        total = total * square + 1.0 / odd
    total *= 2.0 / (2.0 + t)
    far = np.abs(t) > 0.25
    total[far] = log(1.0 + t[far]) / t[far]
    return total
