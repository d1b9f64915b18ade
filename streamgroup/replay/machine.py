"""The loop's arrays for one run, and how a chunk goes through it: room made when asked for, windows taken out."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, RunError
from streamgroup.kernels.latencies import BUCKETS
from streamgroup.replay import loop, pairs, pending
from streamgroup.replay.feed import Ready
from streamgroup.replay.outcome import WindowTable, WorkerTable

__all__ = ["Edge", "Machine"]

I64 = NDArray[np.int64]
# Tuples that the sources choose for before the workers serve them, where nothing flows back.
_BLOCK = 256
# Windows that one call of the loop may end, as windows x workers.
_WINDOW_CELLS = 1 << 20


class Edge(NamedTuple):
    """The edge of the job: workers, sources, distinct keys, network delay in ns, and the service model."""

    workers: int
    sources: int
    keys: int
    delay: int
    service: Any


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


class Machine:
    """Holds everything that the loop changes, and calls it.

    `run` is the compiled or the interpreted loop, `hooks` what it calls the grouping by, `state` the grouping's own
    NamedTuple, whose arrays say what it reports; `free` int64[n] is when each worker is done; `cost` int64[1] takes
    the cost of the tuple at hand where the grouping sees it; `live` says that the grouping sees what workers do.
    """

    def __init__(
        self,
        run: Callable[..., int],
        hooks: Any,
        state: Any,
        edge: Edge,
        free: I64,
        cost: I64 | None,
        live: bool,
    ) -> None:
        self._run = run
        self._hooks = hooks
        self._edge = edge
        self._cost_now = cost
        table = np.zeros((edge.workers, loop.COLUMNS), dtype=np.int64)
        by_worker = np.zeros((edge.workers, BUCKETS), dtype=np.int64)
        marks = np.zeros(8, dtype=np.int64)
        marks[loop.LAT_MIN], marks[loop.LAT_MAX] = loop.NEVER, -1
        self._meters = loop.Meters(table, table.copy(), free, np.zeros(BUCKETS, dtype=np.int64), by_worker, marks)
        self._pairs = pairs.make_pairs(edge.keys, edge.workers)
        feedback = callable(getattr(type(state), "executed", None))
        self._waiting = pending.empty(edge.workers) if feedback else None
        self._chosen = np.zeros(1 if feedback or live else _BLOCK, dtype=np.int64)
        entries = getattr(state, "state_entries", None)
        self._entries = entries if isinstance(entries, np.ndarray) else None
        self._choices = getattr(state, "choices", None)
        self._detector = getattr(state, "detector_entries", None)
        self._rows: list[loop.WindowRows] = []
        self._numbers: list[I64] = []
        self._starts: list[I64] = []
        self._last: int | None = None
        self.seconds = 0.0

    def chunk(self, ready: Ready, log: loop.Log | None) -> None:
        """Send the tuples of a chunk; the window that is open at its end stays open."""
        goes_on = int(ready.window_number[0]) == self._last
        place, number = ready.window_place[goes_on:], ready.window_number[goes_on:]
        # A window ends where the next begins; the first of all has none before it.
        ends = place if self._last is not None else place[1:]
        if len(number):
            self._numbers.append(number)
            self._starts.append(ready.arrival[place])
            self._last = int(number[-1])
        size = len(ready.arrival)
        most = max(1, _WINDOW_CELLS // self._edge.workers)
        begin = 0
        for first in range(0, len(ends) + 1, most):
            some = ends[first : first + most]
            end = size if first + most > len(ends) else int(some[-1])
            self._call(ready, log, begin, end, some)
            begin = end

    def finish(self, *, costs: bool, sources: bool) -> None:
        """End the last window, and let a grouping with feedback hear of the tuples that are still being served."""
        nothing = _frozen(np.zeros(0, dtype=np.int64))
        source = _frozen(np.zeros(0, dtype=np.int32)) if sources else None
        key = _frozen(np.zeros(0, dtype=np.uint32))
        ready = Ready(0, nothing, key, nothing if costs else None, source, nothing, nothing)
        self._call(ready, None, 0, 0, np.zeros(1, dtype=np.int64), drain=True)

    def _call(
        self, ready: Ready, log: loop.Log | None, begin: int, end: int, ends: I64, *, drain: bool = False
    ) -> None:
        workers, count = self._edge.workers, len(ends)
        rows = loop.WindowRows(
            np.zeros((count, workers), dtype=np.int64),
            np.zeros((count, workers), dtype=np.int64),
            np.zeros((count, 4), dtype=np.int64),
            np.zeros((count, 3), dtype=np.float64),
            np.zeros(count, dtype=np.int64),
            np.zeros(count, dtype=np.int64),
        )
        setup = np.array([begin, end, self._edge.sources, self._edge.delay, 0, 0, int(drain)], dtype=np.int64)
        ends = _frozen(ends.copy())
        cost_now = self._cost_now if ready.cost is not None else None
        while True:
            begun = time.perf_counter()
            why = self._run(
                self._hooks, self._edge.service, self._meters, self._pairs, self._waiting, setup, self._chosen,
                ready.arrival, ready.key, ready.cost, ready.source, ends, rows, log,
                self._choices, self._entries, self._detector, cost_now,
            )  # fmt: skip
            self.seconds += time.perf_counter() - begun
            if why == loop.DONE:
                break
            if why == loop.FULL_PAIRS:
                assert isinstance(self._pairs, pairs.HashPairs)
                self._pairs = pairs.grown(self._pairs)
            elif why == loop.FULL_PENDING:
                assert self._waiting is not None
                self._waiting = pending.grown(self._waiting)
            else:
                seq = ready.offset + int(setup[loop.BEGIN])
                if why == loop.NO_WORKER:
                    raise RunError(
                        f"the grouping chose a worker that there is not, for tuple {seq}",
                        f"choose() must return 0..{workers - 1}",
                    )
                raise DataError(
                    f"tuple {seq} would finish past the clock's 146 years",
                    "the job is hopelessly overloaded: use --arrivals utilization=0.8, or a shorter --service",
                )
        if count:
            self._rows.append(rows)

    def workers_of(self, key: int) -> int:
        """Count the workers that hold a key."""
        return self._pairs.workers_of(key)

    @property
    def marks(self) -> I64:
        """What was noted over the whole run (see `loop.Meters.state`)."""
        return self._meters.state

    def worker_table(self, detector: bool) -> WorkerTable:
        """Give the totals per worker, after `finish`."""
        total = self._meters.total
        sums = [
            (int(high) << 62) + int(low)
            for high, low in zip(total[:, loop.LATENCY_HIGH], total[:, loop.LATENCY_LOW], strict=True)
        ]
        return WorkerTable(
            tuples=total[:, loop.TUPLES].copy(),
            busy_ns=total[:, loop.BUSY].copy(),
            wait_max_ns=total[:, loop.WAIT_MAX].copy(),
            keys=total[:, loop.PAIRS].copy(),
            latency_sum_ns=sums,
            histogram=self._meters.worker_histogram,
            head_tuples=total[:, loop.HEAD].copy() if detector else None,
        )

    def window_table(self, width_ns: int | None, finished: dict[int, int] | None) -> WindowTable:
        """Give the windows, after `finish`; `width_ns` and `finished` (by window number) where windows are times."""
        latency = np.concatenate([rows.latency for rows in self._rows])
        number = np.concatenate(self._numbers)
        by_finish = (
            None if finished is None else np.array([finished.get(k, 0) for k in number.tolist()], dtype=np.int64)
        )
        return WindowTable(
            number=number,
            start_ns=np.concatenate(self._starts) if width_ns is None else number * np.int64(width_ns),
            tuples=np.concatenate([rows.tuples for rows in self._rows]),
            busy_ns=np.concatenate([rows.busy for rows in self._rows]),
            latency_min_ns=latency[:, 0].copy(),
            latency_max_ns=latency[:, 1].copy(),
            latency_sum_ns=[(high << 62) + low for low, high in latency[:, 2:].tolist()],
            quantile_ns=np.concatenate([rows.quantile for rows in self._rows]),
            pairs=np.concatenate([rows.pairs for rows in self._rows]),
            detector_entries=(
                None if self._detector is None else np.concatenate([rows.detector for rows in self._rows])
            ),
            finished=by_finish,
        )
