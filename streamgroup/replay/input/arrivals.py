"""Arrival times of the tuples at their sources: exact int64 ns since the first, computed chunk by chunk."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.kernels import random_draws

__all__ = [
    "MAX_NS",
    "Arrivals",
    "ConstantArrivals",
    "PoissonArrivals",
    "Tie",
    "TraceArrivals",
    "find_ties",
]

I64 = NDArray[np.int64]
MAX_NS = 1 << 62
_FIXED_BITS = 42


class Arrivals(Protocol):
    """Arrival times of a run."""

    def chunk(self, offset: int, timestamp: I64 | None, size: int) -> I64:
        """Return the arrivals of tuples offset..offset+size-1; chunks are asked for in order."""


def _check_end(last_ns: int | Fraction) -> None:
    if last_ns > MAX_NS:
        raise DataError(
            f"the last tuple would arrive {float(last_ns) / 1e9:.3g} s after the first, past the clock's 146 years",
            "use --speedup, or --arrivals utilization=0.8",
        )


@dataclass(frozen=True)
class Tie:
    """A group of equal timestamps: the place of its first tuple, its size, the gap that it is spread over (us)."""

    start: int
    count: int
    gap_us: int


def find_ties(chunks: Iterable[tuple[int, I64]]) -> dict[int, tuple[Tie, Tie]]:
    """Find the groups that touch the borders of chunks: for each offset, the first and the last group of that chunk.

    The last group of all is spread over the gap before it; one instant alone is not spread.
    """
    borders: dict[int, tuple[int, int]] = {}
    begun: list[tuple[int, int]] = []
    end = 0
    for offset, timestamp in chunks:
        starts = np.flatnonzero(timestamp[1:] != timestamp[:-1]) + 1
        if not begun or begun[-1][1] != timestamp[0]:
            begun.append((offset, int(timestamp[0])))
        first = len(begun) - 1
        # Of the groups that begin inside a chunk, the first two and the last two are enough to know their neighbours.
        inner = sorted({*starts[:2].tolist(), *starts[-2:].tolist()})
        begun.extend((offset + place, int(timestamp[place])) for place in inner)
        borders[offset] = (first, len(begun) - 1)
        end = offset + len(timestamp)
    ties: dict[int, tuple[Tie, Tie]] = {}
    for offset, (first, last) in borders.items():
        ties[offset] = (_tie(begun, first, end), _tie(begun, last, end))
    return ties


def _tie(begun: list[tuple[int, int]], place: int, end: int) -> Tie:
    start, time = begun[place]
    if place + 1 < len(begun):
        following, next_time = begun[place + 1]
        return Tie(start, following - start, next_time - time)
    gap = time - begun[place - 1][1] if place else 0
    return Tie(start, end - start, gap)


class TraceArrivals:
    """The trace's own times, divided by the speed-up; with `ties`, equal times are spread evenly before the next one.

    `ties[offset]` holds the groups at the start and the end of the chunk at `offset`; see `find_ties`.
    """

    def __init__(
        self, first_us: int, last_us: int, speedup: Fraction, ties: dict[int, tuple[Tie, Tie]] | None = None
    ) -> None:
        last = Fraction(last_us - first_us)
        if ties:
            group = max((pair[1] for pair in ties.values()), key=lambda tie: tie.start)
            last += Fraction((group.count - 1) * group.gap_us, group.count)
        _check_end(last * 1000 / speedup)
        self._first = first_us
        per_us = 1000 / speedup
        self._numerator, self._denominator = per_us.numerator, per_us.denominator
        self._ties = ties

    def chunk(self, offset: int, timestamp: I64 | None, size: int) -> I64:
        """Return (timestamp - first) x 1000 / speedup, rounded once, halves to even."""
        assert timestamp is not None
        since = timestamp - np.int64(self._first)
        nothing = np.zeros(1, dtype=np.int64)
        if self._ties is None:
            if self._denominator == 1 and int(since[-1]) * self._numerator < MAX_NS:
                since *= np.int64(self._numerator)
                return since
            return _rounded(since, nothing, nothing, nothing + 1, self._numerator, self._denominator)
        starts = np.concatenate([[0], np.flatnonzero(timestamp[1:] != timestamp[:-1]) + 1])
        counts = np.diff(starts, append=size)
        gaps = np.diff(timestamp[starts], append=timestamp[-1])
        places = np.arange(size, dtype=np.int64) - np.repeat(starts, counts)
        sizes = counts.copy()
        first, last = self._ties[offset]
        places[: counts[0]] += offset - first.start
        sizes[0], gaps[0] = first.count, first.gap_us
        sizes[-1], gaps[-1] = last.count, last.gap_us
        spread = np.repeat(gaps, counts)
        return _rounded(since, places, spread, np.repeat(sizes, counts), self._numerator, self._denominator)


def _rounded(since: I64, place: I64, gap: I64, count: I64, numerator: int, denominator: int) -> I64:
    """Return (since + place x gap / count) x numerator / denominator in whole numbers, halves to even, exactly.

    With D = denominator x count this is whole parts plus (r x count + place x z) / D, r and z remainders.
    """
    most = int(count.max())
    if max(int(since.max()), int(gap.max())) * numerator >= MAX_NS or denominator * most * most >= MAX_NS:
        rows = zip(*(np.broadcast_to(item, since.shape).tolist() for item in (since, place, gap, count)), strict=True)
        exact = [round((s + Fraction(p * g, c)) * numerator / denominator) for s, p, g, c in rows]
        return np.array(exact, dtype=np.int64)
    if denominator == 1 and most == 1:
        return since * np.int64(numerator)
    whole, rest = np.divmod(since * np.int64(numerator), np.int64(denominator))
    divisor = count * np.int64(denominator)
    stride, rest_of_gap = np.divmod(gap * np.int64(numerator), divisor)
    carried, left = np.divmod(rest * count + place * rest_of_gap, divisor)
    result = whole + place * stride + carried
    up = (2 * left > divisor) | ((2 * left == divisor) & (result % 2 == 1))
    return np.asarray(result + up, dtype=np.int64)


class ConstantArrivals:
    """Arrival i is floor(i x spacing) in exact integer arithmetic; `spacing` is in ns."""

    def __init__(self, spacing: Fraction, tuples: int) -> None:
        _check_end(spacing * max(tuples - 1, 0))
        self._spacing = spacing

    def chunk(self, offset: int, timestamp: I64 | None, size: int) -> I64:
        """Compute with 42 binary places; where these do not decide the floor, with the exact fraction."""
        del timestamp
        numerator, denominator = self._spacing.numerator, self._spacing.denominator
        whole, rest = divmod(numerator, denominator)
        base, carried = divmod(offset * numerator, denominator)
        index = np.arange(size, dtype=np.int64)
        if rest == 0:
            # Whole ns: nothing to floor.
            index *= np.int64(whole)
            return index + np.int64(base)
        if carried + rest * size < MAX_NS:
            return (
                np.int64(base) + index * np.int64(whole) + (carried + index * np.int64(rest)) // np.int64(denominator)
            )
        step = (rest << _FIXED_BITS) // denominator
        begun = (carried << _FIXED_BITS) // denominator
        fixed = np.int64(begun) + index * np.int64(step)
        result = np.int64(base) + index * np.int64(whole) + (fixed >> _FIXED_BITS)
        # Each of the two floors lost less than one unit of the last place, the step's i times.
        unsure = (fixed & ((1 << _FIXED_BITS) - 1)) >= (1 << _FIXED_BITS) - (index + 1)
        for i in np.flatnonzero(unsure):
            result[i] = (offset + int(i)) * numerator // denominator
        return result


class PoissonArrivals:
    """Exponential gaps, each rounded to whole ns once; the first tuple arrives at 0."""

    def __init__(self, mean_ns: Fraction, tuples: int, seed: int) -> None:
        _check_end(mean_ns * max(tuples - 1, 0))
        self._mean = float(mean_ns)
        self._seed = seed
        self._before = 0

    def chunk(self, offset: int, timestamp: I64 | None, size: int) -> I64:
        """Draw the gaps before these tuples by their index and add them up as integers."""
        del timestamp
        index = np.arange(offset, offset + size, dtype=np.int64)
        drawn = np.rint(self._mean * random_draws.exponential(self._seed, "arrivals", index))
        if offset == 0:
            drawn[0] = 0
        _check_end(self._before + int(drawn.sum()))
        gaps = drawn.astype(np.int64)
        arrivals = np.int64(self._before) + np.cumsum(gaps)
        self._before = int(arrivals[-1])
        return arrivals
