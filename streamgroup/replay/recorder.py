"""What a run measured, gathered window by window: the loops fill arrays, this gives and takes them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.latencies import BUCKETS
from streamgroup.replay import measure, pairs
from streamgroup.replay.hotness import Hotness
from streamgroup.replay.members import Members
from streamgroup.replay.outcome import WindowTable, WorkerTable

__all__ = ["Recorder", "Totals", "blank_rows"]

I64 = NDArray[np.int64]


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


def blank_rows(count: int, workers: int) -> measure.WindowRows:
    """Make rows for `count` windows."""
    return measure.WindowRows(
        np.zeros((count, workers), dtype=np.int64),
        np.zeros((count, workers), dtype=np.int64),
        np.zeros((count, 4), dtype=np.int64),
        np.zeros((count, 3), dtype=np.float64),
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
    )


class Recorder:
    """Meters of a run on `workers` workers ever alive; `free` int64[workers] is when each is done.

    `hotness` follows the hot keys, None where the grouping reports none; `entries` says whether it reports the size of
    its detector.
    """

    def __init__(self, keys: int, workers: int, free: I64, hotness: Hotness | None, *, entries: bool) -> None:
        table = np.zeros((workers, measure.COLUMNS), dtype=np.int64)
        by_worker = np.zeros((workers, BUCKETS), dtype=np.int64)
        marks = np.zeros(measure.STATE, dtype=np.int64)
        marks[measure.LAT_MIN], marks[measure.LAT_MAX], marks[measure.LAST_FINISH] = measure.NEVER, -1, -1
        histogram = np.zeros(BUCKETS, dtype=np.int64)
        spots = np.zeros(measure.BLOCK, dtype=np.uint64)
        self._keys = keys
        self.meters = measure.Meters(table, table.copy(), free, histogram, by_worker, marks, spots)
        self.pairs = pairs.make_pairs(keys, workers)
        self.redelivered = 0
        self.workers = workers
        self.hotness = hotness
        self._has_entries = entries
        self._rows: list[measure.WindowRows] = []
        self._numbers: list[I64] = []
        self._starts: list[I64] = []
        self._first_tuples: list[I64] = []
        self._last: int | None = None

    def blank(self) -> "Recorder":
        """Make another one that has measured nothing, for the same workers."""
        return Recorder(self._keys, self.workers, self.meters.free, self.hotness, entries=self._has_entries)

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

    def add_rows(self, rows: measure.WindowRows) -> None:
        """Take the rows of windows that ended."""
        if len(rows.pairs):
            self._rows.append(rows)

    def make_room(self) -> None:
        """Double the room for pairs."""
        assert isinstance(self.pairs, pairs.HashPairs)
        self.pairs = pairs.grown(self.pairs)

    def totals(self) -> Totals:
        """Give the sums of the run, after its last window ended."""
        state = self.meters.state.tolist()
        served = self.meters.total[:, measure.SERVED] > 0
        last = state[measure.LAST_FINISH]
        if last < 0 and served.any():
            # The fast loop: what finishes last on a worker is measured if anything is.
            last = int(self.meters.free[served].max())
        return Totals(
            self.redelivered,
            state[measure.LOST_TUPLES],
            state[measure.DROPPED_TUPLES],
            state[measure.HOT_TUPLES],
            state[measure.HOT_CHOICES],
            state[measure.CHOICES_MAX],
            state[measure.SOURCE_STATE],
            last if last >= 0 else None,
        )

    def worker_table(self, members: Members, first: int, last_finish: int) -> WorkerTable:
        """Give the totals per worker; alive times lie between the first measured arrival and the last finish."""
        total = self.meters.total
        sums = [
            (int(high) << 62) + int(low)
            for high, low in zip(total[:, measure.LATENCY_HIGH], total[:, measure.LATENCY_LOW], strict=True)
        ]
        alive = members.alive_times(first, last_finish, self.meters.free)
        ever = members.ever
        return WorkerTable(
            tuples=total[:ever, measure.TUPLES].copy(),
            busy_ns=total[:ever, measure.BUSY].copy(),
            wait_max_ns=total[:ever, measure.WAIT_MAX].copy(),
            keys=total[:ever, measure.PAIRS].copy(),
            latency_sum_ns=sums[:ever],
            histogram=self.meters.worker_histogram[:ever],
            head_tuples=total[:ever, measure.HEAD].copy() if self.hotness is not None else None,
            finished=total[:ever, measure.SERVED].copy(),
            alive_from_ns=None if alive is None else alive[0],
            alive_to_ns=None if alive is None else alive[1],
        )

    def window_table(
        self, members: Members, tuples: int, shift_ns: int, width_ns: int | None, finished: dict[int, int] | None
    ) -> WindowTable:
        """Give the windows of a trace of `tuples` tuples; `width_ns`, `finished` (by number) where windows are times.

        `shift_ns` is the first measured arrival, where window 0 begins.
        """
        latency = np.concatenate([rows.latency for rows in self._rows])
        number = np.concatenate(self._numbers)
        first = np.concatenate(self._first_tuples)
        detector = np.concatenate([rows.detector for rows in self._rows])
        alive, ever = members.at(np.append(first[1:], tuples) - 1)
        return WindowTable(
            number=number,
            start_ns=np.concatenate(self._starts) if width_ns is None else number * np.int64(width_ns) + shift_ns,
            tuples=np.concatenate([rows.tuples for rows in self._rows])[:, : members.ever],
            busy_ns=np.concatenate([rows.busy for rows in self._rows])[:, : members.ever],
            latency_min_ns=latency[:, 0].copy(),
            latency_max_ns=latency[:, 1].copy(),
            latency_sum_ns=[(high << 62) + low for low, high in latency[:, 2:].tolist()],
            quantile_ns=np.concatenate([rows.quantile for rows in self._rows]),
            pairs=np.concatenate([rows.pairs for rows in self._rows]),
            detector_entries=detector if self._has_entries else None,
            finished=(
                None if finished is None else np.array([finished.get(k, 0) for k in number.tolist()], dtype=np.int64)
            ),
            served=np.concatenate([rows.served for rows in self._rows]),
            alive=alive,
            ever=ever,
        )
