"""Where windows end: places in the stream, known before a chunk runs (SIMULATION: window)."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.base.time_count_or_share import parse_extent

__all__ = ["WindowRule"]

I64 = NDArray[np.int64]
# Numbers of windows stay far below 2^63.
_LEAST_SHARE = Fraction(1, 10**12)


class WindowRule:
    """Assigns each of `tuples` measured tuples to a window: by share, by count, or by the time of its arrival.

    `what` names the option in errors. `width_ns` is the length where that is a time, else None, and then `length` is
    that in tuples.
    """

    def __init__(self, text: str, tuples: int, what: str = "--window") -> None:
        extent = parse_extent(text, what)
        if not (extent.ns or extent.count or extent.share):
            raise UsageError(f"{what} {text}: a window cannot be empty", "write 10s, 50000 or 1%")
        if extent.kind == "share" and extent.share < _LEAST_SHARE:
            raise UsageError(f"{what} {text}: there are not that many windows", "write 10s, 50000 or 1%")
        self._kind = extent.kind
        self.width_ns = extent.ns if extent.kind == "time" else None
        # Window k of a share p begins at the first i with i >= k p m; a count c is p m = c.
        self.length = extent.share * tuples if extent.kind == "share" else Fraction(extent.count)
        self._tuples = tuples

    def begins(self, offset: int, arrival: I64) -> tuple[I64, I64]:
        """Return the places in a chunk where the window changes, the chunk's first place included: (place, number)."""
        size = len(arrival)
        if self.width_ns is not None:
            return self._by_time(arrival, self.width_ns)
        first, last = self._number(offset), self._number(offset + size - 1)
        if self.length >= 1:
            numbers = np.arange(first, last + 1, dtype=np.int64)
            starts = [self._start(number) - offset for number in range(first + 1, last + 1)]
            return np.array([0, *starts], dtype=np.int64), numbers
        # More windows than tuples: each tuple has a window of its own.
        numbers = np.array([self._number(offset + place) for place in range(size)], dtype=np.int64)
        return np.arange(size, dtype=np.int64), numbers

    def most(self, span_ns: int) -> int:
        """Return how many windows there can be that are not empty, over a stream of `span_ns`."""
        if self.width_ns is not None:
            return min(self._tuples, span_ns // self.width_ns + 1)
        return min(self._tuples, self._number(self._tuples - 1) + 1)

    def _number(self, index: int) -> int:
        return index * self.length.denominator // self.length.numerator

    def _start(self, number: int) -> int:
        return -(-number * self.length.numerator // self.length.denominator)

    @staticmethod
    def _by_time(arrival: I64, width: int) -> tuple[I64, I64]:
        first, last = int(arrival[0]) // width, int(arrival[-1]) // width
        if last - first < len(arrival) // 8:
            borders = np.arange(first + 1, last + 1, dtype=np.int64) * np.int64(width)
            places = np.searchsorted(arrival, borders, side="left")
            places = np.unique(np.concatenate([[0], places]))
            return places.astype(np.int64), arrival[places] // np.int64(width)
        numbers = arrival // np.int64(width)
        places = np.concatenate([[0], np.flatnonzero(numbers[1:] != numbers[:-1]) + 1]).astype(np.int64)
        return places, numbers[places]
