"""The ordered loop for one run: what finished is measured in the order of the stream, as soon as it is certain."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.base.plain import call
from streamgroup.replay import board as boards
from streamgroup.replay import departures, measure, ordered
from streamgroup.replay import stream as streams
from streamgroup.replay.feed import Ready
from streamgroup.replay.grouping import RunningGrouping
from streamgroup.replay.machine import Edge, no_worker, too_late
from streamgroup.replay.members import Members
from streamgroup.replay.recorder import Recorder, blank_rows
from streamgroup.replay.windows import WindowRule

__all__ = ["OrderedMachine", "Queues", "Sink"]

I64 = NDArray[np.int64]
# Rows that are kept for tuples which were sent and are not measured yet, a power of two from 4 on; a quarter of them is
# measured at a time.
_ROWS = 1 << 17
# Rows of a window while it is measured: windows x workers.
_WINDOW_CELLS = 1 << 20

# Takes tuples in the order of the stream as they are certain: number of the first, their rows int64[k, 4], and the
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
    while begin < end and rows[boards.row_of(rows, begin, measure.ROW_FINISH)] != measure.OPEN:
        begin += 1
    return begin


class OrderedMachine:
    """Calls the ordered loop. `run` is the compiled or the interpreted one; `made` gives any other function so, too.

    While the loop goes on, a thread measures the tuples that are certain.

    The first `warmup` tuples of `tuples` are not measured. `sink` gets the rows of all.
    """

    def __init__(
        self,
        run: Callable[..., int],
        made: Callable[[Callable[..., Any]], Callable[..., Any]],
        grouping: RunningGrouping,
        edge: Edge,
        queues: Queues,
        members: Members,
        recorder: Recorder,
        windows: WindowRule,
        span: tuple[int, int],
        sink: Sink,
        *,
        dealt: bool,
    ) -> None:
        self._run, self._count = run, made(measure.measure)
        self._load_stream, self._turn_all = made(streams.load), made(streams.turn_all)
        self._first_open, self._forget_dropped = made(_first_open), made(departures.forget_dropped)
        self._grouping, self._edge, self._queues = grouping, edge, queues
        self._members, self._recorder, self._windows = members, recorder, windows
        self._warmup, self._tuples = span
        self._sink = sink
        self._board = boards.make_board(edge.sources, members.most, dealt=dealt)
        self._stream: streams.Stream | None = None
        self._last_of = np.full(edge.sources, -1, dtype=np.int64)
        self._rows = np.full(_ROWS * measure.ROW_COLUMNS, measure.OPEN, dtype=np.int64)
        self._hot = None if grouping.choices is None else np.zeros(_ROWS, dtype=np.int64)
        self._entries = None if grouping.detector is None else np.zeros(_ROWS, dtype=np.int64)
        self._waits = np.zeros(members.most, dtype=np.int64)
        self._cost_of: NDArray[Any] | None = None
        self._due = np.zeros((members.events + 1, 2), dtype=np.int64)
        # Deliveries that were lost and made again: tuple and worker.
        self._again = np.zeros((0, 2), dtype=np.int64)
        # Of tuples before which workers change: when they arrive, and whether the one before arrives with them.
        self._index_arrives: dict[int, tuple[int, bool]] = {}
        self._last_arrival = -1
        self.first_measured: int | None = None
        setup = np.zeros(ordered.SETUP, dtype=np.int64)
        setup[ordered.DELAY], setup[ordered.LIMIT] = edge.delay, queues.capacity
        setup[ordered.DROPS], setup[ordered.MAX_PENDING] = queues.drops, queues.max_pending
        setup[ordered.MEASURED_FROM] = self._warmup
        setup[ordered.FIRM] = not members.crashes
        setup[ordered.FAULT] = -1
        setup[ordered.LIGHT] = not (members.crashes or queues.max_pending or grouping.hears)
        self._setup = setup
        # Rows are taken up to here, and free for others up to there; what is being measured in between.
        self._taken = 0
        self._freed = 0
        self._measuring: Future[None] | None = None
        self._measurer = ThreadPoolExecutor(1, thread_name_prefix="streamgroup-measure")
        setup[ordered.ROWS_END] = self._next_stop(0, self._capacity)
        self.seconds = 0.0

    @property
    def counts_queues(self) -> bool:
        """Tell whether queues are counted: where they have a limit."""
        return self._queues.capacity > 0

    @property
    def queue_max(self) -> int | None:
        """Give the longest queue, where queues were counted."""
        return int(self._board.meta[boards.QUEUE_MAX]) if self._queues.capacity else None

    def chunk(self, ready: Ready) -> None:
        """Send the tuples of a chunk; after the last one, all that is still to happen happens."""
        self._load(ready)
        costs, dealt = ready.cost is not None, ready.source is None
        while True:
            self._name_change()
            why = self._call(costs=costs, dealt=dealt)
            if why in (ordered.MORE, ordered.DONE):
                break
            if why == ordered.FULL_NODES:
                self._board = boards.grown_nodes(self._board)
                if self._cost_of is not None:
                    self._cost_of = np.concatenate([self._cost_of, np.zeros_like(self._cost_of)])
            elif why == ordered.FULL_STATE:
                self._grouping.grow(1)
            elif why == ordered.FULL_ROWS:
                self._measure()
            elif why == ordered.CHANGE:
                self._change()
            elif why == ordered.NO_WORKER:
                raise no_worker(self._grouping, self._members, int(self._setup[ordered.FAULT]))
            else:
                raise too_late(int(self._setup[ordered.FAULT]))

    @property
    def _table(self) -> I64:
        """Give the rows as a table."""
        return self._rows.reshape(-1, measure.ROW_COLUMNS)

    @property
    def _capacity(self) -> int:
        return len(self._rows) // measure.ROW_COLUMNS

    def _unsent(self) -> int:
        """Give the first tuple of the stream that may be needed still."""
        if self._queues.max_pending:
            return int(self._setup[ordered.ARRIVED])
        end = int(self._setup[ordered.END])
        tuples = self._board.source.reshape(-1, boards.WIDTH)[:, boards.NEXT_TUPLE]
        return int(np.where(tuples < 0, end, tuples).min(initial=end))

    def _load(self, ready: Ready) -> None:
        setup, size = self._setup, len(ready.key)
        end = ready.offset + size
        if self._stream is None:
            capacity = 1 << max(size - 1, 1).bit_length()
            cost = None if ready.cost is None else ready.cost.dtype
            self._stream = streams.make_stream(cost, dealt=ready.source is None, capacity=capacity)
            self._cost_of = None if cost is None else np.zeros(len(self._board.node) // boards.WIDTH, dtype=cost)
        first = self._unsent()
        # The last tuple that was read bounds the next one of a source.
        first = max(min(first, ready.offset - 1), 0)
        while end - first > len(self._stream.key):
            self._stream = streams.grown_stream(self._stream, first, ready.offset)
        setup[ordered.LAST_CHUNK] = end == self._tuples
        setup[ordered.END] = end
        if not self._queues.max_pending:
            for index in self._members.indexes():
                if ready.offset <= index < end:
                    place = index - ready.offset
                    at = int(ready.arrival[place])
                    before = int(ready.arrival[place - 1]) if place else self._last_arrival
                    self._index_arrives[index] = at, at == before
            self._last_arrival = int(ready.arrival[-1])
        self._load_stream(
            self._board, self._stream, self._last_of, ready.offset, ready.arrival, ready.key, ready.cost, ready.source,
            setup[ordered.LAST_CHUNK], np.int64(self._queues.max_pending > 0),
        )  # fmt: skip

    def finish(self) -> None:
        """Measure what is left and end the last window."""
        while self._setup[ordered.LIGHT] and self._members.next_time() <= int(self._edge.free.max()):
            # Where nothing asked what has finished, workers may still change until the last tuple is.
            self._setup[ordered.NOW] = self._members.next_time()
            self._change()
        self._forget_dropped(self._board, self._rows, measure.NEVER)
        self._collect()
        end = self._first_open(self._rows, self._taken, self._tuples)
        assert end == self._tuples, f"tuple {end} is neither finished nor lost"
        begun = time.perf_counter()
        self._take(self._taken, end, self._again)
        self._measure_windows(self._tuples, self._tuples, np.array([self._tuples]), self._again[:0])
        if self._recorder.hotness is not None:
            self._recorder.hotness.end()
        self.seconds += time.perf_counter() - begun
        total = self._recorder.meters.total
        total[:, measure.WAIT_MAX] = np.maximum(total[:, measure.WAIT_MAX], self._waits)

    def close(self) -> None:
        """Wait for the thread that measures, and end it."""
        self._measurer.shutdown()

    def _call(self, *, costs: bool, dealt: bool) -> int:
        edge, grouping = self._edge, self._grouping
        begun = time.perf_counter()
        why = self._run(
            grouping.hooks, edge.service, self._board, self._stream, self._cost_of, self._rows, self._waits, self._hot,
            self._entries, edge.free, self._members.alive, self._due, self._recorder.meters.state, self._setup,
            True if dealt else None, grouping.choices, grouping.entries, grouping.detector,
            edge.cost if costs else None, edge.speed, True if grouping.hears else None, grouping.room,
        )  # fmt: skip
        self.seconds += time.perf_counter() - begun
        return why

    def _more_rows(self) -> None:
        first, end = self._freed, self._freed + self._capacity
        # Rows that are new are open.
        table = np.full((2 * self._capacity, measure.ROW_COLUMNS), measure.OPEN, dtype=np.int64)
        items = np.arange(first, end)
        table[items & (2 * self._capacity - 1)] = self._table[items & (self._capacity - 1)]
        self._rows = table.reshape(-1)
        if self._hot is not None:
            self._hot = boards.grown_rows(self._hot, first, end)
        if self._entries is not None:
            self._entries = boards.grown_rows(self._entries, first, end)

    def _name_change(self) -> None:
        """Tell the loop when workers change next."""
        setup, index = self._setup, self._members.next_index()
        at = self._members.next_time()
        setup[ordered.TIE_BEFORE], setup[ordered.BY_TIE] = measure.NEVER, 0
        waits = self._members.events and not self._queues.max_pending
        setup[ordered.HORIZON] = self._last_arrival if waits else measure.NEVER
        if 0 <= index < setup[ordered.END]:
            if self._queues.max_pending:
                setup[ordered.TIE_BEFORE] = index
            else:
                arrives, tied = self._index_arrives[index]
                if tied:
                    setup[ordered.TIE_AT], setup[ordered.TIE_BEFORE] = arrives, index
                else:
                    at = min(at, arrives)
        setup[ordered.CHANGE_AT] = at

    def _change(self) -> None:
        """Let the workers change: what was on one that crashed is lost or chosen anew."""
        setup, board = self._setup, self._board
        now, index = int(setup[ordered.NOW]), -1
        if setup[ordered.BY_TIE]:
            index = int(setup[ordered.TIE_BEFORE])
        elif not self._queues.max_pending:
            index = max((i for i, (at, tied) in self._index_arrives.items() if at <= now and not tied), default=-1)
        pointer = index if setup[ordered.BY_TIE] else self._arrived(now)
        for event in self._members.due(now, index):
            change = self._members.apply(event, now, pointer)
            for worker in change.left:
                self._forget_dropped(board, self._rows, now)
                if event.kind == "crash":
                    self._lose(call(departures.crash, board, worker, now), worker, now)
                call(departures.forget_waiters, board, worker, now)
            self._grouping.change(change)
        if not self._members.crashes and not setup[ordered.FIRM]:
            # Nothing more can be lost: what was sent will finish.
            setup[ordered.FIRM] = 1
            self._forget_dropped(board, self._rows, measure.NEVER)
            call(departures.settle, board, self._rows, self._waits, self._warmup)
        self._turn_all(
            board, self._stream, setup[ordered.END], setup[ordered.LAST_CHUNK],
            np.int64(self._queues.max_pending > 0),
        )  # fmt: skip

    def _arrived(self, now: int) -> int:
        """Count the tuples that arrived before a time."""
        if self._queues.max_pending:
            return int(self._setup[ordered.ARRIVED])
        assert self._stream is not None
        items = np.arange(self._unsent(), int(self._setup[ordered.END]))
        waiting = self._stream.arrival[items & (len(self._stream.arrival) - 1)]
        return int(items[0] if len(items) else self._setup[ordered.END]) + int(np.searchsorted(waiting, now))

    def _lose(self, lost: I64, worker: int, now: int) -> None:
        node = self._board.node.reshape(-1, boards.WIDTH)
        lost = lost[np.argsort(node[lost, boards.NODE_SEQ], kind="stable")]
        if not self._queues.redeliver:
            call(departures.lose, self._board, self._rows, lost, self._queues.max_pending > 0)
            return
        if not len(lost):
            return
        # From the last in the stream on: each goes to the head of what its source has to send.
        lost = lost[::-1].copy()
        node[lost[:-1], boards.NODE_NEXT] = lost[1:]
        node[lost[-1], boards.NODE_NEXT] = -1
        end = self._setup[ordered.DUE_END]
        self._due[end] = now + self._edge.control_delay, lost[0]
        self._setup[ordered.DUE_END] = end + 1
        again = np.stack([node[lost, boards.NODE_SEQ], np.full(len(lost), worker)], axis=1)
        self._again = np.concatenate([self._again, again.astype(np.int64)])
        self._again = self._again[np.argsort(self._again[:, 0], kind="stable")]

    def _measure(self) -> None:
        """Let the tuples that are certain be measured while the loop goes on; make room if few are."""
        setup = self._setup
        arrived = int(setup[ordered.ROWS_END])
        if arrived == self._warmup:
            self._grouping.begin_measuring()
        self._forget_dropped(self._board, self._rows, int(setup[ordered.NOW]))
        self._collect()
        begin, end = self._taken, int(self._first_open(self._rows, self._taken, self._freed + self._capacity))
        if begin < end:
            count = int(np.searchsorted(self._again[:, 0], end))
            again, self._again = self._again[:count], self._again[count:]
            self._taken = end
            self._measuring = self._measurer.submit(self._take, begin, end, again)
        if self._freed + self._capacity <= arrived:
            self._collect()
            if self._freed + self._capacity - arrived < self._capacity // 4:
                self._more_rows()
        setup[ordered.ROWS_END] = self._next_stop(arrived, self._freed + self._capacity)

    def _next_stop(self, arrived: int, room: int) -> int:
        """Tell before which tuple the loop comes back: to measure, for want of rows, or where the warm-up ends."""
        stop = min(arrived + max(self._capacity // 4, 1), room)
        return min(stop, self._warmup) if arrived < self._warmup else stop

    def _collect(self) -> None:
        """Wait for what is being measured; its rows are free then."""
        if self._measuring is not None:
            begun = time.perf_counter()
            self._measuring.result()
            self.seconds += time.perf_counter() - begun
            self._measuring = None
        self._freed = self._taken

    def _take(self, begin: int, end: int, again: I64) -> None:
        """Measure and hand over tuples, in pieces whose rows lie together."""
        size = self._capacity
        while begin < end:
            place = begin & (size - 1)
            upto = min(end, begin + size - place)
            count = int(np.searchsorted(again[:, 0], upto))
            self._take_piece(begin, self._table[place : place + upto - begin], again[:count])
            begin, again = upto, again[count:]

    def _take_piece(self, begin: int, rows: I64, again: I64) -> None:
        end = begin + len(rows)
        self._sink(begin, rows, again)
        first, ends = max(begin, self._warmup), np.zeros(0, dtype=np.int64)
        if first < end:
            arrival = rows[first - begin :, measure.ROW_ARRIVAL]
            if self.first_measured is None:
                self.first_measured = int(arrival[0])
            since = arrival - self.first_measured if self._windows.width_ns is not None else arrival
            place, number = self._windows.begins(first - self._warmup, since)
            ends = self._recorder.begin_windows(first, place, number, arrival) + first
        if self._recorder.hotness is not None and self._hot is not None:
            at = begin & (self._capacity - 1)
            given = self._hot[at : at + len(rows)]
            self._recorder.hotness.add_rows(rows, given, begin, min(first, end) - begin, ends - begin)
        if first < end:
            again = again[again[:, 0] >= self._warmup]
            self._recorder.redelivered += len(again)
            self._measure_windows(first, end, ends, again)
        # Measuring leaves rows open for the tuples to come.
        rows[: max(first - begin, 0), measure.ROW_FINISH] = measure.OPEN

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
                begin = self._count(
                    self._rows, self._hot, self._entries, begin, stop, some.copy(), rows, recorder.meters,
                    recorder.pairs, again, resume,
                )  # fmt: skip
                if begin == stop and resume[0] == len(some):
                    break
                recorder.make_room()
            repeated = int(resume[1])
            recorder.add_rows(rows)
