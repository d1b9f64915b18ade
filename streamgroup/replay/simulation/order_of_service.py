"""The order in which tuples leave sources that take a time for each and are never held back.

When a source has served a tuple follows from its arrival and from the tuple before. All that leave before the last
arrival that was read are sorted; of the others one that was not read may come before them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.simulation.optional_array_elements import get
from streamgroup.replay.simulation.source_server import service_time
from streamgroup.replay.tuple_arrays import NEVER, Chunk

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

    `base` int64[sources] are the service times before a random factor; `idle` int64[sources] is when each is idle.
    """
    source: Any = np.int64(chunk.offset % chunk.sources)
    for place in range(chunk.key.shape[0]):
        i = np.uint64(place)
        source = np.int64(get(chunk.source, i, source))
        row, at = np.uint64(source), np.uint64(begin + place)
        left = max(chunk.arrival[i], idle[row]) + service_time(base[row], chunk.source_factor, i)
        idle[row] = left
        leaving.seq[at] = chunk.offset + place
        leaving.source[at] = source
        leaving.leaves[at] = left
        source += 1
        if source == chunk.sources:
            source = 0


def sort_in(leaving: Any, horizon: Any, ordered: Any, later: Any, counts: Any) -> Any:
    """Divide tuples into `ordered` ones that leave up to the horizon, by time, then by number, and `later` ones.

    `leaving` are in the order of their numbers. `counts` int64[2] takes how many there are of both. Return whether it
    gave up, as sorting took too many steps.
    """
    count, rest = np.int64(0), np.int64(0)
    size = leaving.seq.shape[0]
    steps = np.int64(0)
    most = np.int64(_STEPS * size + 64)
    for i in range(size):
        left = leaving.leaves[i]
        if left > horizon:
            later.seq[rest], later.source[rest], later.leaves[rest] = leaving.seq[i], leaving.source[i], left
            rest += 1
        else:
            place = count
            while place > 0 and ordered.leaves[place - 1] > left:
                ordered.seq[place] = ordered.seq[place - 1]
                ordered.source[place] = ordered.source[place - 1]
                ordered.leaves[place] = ordered.leaves[place - 1]
                place -= 1
            steps += count - place
            if steps > most:
                return True
            ordered.seq[place], ordered.source[place], ordered.leaves[place] = leaving.seq[i], leaving.source[i], left
            count += 1
    counts[0], counts[1] = count, rest
    return False


class OrderOfService:
    """Keeps the tuples that were read and are not sent; `now` are those that leave before any that was not read."""

    def __init__(self, function: Callable[..., Any], base: I64) -> None:
        self._serve, self._sort = function(serve_at_sources), function(sort_in)
        self._base, self._idle = base, np.zeros(len(base), dtype=np.int64)
        self._rooms = [_room(BLOCK) for _ in range(3)]
        self._later = self.now = _part(self._rooms[0], slice(0))

    def take(self, ready: Ready, begin: int, end: int, *, last: bool) -> None:
        """Take the tuples from one place of a chunk to another; all of `now` were sent.

        After the `last` ones there is none.
        """
        waiting = len(self._later.seq)
        size = waiting + end - begin
        if size > len(self._rooms[0].seq):
            self._rooms = [_room(2 * size) for _ in range(3)]
        # What waits lies in the last one, or in arrays of its own.
        read, now, later = (_part(room, slice(size)) for room in self._rooms)
        for column, before in zip(read.columns, self._later.columns, strict=True):
            column[:waiting] = before
        part = slice(begin, end)
        source, factor = ready.source, ready.source_factor
        chunk = Chunk(
            ready.offset + begin, len(self._base), ready.arrival[part], ready.key[part], None,
            None if source is None else source[part], None if factor is None else factor[part],
        )  # fmt: skip
        self._serve(self._base, self._idle, chunk, read, waiting)
        horizon, counts = NEVER if last else int(chunk.arrival[-1]), np.zeros(2, dtype=np.int64)
        if self._sort(read, horizon, now, later, counts):
            certain = read.leaves <= horizon
            order = np.flatnonzero(certain)
            order = order[np.argsort(read.leaves[order], kind="stable")]
            self.now, self._later = _part(read, order), _part(read, np.flatnonzero(~certain))
        else:
            self.now, self._later = _part(now, slice(counts[0])), _part(later, slice(counts[1]))

    def first_unsent(self, end: int) -> int:
        """Return the lowest number that was read and not sent, `end` without any."""
        unsent = self.now.seq[self.now.sent[0] :].min(initial=end)
        return int(self._later.seq.min(initial=unsent))


def _room(size: int) -> Leaving:
    numbers = np.zeros((2, size), dtype=np.int64)
    return Leaving(numbers[0], np.zeros(size, dtype=np.int32), numbers[1], np.zeros(1, dtype=np.int64))


def _part(some: Leaving, places: Any) -> Leaving:
    return Leaving(some.seq[places], some.source[places], some.leaves[places], np.zeros(1, dtype=np.int64))
