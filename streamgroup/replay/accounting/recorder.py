"""What a run measured, gathered window by window: the loops fill arrays, this gives and takes them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.latency_histogram import BUCKETS
from streamgroup.replay.accounting import key_worker_pairs
from streamgroup.replay.accounting.account import (
    Meters,
    Progress,
    Serving,
    account,
    account_hot,
    make_meters,
)
from streamgroup.replay.accounting.detected_and_true_hot_keys import Hotness
from streamgroup.replay.accounting.outcome import LagTable, WindowTable, WorkerTable
from streamgroup.replay.accounting.replica_sets import touched
from streamgroup.replay.accounting.window_rows import PERCENTS, WindowRows
from streamgroup.replay.accounting.worker_lag import Repeats, lag_table, make_room
from streamgroup.replay.live_workers import Members
from streamgroup.replay.tuple_arrays import Events, each_column

__all__ = ["NEVER_AGAIN", "Accounting", "Recorder", "Totals"]

I64 = NDArray[np.int64]
# Windows that are accounted in one call, as windows x workers.
_WINDOW_CELLS = 1 << 20
NEVER_AGAIN = np.zeros((0, 2), dtype=np.int64)


class Totals(NamedTuple):
    """Sums over the measured tuples of a run: `redelivered`, `lost` and `dropped` tuples, `hot` ones and their choices.

    `source_state` is the largest state of a source, `last_finish` in ns, None if nothing finished.
    """

    redelivered: int
    lost: int
    dropped: int
    hot: int
    hot_choices: int
    choices_max: int
    source_state: int
    last_finish: int | None


def _blank_rows(ends: I64, workers: int) -> WindowRows:
    """Make rows for the windows that end before the tuples of these numbers."""
    count = len(ends)
    by_worker = (np.zeros((count, workers), dtype=np.int64) for _ in range(2))
    numbers = (np.zeros(count, dtype=np.int64) for _ in range(6))
    columns: list[NDArray[Any]] = [ends, *by_worker, *numbers, np.zeros((count, len(PERCENTS)), dtype=np.float64)]
    return WindowRows(*columns)


class Accounting:
    """Accounts events piece by piece, as they happen, from a place on; the first is that of tuple `offset`.

    Windows end before the tuples numbered `ends`. `again` int64[k, 2] are deliveries that were lost and made again:
    number of the tuple and worker. With `serving` the workers serve them first.
    """

    def __init__(
        self,
        recorder: "Recorder",
        events: Events,
        offset: int,
        place: int,
        ends: I64,
        again: I64 = NEVER_AGAIN,
        serving: Serving | None = None,
    ) -> None:
        self._serving = serving
        if len(events.arrival):
            make_room(recorder.meters.lag, int(events.arrival[-1]))
        self._recorder, self._events, self._again = recorder, events, again
        self._first, self._ends, self._ended = place, ends, 0
        self._progress = Progress(offset, place, place, 0, 0, 0)
        # What is not needed is left out: then it is one compiled function for all.
        start = events.start if recorder.service_ns is None else None
        self._needed = events._replace(source=None, start=start, hot=None, entries=None)
        self._begin_rows()

    def _begin_rows(self) -> None:
        """Make rows for as many windows as fit into memory."""
        recorder = self._recorder
        ends = self._ends[self._ended : self._ended + max(1, _WINDOW_CELLS // recorder.workers)]
        self._ended += len(ends)
        self._rows = _blank_rows(ends.copy(), recorder.workers)
        self._progress = self._progress._replace(row=0)

    def advance(self, end: int) -> int:
        """Account what happens before a place; return it, or that of a tuple that finishes past the clock's end."""
        recorder = self._recorder
        while True:
            upto = end
            if self._ended < len(self._ends):
                upto = min(end, int(self._rows.ends[-1]) - self._progress.offset)
            progress = self._progress._replace(end=upto)
            self._progress = recorder.run(
                self._needed, self._serving, recorder.meters, recorder.pairs, self._again, self._rows, progress
            )
            if self._progress.late:
                return self._progress.begin
            if self._progress.begin < upto:
                recorder.make_room()
            elif self._ended < len(self._ends) and self._progress.row == len(self._rows.ends):
                recorder.add_rows(self._rows)
                self._begin_rows()
            elif upto == end:
                return end

    def finish(self) -> None:
        """Hand over the rows of windows, and account what the grouping reported."""
        first, end = self._first, self._progress.begin
        self._recorder.add_rows(self._rows)
        events = each_column(self._events, lambda column: column[first:end])
        # What the workers serve here was not dropped.
        ends = self._ends - (self._progress.offset + first)
        self._recorder.account_reports(events, ends, drops=self._serving is None)


class Recorder:
    """Meters of a run; `function` gives a function compiled or interpreted.

    `free` int64[n] is when each worker that there ever is is idle, `service_ns` int64[n] the service time of all tuples
    on it, None where they differ. `hotness` follows the hot keys, None where the grouping reports none; `heads`
    (see `detected_and_true_hot_keys.heads`) are the keys that are hot in truth over the whole trace; `entries` says
    whether the grouping reports the size of its detector. `limit` is the memory limit of workers in entries, where
    state costs.
    """

    def __init__(
        self,
        function: Callable[[Any], Callable[..., Any]],
        keys: int,
        free: I64,
        service_ns: I64 | None,
        hotness: Hotness | None,
        *,
        heads: NDArray[np.uint8],
        entries: bool,
        limit: int = 0,
    ) -> None:
        workers = len(free)
        self._function, self.service_ns = function, service_ns
        self.run, self._run_hot = function(account), function(account_hot)
        self.keys = keys
        self._free = free
        self.meters: Meters = make_meters(workers, heads)
        self._limit = self.meters.held[0] = limit
        # The largest state of a source, and the longest wait of a tuple on each worker.
        self.largest_state = np.zeros(1, dtype=np.int64)
        self.waits = np.zeros(workers, dtype=np.int64)
        self.pairs = key_worker_pairs.make_pairs(keys, workers)
        # Tuples treated as hot by worker, the sum and the maximum of the workers allowed to them.
        self.hot_tuples = np.zeros(workers, dtype=np.int64)
        self._choices = np.zeros(2, dtype=np.int64)
        # The size of the detector at the end of each window, and after the last tuple.
        self._entries: list[I64] = []
        self._last_entries = 0
        self.redelivered = 0
        self._repeats = Repeats()
        self.workers = workers
        self.hotness = hotness
        self._has_entries = entries
        self._rows: list[WindowRows] = []
        self._numbers: list[I64] = []
        self._starts: list[I64] = []
        self._first_tuples: list[I64] = []
        self._last: int | None = None

    def blank(self) -> "Recorder":
        """Make another one that has measured nothing, for the same workers."""
        return Recorder(
            self._function, self.keys, self._free, self.service_ns, self.hotness,
            heads=self.meters.heads, entries=self._has_entries, limit=self._limit,
        )  # fmt: skip

    def begin_windows(self, offset: int, place: I64, number: I64, arrival: I64) -> I64:
        """Note the windows that begin at places of a chunk, the first of them may have begun before; where some end.

        `offset` is the number of the chunk's first tuple.
        """
        goes_on = int(number[0]) == self._last
        place, number = place[goes_on:], number[goes_on:]
        # A window ends where the next begins; the first of all has none before it.
        ends = place if self._last is not None else place[1:]
        if len(number):
            self._numbers.append(number)
            self._starts.append(arrival[place])
            self._first_tuples.append(place + offset)
            self._last = int(number[-1])
        return ends

    def account(self, events: Events, offset: int, ends: I64, again: I64 = NEVER_AGAIN) -> None:
        """Account events, the first that of tuple `offset`; other arguments as of `Accounting`."""
        self._repeats.add(again, events, offset)
        accounting = Accounting(self, events, offset, 0, ends, again)
        accounting.advance(len(events.key))
        accounting.finish()

    def add_rows(self, rows: WindowRows) -> None:
        """Take the rows of windows that ended."""
        if len(rows.ends):
            self._rows.append(rows)

    def make_room(self) -> None:
        """Double the room for pairs."""
        assert isinstance(self.pairs, key_worker_pairs.HashPairs)
        self.pairs = key_worker_pairs.grown(self.pairs)

    def account_reports(self, events: Events, ends: I64, *, drops: bool) -> None:
        """Account what the grouping reported: tuples treated as hot, unless they were dropped (if any was), and the
        size of its detector where windows end.
        """
        if events.hot is not None:
            # Read-only, as all columns are that compiled code takes: others would be compiled once more.
            worker, hot, finish = (column.view() for column in (events.worker, events.hot, events.finish))
            for column in (worker, hot, finish):
                column.flags.writeable = False
            self._run_hot(worker, hot, finish if drops else None, self.hot_tuples, self._choices)
        if events.entries is not None:
            self._entries.append(np.append(self._last_entries, events.entries)[ends])
            self._last_entries = int(events.entries[-1]) if len(events.entries) else self._last_entries

    def totals(self) -> Totals:
        """Return the sums of the run, after its last window ended."""
        last = int(self.meters.last_finish[0])
        return Totals(
            self.redelivered,
            # A tuple that was sent anew is not lost, its first delivery is.
            int(self.meters.sums.lost.sum()) - self.redelivered,
            int(self.meters.dropped[0]),
            int(self.hot_tuples.sum()),
            int(self._choices[0]),
            int(self._choices[1]),
            int(self.largest_state[0]),
            last if last >= 0 else None,
        )

    def worker_table(self, members: Members, first: int, last_finish: int, *, keep_pairs: bool) -> WorkerTable:
        """Return the totals per worker; alive times lie between the first measured arrival and the last finish.

        With `keep_pairs` its pairs of key and worker are there, too: listing many takes a while.
        """
        total = self.meters.sums
        sums = [(high << 62) + low for high, low in zip(total.high.tolist(), total.low.tolist(), strict=True)]
        alive = members.alive_times(first, last_finish, self._free)
        tuples = total.by_part().sum(axis=1)
        finished = tuples - total.lost
        busy = total.busy if self.service_ns is None else finished * self.service_ns
        ever = members.ever
        return WorkerTable(
            tuples=tuples[:ever],
            busy_ns=busy[:ever].copy(),
            wait_max_ns=self.waits[:ever].copy(),
            keys=total.keys[:ever].copy(),
            latency_sum_ns=sums[:ever],
            histogram=self.meters.worker_histogram.reshape(-1, BUCKETS)[:ever],
            head_tuples=self.hot_tuples[:ever] if self.hotness is not None else None,
            true_head_tuples=total.by_part()[:ever, 1].copy(),
            finished=finished[:ever],
            alive_from_ns=None if alive is None else alive[0],
            alive_to_ns=None if alive is None else alive[1],
            touched=touched(self.pairs, self.keys) if keep_pairs else None,
        )

    def lag_table(self, members: Members) -> LagTable:
        """Return how far workers were behind over time."""
        return lag_table(self.meters, self._repeats, members)

    def window_table(
        self, members: Members, tuples: int, shift_ns: int, width_ns: int | None, finished: dict[int, int] | None
    ) -> WindowTable:
        """Return the windows of a trace of `tuples` tuples; `width_ns`, `finished` (by number) where windows are times.

        `shift_ns` is the first measured arrival, where window 0 begins.
        """
        number = np.concatenate(self._numbers)
        first = np.concatenate(self._first_tuples)
        alive, ever = members.at(np.append(first[1:], tuples) - 1)
        joined, left = members.changes_in(first, tuples)
        busy = self._in_windows("busy")
        if self.service_ns is not None:
            busy *= self.service_ns
        sums = [(high << 62) + low for high, low in zip(self._column("high"), self._column("low"), strict=True)]
        return WindowTable(
            number=number,
            start_ns=np.concatenate(self._starts) if width_ns is None else number * np.int64(width_ns) + shift_ns,
            tuples=self._in_windows("tuples")[:, : members.ever],
            busy_ns=busy[:, : members.ever],
            latency_min_ns=np.concatenate([rows.latency_min for rows in self._rows]),
            latency_max_ns=np.concatenate([rows.latency_max for rows in self._rows]),
            latency_sum_ns=[one - before for one, before in zip(sums, [0, *sums], strict=False)],
            quantile_ns=np.concatenate([rows.quantile for rows in self._rows]),
            pairs=self._in_windows("pairs"),
            detector_entries=np.concatenate(self._entries) if self._has_entries else None,
            finished=(
                None if finished is None else np.array([finished.get(k, 0) for k in number.tolist()], dtype=np.int64)
            ),
            served=self._in_windows("served"),
            alive=alive,
            ever=ever,
            joined=joined,
            left=left,
        )

    def _column(self, name: str) -> list[int]:
        return [value for rows in self._rows for value in getattr(rows, name).tolist()]

    def _in_windows(self, name: str) -> I64:
        """Return what happened in each window of what the rows count from the beginning of the run."""
        counted: I64 = np.concatenate([getattr(rows, name) for rows in self._rows])
        counted[1:] -= counted[:-1]
        return counted
