"""The order in which tuples leave sources that take a time for each and are never held back.

When a source has served a tuple follows from its arrival and from the tuple before. Those that leave before any tuple
that was not read can are sorted; the others wait.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.simulation.optional_array_elements import get
from streamgroup.replay.simulation.source_server import service_time
from streamgroup.replay.tuple_arrays import MAX_TIME_NS, Chunk

__all__ = ["BLOCK", "Leaving", "OrderOfService"]

I64 = NDArray[np.int64]
# Tuples that are sorted at a time: what is kept of them stays in the cache.
BLOCK = 1 << 16
# Tuples that a tuple goes past when it is sorted in, on average, up to which that is the quickest way.
_STEPS = 8


class Leaving(NamedTuple):
    """Tuples in the order in which they leave their sources: number int64, source int32, when int64, ns.

    `sent` int64[1] is how many of them were sent.
    """

    seq: I64
    source: NDArray[np.int32]
    leaves: I64
    sent: I64

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """Return what has an element for each tuple."""
        return self.seq, self.source, self.leaves


def serve_at_sources(base: Any, idle: Any, chunk: Any, leaving: Any, begin: Any) -> None:
    """Let sources serve a chunk; write number, source and end of each tuple to `leaving` from the place `begin` on.

    `base` int64[sources] are the service times before a random factor; `idle` int64[sources] is when each is idle. What
    ends past the clock's end has the first time after it.
    """
    source: Any = np.int64(chunk.offset % chunk.sources)
    for place in range(chunk.key.shape[0]):
        i = np.uint64(place)
        source = np.int64(get(chunk.source, i, source))
        row, at = np.uint64(source), np.uint64(begin + place)
        left = max(chunk.arrival[i], idle[row]) + service_time(base[row], chunk.source_factor, i)
        left = min(left, np.int64(MAX_TIME_NS + 1))
        idle[row] = left
        leaving.seq[at] = chunk.offset + place
        leaving.source[at] = source
        leaving.leaves[at] = left
        source += 1
        if source == chunk.sources:
            source = 0


def divide(waiting: Any, horizon: Any, now: Any) -> None:
    """Move those that leave up to the horizon to `now`, which has their size; the others move to the front."""
    count, rest = np.int64(0), np.int64(0)
    for place in range(waiting.seq.shape[0]):
        i = np.uint64(place)
        seq, source, leaves = waiting.seq[i], waiting.source[i], waiting.leaves[i]
        if leaves > horizon:
            at = np.uint64(rest)
            waiting.seq[at], waiting.source[at], waiting.leaves[at] = seq, source, leaves
            rest += 1
        else:
            at = np.uint64(count)
            now.seq[at], now.source[at], now.leaves[at] = seq, source, leaves
            count += 1


def sort_by_time(now: Any, most: Any) -> Any:
    """Sort tuples that are in the order of their numbers by time, equal ones as they are.

    Return whether it gave up after `most` steps, with the order of equal ones kept.
    """
    steps = np.int64(0)
    for begin in range(1, now.seq.shape[0]):
        seq, source, leaves = now.seq[begin], now.source[begin], now.leaves[begin]
        place = begin
        while place > 0 and now.leaves[place - 1] > leaves:
            now.seq[place] = now.seq[place - 1]
            now.source[place] = now.source[place - 1]
            now.leaves[place] = now.leaves[place - 1]
            place -= 1
        if place < begin:
            now.seq[place], now.source[place], now.leaves[place] = seq, source, leaves
            steps += begin - place
            if steps > most:
                return True
    return False


class OrderOfService:
    """Keeps the tuples that were read and are not sent; `now` are those that are to be sent next, in their order."""

    def __init__(self, function: Callable[..., Any], base: I64) -> None:
        self._serve, self._divide, self._sort = map(function, (serve_at_sources, divide, sort_by_time))
        self._base, self._idle = base, np.zeros(len(base), dtype=np.int64)
        # In the order of their numbers: how many there are, and how many of them were read since others were sorted.
        self._waiting, self._size, self._read = _room(BLOCK), 0, 0
        self._sorted = _room(BLOCK)
        self._last_arrival = 0
        self.now = _part(self._sorted, slice(0))

    def read(self, ready: Ready, begin: int, end: int) -> None:
        """Read the tuples of a chunk from one place to another."""
        size = self._size + end - begin
        if size > len(self._waiting.seq):
            larger = _room(size + size // 2)
            for column, before in zip(larger.columns, self._waiting.columns, strict=True):
                column[: self._size] = before[: self._size]
            self._waiting = larger
        part = slice(begin, end)
        source, factor = ready.source, ready.source_factor
        chunk = Chunk(
            ready.offset + begin, len(self._base), ready.arrival[part], ready.key[part], None,
            None if source is None else source[part], None if factor is None else factor[part],
        )  # fmt: skip
        self._serve(self._base, self._idle, chunk, self._waiting, self._size)
        self._size, self._read = size, self._read + end - begin
        self._last_arrival = int(ready.arrival[end - 1])

    def next(self, *, last: bool) -> bool:
        """Find those that leave before any that was not read, all of `now` having been sent; return whether it did.

        As long as more are read than wait, each is looked at but a few times. After the `last` ones there is none.
        """
        if not self._size or (not last and 2 * self._read < self._size):
            return False
        waiting = now = _part(self._waiting, slice(self._size))
        if not last:
            # A tuple that was not read arrives later, and leaves later than the tuple before of its source.
            horizon = max(self._last_arrival, int(self._idle.min()))
            count = int(np.count_nonzero(waiting.leaves <= horizon))
            if count > len(self._sorted.seq):
                self._sorted = _room(count + count // 2)
            now = _part(self._sorted, slice(count))
            self._divide(waiting, horizon, now)
        if self._sort(now, _STEPS * len(now.seq)):
            now = _part(now, np.argsort(now.leaves, kind="stable"))
        self.now, self._size, self._read = now, self._size - len(now.seq), 0
        return True

    def first_unsent(self, end: int) -> int:
        """Return the lowest number that was read and not sent, `end` without any."""
        unsent = self.now.seq[self.now.sent[0] :].min(initial=end)
        return int(self._waiting.seq[: min(self._size, 1)].min(initial=unsent))


def _room(size: int) -> Leaving:
    numbers = np.zeros((2, size), dtype=np.int64)
    return Leaving(numbers[0], np.zeros(size, dtype=np.int32), numbers[1], np.zeros(1, dtype=np.int64))


def _part(some: Leaving, places: Any) -> Leaving:
    return Leaving(some.seq[places], some.source[places], some.leaves[places], np.zeros(1, dtype=np.int64))
