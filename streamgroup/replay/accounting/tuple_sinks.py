"""What becomes of the tuples of a run besides the meters: the log, finishes by window, partial results, base work."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.assignment_log import LogWriter
from streamgroup.replay.accounting.count_partials import Partials
from streamgroup.replay.accounting.outcome import Aggregation, AppResults, TreeTable
from streamgroup.replay.accounting.recorder import NEVER_AGAIN
from streamgroup.replay.accounting.tuple_trees import Trees
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.stages.partials_to_aggregators_and_app import Merging
from streamgroup.replay.tuple_arrays import DROPPED, Events

__all__ = ["Results", "Takers"]

I64 = NDArray[np.int64]


class Takers(NamedTuple):
    """What takes the tuples of a run besides the meters, each None where it is not there: the log, what counts partial
    results, what merges them, and what follows tuple trees.
    """

    writer: LogWriter | None
    partials: Partials | None
    merging: Merging | None
    trees: Trees | None


class Results:
    """Takes every tuple of a run in the order of the stream; the first `warmup` of them only into the log.

    `width_ns` is the length of windows that are times, else None; `key_count` int64[keys] is how often each key comes.
    In a `closed` loop tuples do not arrive in the order of the stream.
    """

    def __init__(
        self, takers: Takers, width_ns: int | None, warmup: int, constant_ns: int | None, key_count: I64, *,
        closed: bool,
    ) -> None:  # fmt: skip
        self._writer, self._partials, self._merging, self._trees = takers
        self._width_ns = width_ns
        self._warmup = warmup
        self._constant = constant_ns
        self._closed = closed
        self.count = key_count if warmup == 0 else key_count.copy()
        self.work = 0
        self.longest = 0
        self.finished: dict[int, int] | None = {} if width_ns is not None else None
        self.first_arrival: int | None = None
        self.last_arrival = 0

    @property
    def wants_tuples(self) -> bool:
        """Return whether it needs to know where each tuple went."""
        takers = self._writer, self._partials, self._merging, self._trees, self.finished
        return any(taker is not None for taker in takers)

    @property
    def wants_starts(self) -> bool:
        """Return whether it needs to know the source and the start of each tuple, too."""
        return self._writer is not None

    @property
    def windows_ns(self) -> int | None:
        """Return the length of the windows, where they are times."""
        return self._width_ns

    @property
    def messages(self) -> int | None:
        """Count the partial results, None where workers send them once, at the end."""
        counting = self._partials or self._merging
        return None if counting is None else counting.messages

    def merged(self) -> tuple[Aggregation | None, AppResults | None]:
        """End the last window of partial results; return what the aggregators did and an application's results."""
        return (None, None) if self._merging is None else self._merging.finish()

    @property
    def trees(self) -> TreeTable | None:
        """Return the latencies of tuple trees, None for a trace without any."""
        return None if self._trees is None else self._trees.table()

    def close(self) -> None:
        """Finish the log."""
        if self._writer is not None:
            self._writer.close()

    def add_costs(self, ready: Ready) -> None:
        """Add the base costs of a chunk, and forget the keys of warm-up tuples."""
        size = len(ready.key)
        if ready.skip:
            self.count -= np.bincount(ready.key[: ready.skip], minlength=len(self.count))
        if ready.cost is None:
            self.work += (self._constant or 0) * (size - ready.skip)
            self.longest = self._constant or 0
        elif ready.skip < size:
            cost = np.rint(ready.cost[ready.skip :]).astype(np.int64)
            self.work += (int((cost >> 20).sum()) << 20) + int((cost & 0xFFFFF).sum())
            self.longest = max(self.longest, int(cost.max()))

    def add(self, offset: int, events: Events, again: I64 = NEVER_AGAIN) -> None:
        """Add tuples from number `offset` on, in columns that will not change; `again` are deliveries before the last
        ones: number of the tuple and worker.
        """
        skip = min(max(self._warmup - offset, 0), len(events.key))
        if skip < len(events.key) and self.first_arrival is None:
            self.first_arrival = int(events.arrival[skip])
        if self._closed and skip < len(events.key):
            self.last_arrival = max(self.last_arrival, int(events.arrival[skip:].max()))
        elif not self._closed:
            self.last_arrival = int(events.arrival[-1])
        if not self.wants_tuples:
            return
        if self._writer is not None:
            self._writer.write(offset, events)
        if self._trees is not None:
            self._trees.add(offset, events.arrival, events.finish)
        repeated = again[again[:, 0] >= offset + skip] - np.array([offset + skip, 0])
        self._add_measured(
            offset + skip,
            events.arrival[skip:],
            events.key[skip:],
            events.worker[skip:],
            events.finish[skip:],
            repeated,
        )

    def _add_measured(
        self, offset: int, arrival: I64, key: NDArray[Any], worker: NDArray[Any], finish: I64, again: I64
    ) -> None:
        if not len(arrival):
            return
        assert self.first_arrival is not None
        if self.finished is not None and self._width_ns is not None:
            done = finish[finish >= 0]
            numbers, counts = np.unique((done - self.first_arrival) // self._width_ns, return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                self.finished[number] = self.finished.get(number, 0) + count
        if self._partials is not None:
            sent = np.where(finish == DROPPED, np.int32(-1), worker)
            self._partials.add(offset - self._warmup, arrival - self.first_arrival, key, sent, again)
        if self._merging is not None:
            self._merging.add(offset - self._warmup, arrival, key, worker, finish)
