"""The ordered loop for one run: what finished is measured in the order of the stream, as soon as it is certain."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.replay import board as boards
from streamgroup.replay import measure, ordered
from streamgroup.replay.feed import Ready
from streamgroup.replay.grouping import RunningGrouping
from streamgroup.replay.machine import Edge, no_worker, too_late
from streamgroup.replay.members import Members
from streamgroup.replay.recorder import Recorder, blank_rows
from streamgroup.replay.windows import WindowRule

__all__ = ["OrderedMachine", "Queues", "Sink"]

I64 = NDArray[np.int64]
# Rows that are kept for tuples which arrived and are not measured yet.
_ROWS = 1 << 16
# Rows of a window while it is measured: windows x workers.
_WINDOW_CELLS = 1 << 20

# Takes tuples in the order of the stream as they are certain: number of the first, their rows int64[k, 8], and the
# deliveries of theirs that were lost and made again, int64[j, 2].
Sink = Callable[[int, I64, I64], None]


class Queues(NamedTuple):
    """What holds tuples back: room of a worker's queue (0: no limit), whether a full one drops, and whether tuples that
    a crash took are chosen anew; `max_pending` tuples of a source in a closed loop (0: an open one)."""

    capacity: int
    drops: bool
    redeliver: bool
    max_pending: int


@njit
def _first_open(rows: Any, begin: Any, end: Any) -> Any:
    mask = rows.shape[0] - 1
    while begin < end and rows[begin & mask, measure.ROW_STATUS] != measure.OPEN:
        begin += 1
    return begin


class OrderedMachine:
    """Calls the ordered loop. `run` and `count` are it and `measure.measure`, compiled or interpreted.

    The first `warmup` tuples of `tuples` are not measured. `sink` gets the rows of all.
    """

    def __init__(
        self,
        run: Callable[..., int],
        count: Callable[..., int],
        grouping: RunningGrouping,
        edge: Edge,
        queues: Queues,
        members: Members,
        recorder: Recorder,
        windows: WindowRule,
        span: tuple[int, int],
        sink: Sink,
    ) -> None:
        self._run, self._count = run, count
        self._grouping, self._edge, self._queues = grouping, edge, queues
        self._members, self._recorder, self._windows = members, recorder, windows
        self._warmup, self._tuples = span
        self._sink = sink
        self._board = boards.make_board(edge.sources, members.most)
        self._rows = np.zeros((_ROWS, measure.ROW_COLUMNS), dtype=np.int64)
        self._hot = None if grouping.choices is None else np.zeros(_ROWS, dtype=np.int64)
        self._entries = None if grouping.detector is None else np.zeros(_ROWS, dtype=np.int64)
        self._cost_of: NDArray[Any] | None = None
        self._due = np.zeros((members.events + 1, 2), dtype=np.int64)
        # Deliveries that were lost and made again: tuple and worker.
        self._again = np.zeros((0, 2), dtype=np.int64)
        self.first_measured: int | None = None
        setup = np.zeros(ordered.SETUP, dtype=np.int64)
        setup[ordered.DELAY], setup[ordered.LIMIT] = edge.delay, queues.capacity
        setup[ordered.DROPS], setup[ordered.MAX_PENDING] = queues.drops, queues.max_pending
        setup[ordered.MEASURED_FROM] = self._warmup
        setup[ordered.FIRM] = not members.crashes
        setup[ordered.FAULT] = -1
        self._setup = setup
        self.seconds = 0.0

    @property
    def queue_max(self) -> int | None:
        """Give the longest queue, where queues were counted."""
        return int(self._board.meta[boards.QUEUE_MAX]) if self._queues.capacity else None

    def chunk(self, ready: Ready) -> None:
        """Send the tuples of a chunk; after the last one, all that is still to happen happens."""
        size, setup = len(ready.key), self._setup
        if ready.cost is not None and self._cost_of is None:
            self._cost_of = np.zeros(len(self._board.node), dtype=ready.cost.dtype)
        setup[ordered.BEGIN], setup[ordered.END], setup[ordered.OFFSET] = 0, size, ready.offset
        setup[ordered.LAST_CHUNK] = ready.offset + size == self._tuples
        while True:
            setup[ordered.CHANGE_AT] = self._members.next_time()
            setup[ordered.CHANGE_BEFORE] = self._members.next_index()
            why = self._call(ready)
            arrived = ready.offset + int(setup[ordered.BEGIN])
            if why in (ordered.MORE, ordered.DONE):
                break
            if why == ordered.FULL_NODES:
                self._board = boards.grown_nodes(self._board)
                if self._cost_of is not None:
                    self._cost_of = np.concatenate([self._cost_of, np.zeros_like(self._cost_of)])
            elif why == ordered.FULL_ROWS:
                if self._measure(arrived) < len(self._rows) // 4:
                    self._more_rows(arrived)
            elif why == ordered.CHANGE:
                self._change(arrived)
            elif why == ordered.NO_WORKER:
                raise no_worker(self._grouping, self._members, int(setup[ordered.FAULT]))
            else:
                raise too_late(int(setup[ordered.FAULT]))

    def finish(self) -> None:
        """Measure what is left and end the last window."""
        boards.forget_dropped(self._board, self._rows, measure.NEVER)
        begin = int(self._setup[ordered.ROWS_FROM])
        end = _first_open(self._rows, begin, self._tuples)
        assert end == self._tuples, f"tuple {end} is neither finished nor lost"
        if begin < end:
            self._take(begin, end)
        self._measure_windows(self._tuples, self._tuples, np.array([self._tuples]), self._again[:0])

    def _call(self, ready: Ready) -> int:
        edge, grouping = self._edge, self._grouping
        begun = time.perf_counter()
        why = self._run(
            grouping.hooks, edge.service, self._board, self._cost_of, self._rows, self._hot, self._entries, edge.free,
            self._members.alive, self._due, self._recorder.meters.state, self._setup,
            ready.arrival, ready.key, ready.cost, ready.source, grouping.choices, grouping.entries, grouping.detector,
            edge.cost if ready.cost is not None else None, edge.speed, True if grouping.hears else None,
        )  # fmt: skip
        self.seconds += time.perf_counter() - begun
        return why

    def _more_rows(self, arrived: int) -> None:
        first = int(self._setup[ordered.ROWS_FROM])
        self._rows = boards.grown_rows(self._rows, first, arrived)
        if self._hot is not None:
            self._hot = boards.grown_rows(self._hot, first, arrived)
        if self._entries is not None:
            self._entries = boards.grown_rows(self._entries, first, arrived)

    def _change(self, arrived: int) -> None:
        """Let the workers change: what was on one that crashed is lost or chosen anew."""
        setup, board = self._setup, self._board
        now = int(setup[ordered.NOW])
        for event in self._members.due(now, arrived, int(setup[ordered.ARRIVES])):
            change = self._members.apply(event, now, arrived)
            for worker in change.left:
                boards.forget_dropped(board, self._rows, now - 1)
                if event.kind == "crash":
                    self._lose(boards.crash(board, worker, now), worker, now)
                boards.forget_waiters(board, worker)
            self._grouping.change(change)
        if not self._members.crashes and not setup[ordered.FIRM]:
            # Nothing more can be lost: what was sent will finish.
            setup[ordered.FIRM] = 1
            boards.forget_dropped(board, self._rows, measure.NEVER)
            boards.settle(board, self._rows)

    def _lose(self, lost: I64, worker: int, now: int) -> None:
        node = self._board.node
        lost = lost[np.argsort(node[lost, boards.NODE_SEQ], kind="stable")]
        if not self._queues.redeliver:
            boards.lose(self._board, self._rows, lost, self._queues.max_pending > 0)
            return
        if not len(lost):
            return
        node[lost[:-1], boards.NODE_NEXT] = lost[1:]
        node[lost[-1], boards.NODE_NEXT] = -1
        end = self._setup[ordered.DUE_END]
        self._due[end] = now + self._edge.control_delay, lost[0]
        self._setup[ordered.DUE_END] = end + 1
        again = np.stack([node[lost, boards.NODE_SEQ], np.full(len(lost), worker)], axis=1)
        self._again = np.concatenate([self._again, again.astype(np.int64)])
        self._again = self._again[np.argsort(self._again[:, 0], kind="stable")]

    def _measure(self, arrived: int) -> int:
        """Measure the tuples that are certain; tell how many they were."""
        now = int(self._setup[ordered.NOW])
        boards.forget_dropped(self._board, self._rows, now - 1)
        begin = int(self._setup[ordered.ROWS_FROM])
        end = int(_first_open(self._rows, begin, arrived))
        if begin < end:
            self._take(begin, end)
        return end - begin

    def _take(self, begin: int, end: int) -> None:
        rows = self._rows[np.arange(begin, end) & (len(self._rows) - 1)]
        self._setup[ordered.ROWS_FROM] = end
        again = self._again[self._again[:, 0] < end]
        self._sink(begin, rows, again)
        self._again = self._again[len(again) :]
        first = max(begin, self._warmup)
        if first >= end:
            return
        arrival = rows[first - begin :, measure.ROW_ARRIVAL].copy()
        if self.first_measured is None:
            self.first_measured = int(arrival[0])
        place, number = self._windows.begins(first - self._warmup, arrival - self.first_measured)
        ends = self._recorder.begin_windows(first, place, number, arrival) + first
        again = again[again[:, 0] >= self._warmup]
        self._recorder.redelivered += len(again)
        self._measure_windows(first, end, ends, again)

    def _measure_windows(self, begin: int, end: int, ends: I64, again: I64) -> None:
        recorder = self._recorder
        most = max(1, _WINDOW_CELLS // recorder.workers)
        repeated = 0
        for first in range(0, len(ends) + 1, most):
            some = ends[first : first + most]
            stop = end if first + most > len(ends) else int(some[-1])
            rows = blank_rows(len(some), recorder.workers)
            resume = np.array([0, repeated], dtype=np.int64)
            while True:
                begun = time.perf_counter()
                begin = self._count(
                    self._rows, self._hot, self._entries, begin, stop, some.copy(), rows, recorder.meters,
                    recorder.pairs, again, resume,
                )  # fmt: skip
                self.seconds += time.perf_counter() - begun
                if begin == stop and resume[0] == len(some):
                    break
                recorder.make_room()
            repeated = int(resume[1])
            recorder.add_rows(rows)
