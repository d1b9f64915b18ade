"""Accounts tuples of the event-driven simulation in the order of the stream, window by window."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.recorder import Recorder
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.tuple_arrays import Events, each_column

__all__ = ["Measuring", "Sink"]

I64 = NDArray[np.int64]

# Takes tuples in the order of the stream as they are certain: number of the first, what happened to them, and the
# deliveries of theirs that were lost and made again, int64[j, 2].
Sink = Callable[[int, Events, I64], None]


class Measuring:
    """The first `warmup` tuples are not measured; `sink` gets all of them."""

    def __init__(self, recorder: Recorder, windows: WindowRule, warmup: int, sink: Sink) -> None:
        self._recorder, self._windows, self._warmup, self._sink = recorder, windows, warmup, sink
        self._first_measured: int | None = None

    def take(self, begin: int, events: Events, again: I64, paid: I64 | None = None) -> None:
        """Account tuples from number `begin` on. `paid` int64[k] are their starts as busy time counts, if others."""
        end = begin + len(events.key)
        self._sink(begin, events, again)
        first, ends = max(begin, self._warmup), np.zeros(0, dtype=np.int64)
        if first < end:
            arrival = events.arrival[first - begin :]
            if self._first_measured is None:
                self._first_measured = int(arrival[0])
            since = arrival - self._first_measured if self._windows.width_ns is not None else arrival
            place, number = self._windows.begins(first - self._warmup, since)
            ends = self._recorder.begin_windows(first, place, number, arrival) + first
        if self._recorder.hotness is not None:
            self._recorder.hotness.add_events(events, begin, min(first, end) - begin, ends - begin)
        if first < end:
            again = again[again[:, 0] >= self._warmup]
            self._recorder.redelivered += len(again)
            accounted = events if paid is None else events._replace(start=paid)
            measured = each_column(accounted, lambda column: column[first - begin :])
            self._recorder.account(measured, first, ends, again)

    def finish(self, events: Events, tuples: int) -> None:
        """End the last window; `events` are none, `tuples` how many there were."""
        self._recorder.account(events, tuples, np.array([tuples]))
        if self._recorder.hotness is not None:
            self._recorder.hotness.end()
