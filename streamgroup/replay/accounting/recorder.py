"""What a run measured, gathered window by window: the loops fill arrays, this gives and takes them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.latencies import BUCKETS
from streamgroup.replay.accounting import pairs
from streamgroup.replay.accounting.account import Meters, Progress, WindowRows, make_meters
from streamgroup.replay.hotness import Hotness
from streamgroup.replay.members import Members
from streamgroup.replay.outcome import WindowTable, WorkerTable
from streamgroup.replay.simulation.events import DROPPED, Events

__all__ = ["Recorder", "Totals"]

I64 = NDArray[np.int64]
# Windows that are accounted in one call, as windows x workers.
_WINDOW_CELLS = 1 << 20
_NEVER_AGAIN = np.zeros((0, 2), dtype=np.int64)


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
    by_worker = (np.zeros((count, workers), dtype=np.int64) for _ in range(3))
    numbers = (np.zeros(count, dtype=np.int64) for _ in range(5))
    columns: list[NDArray[Any]] = [ends, *by_worker, *numbers, np.zeros((count, 3), dtype=np.float64)]
    return WindowRows(*columns)


class Recorder:
    """Meters of a run; `run` is `account`, compiled or interpreted.

    `free` int64[n] is when each worker that there ever is is idle, `service_ns` int64[n] the service time of all tuples
    on it, None where they differ. `hotness` follows the hot keys, None where the grouping reports none; `entries` says
    whether it reports the size of its detector.
    """

    def __init__(
        self,
        run: Callable[..., Progress],
        keys: int,
        free: I64,
        service_ns: I64 | None,
        hotness: Hotness | None,
        *,
        entries: bool,
    ) -> None:
        workers = len(free)
        self._run, self._service_ns = run, service_ns
        self._keys = keys
        self._free = free
        self.meters: Meters = make_meters(workers)
        # The largest state of a source, and the longest wait of a tuple on each worker.
        self.largest_state = np.zeros(1, dtype=np.int64)
        self.waits = np.zeros(workers, dtype=np.int64)
        self.pairs = pairs.make_pairs(keys, workers)
        # Tuples treated as hot by worker, the sum and the maximum of the workers allowed to them.
        self.hot_tuples = np.zeros(workers, dtype=np.int64)
        self.hot_choices = 0
        self.choices_max = 0
        # The size of the detector at the end of each window, and after the last tuple.
        self._entries: list[I64] = []
        self._last_entries = 0
        self.redelivered = 0
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
        return Recorder(self._run, self._keys, self._free, self._service_ns, self.hotness, entries=self._has_entries)

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

    def account(self, events: Events, offset: int, ends: I64, again: I64 = _NEVER_AGAIN) -> None:
        """Account events, the first that of tuple `offset`; windows end before the tuples numbered `ends`.

        `again` int64[k, 2] are deliveries that were lost and made again: number of the tuple and worker.
        """
        self._account_hot(events, offset, ends)
        # What is not needed is left out: then it is one compiled function for all.
        start = events.start if self._service_ns is None else None
        events = events._replace(source=None, start=start, hot=None, entries=None)
        most = max(1, _WINDOW_CELLS // self.workers)
        begin = redelivery = 0
        for first in range(0, len(ends) + 1, most):
            some = ends[first : first + most]
            stop = len(events.key) if first + most > len(ends) else int(some[-1]) - offset
            rows = _blank_rows(some.copy(), self.workers)
            progress = Progress(offset, begin, stop, 0, redelivery)
            while progress.begin < stop or progress.row < len(some):
                progress = self._run(events, self.meters, self.pairs, again, rows, progress)
                if progress.begin < stop:
                    assert isinstance(self.pairs, pairs.HashPairs)
                    self.pairs = pairs.grown(self.pairs)
            begin, redelivery = progress.begin, progress.redelivery
            if len(some):
                self._rows.append(rows)

    def _account_hot(self, events: Events, offset: int, ends: I64) -> None:
        """Account what the grouping reported: tuples treated as hot, and the size of its detector when windows end."""
        if events.hot is not None:
            hot = (events.hot > 0) & (events.finish != DROPPED)
            choices = events.hot[hot]
            self.hot_tuples += np.bincount(events.worker[hot], minlength=self.workers)
            self.hot_choices += int(choices.sum(dtype=np.int64))
            self.choices_max = max(self.choices_max, int(choices.max(initial=0)))
        if events.entries is not None:
            self._entries.append(np.append(self._last_entries, events.entries)[ends - offset])
            self._last_entries = int(events.entries[-1]) if len(events.entries) else self._last_entries

    def totals(self) -> Totals:
        """Give the sums of the run, after its last window ended."""
        last = int(self.meters.last_finish[0])
        return Totals(
            self.redelivered,
            # A tuple that was sent anew is not lost, its first delivery is.
            int(self.meters.sums.lost.sum()) - self.redelivered,
            int(self.meters.dropped[0]),
            int(self.hot_tuples.sum()),
            self.hot_choices,
            self.choices_max,
            int(self.largest_state[0]),
            last if last >= 0 else None,
        )

    def worker_table(self, members: Members, first: int, last_finish: int) -> WorkerTable:
        """Give the totals per worker; alive times lie between the first measured arrival and the last finish."""
        total = self.meters.sums
        sums = [(high << 62) + low for high, low in zip(total.high.tolist(), total.low.tolist(), strict=True)]
        alive = members.alive_times(first, last_finish, self._free)
        finished = total.tuples - total.lost
        busy = total.busy if self._service_ns is None else finished * self._service_ns
        ever = members.ever
        return WorkerTable(
            tuples=total.tuples[:ever].copy(),
            busy_ns=busy[:ever].copy(),
            wait_max_ns=self.waits[:ever].copy(),
            keys=total.keys[:ever].copy(),
            latency_sum_ns=sums[:ever],
            histogram=self.meters.worker_histogram.reshape(-1, BUCKETS)[:ever],
            head_tuples=self.hot_tuples[:ever] if self.hotness is not None else None,
            finished=finished[:ever],
            alive_from_ns=None if alive is None else alive[0],
            alive_to_ns=None if alive is None else alive[1],
        )

    def window_table(
        self, members: Members, tuples: int, shift_ns: int, width_ns: int | None, finished: dict[int, int] | None
    ) -> WindowTable:
        """Give the windows of a trace of `tuples` tuples; `width_ns`, `finished` (by number) where windows are times.

        `shift_ns` is the first measured arrival, where window 0 begins.
        """
        number = np.concatenate(self._numbers)
        first = np.concatenate(self._first_tuples)
        alive, ever = members.at(np.append(first[1:], tuples) - 1)
        # What counts the run up to the end of each window.
        sent, lost, busy = self._in_windows("tuples"), self._in_windows("lost"), self._in_windows("busy")
        finishing = sent - lost
        if self._service_ns is not None:
            busy = finishing * self._service_ns
        sums = [(high << 62) + low for high, low in zip(self._column("high"), self._column("low"), strict=True)]
        return WindowTable(
            number=number,
            start_ns=np.concatenate(self._starts) if width_ns is None else number * np.int64(width_ns) + shift_ns,
            tuples=sent[:, : members.ever],
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
            served=finishing.sum(axis=1),
            alive=alive,
            ever=ever,
        )

    def _column(self, name: str) -> list[int]:
        return [value for rows in self._rows for value in getattr(rows, name).tolist()]

    def _in_windows(self, name: str) -> I64:
        """Give what happened in each window of what the rows count from the beginning of the run."""
        counted = np.concatenate([getattr(rows, name) for rows in self._rows])
        return np.diff(counted, axis=0, prepend=np.zeros_like(counted[:1]))
