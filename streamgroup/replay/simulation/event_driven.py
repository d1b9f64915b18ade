"""The event-driven simulation of one run: what is certain is accounted in the order of the stream, meanwhile."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.call_kernel import interpreted
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.simulation import event_loop, source_server, tuples_lost_with_workers
from streamgroup.replay.simulation import event_state as states
from streamgroup.replay.simulation import read_ahead_buffer as streams
from streamgroup.replay.simulation.choose import Sources
from streamgroup.replay.simulation.chunk_driven import Setup, frozen, no_worker, too_late
from streamgroup.replay.simulation.event_loop import Clock, Until
from streamgroup.replay.simulation.serve import Workers
from streamgroup.replay.simulation.turns_of_sources import turn_all
from streamgroup.replay.tuple_arrays import NEVER, OPEN, Chunk, Events, each_column

__all__ = ["EventDriven", "Queues", "Taker"]

I64 = NDArray[np.int64]
# Events that are kept of tuples which were sent and are not accounted yet, a power of two from 4 on; a quarter of them
# is accounted at a time.
_EVENTS = 1 << 19


class Taker(Protocol):
    """Takes tuples in the order in which they were sent, as they are certain: see `Measuring`."""

    def take(self, begin: int, events: Events, again: I64) -> None:
        """Take tuples from number `begin` on, and their deliveries that were lost and made again, int64[j, 2]."""

    def finish(self, events: Events, tuples: int) -> None:
        """All `tuples` were taken; `events` are none."""


class Queues(NamedTuple):
    """What holds tuples back: room of a worker's queue (0: no limit), whether a full one drops, and whether tuples that
    a crash took are chosen anew; `max_pending` tuples of a source in a closed loop (0: an open one)."""

    capacity: int
    drops: bool
    redeliver: bool
    max_pending: int


class EventDriven:
    """Calls the event loop; a thread accounts the tuples that are certain meanwhile.

    `span` is how many tuples are warm-up, which is not measured, and how many there are (-1: not known before the end).
    `taker` gets all of them. `arrived` counts the tuples of the trace that arrived before a time, where these are not
    the ones that are sent; `served` says that the sources have taken their time for those.
    """

    def __init__(
        self,
        setup: Setup,
        queues: Queues,
        span: tuple[int, int],
        taker: Taker,
        *,
        round_robin: bool,
        served: bool = False,
        arrived: Callable[[int], int] | None = None,
    ) -> None:
        function, grouping, edge, members, recorder = setup
        self._load_stream, self._turn_all = function(streams.load), function(turn_all)
        self._first_open, self._drop_rejected = (
            function(tuples_lost_with_workers.first_open),
            function(tuples_lost_with_workers.drop_rejected),
        )
        self._grouping, self._edge, self._queues = grouping, edge, queues
        self._members, self._recorder, self._taker, self._arrived_before = members, recorder, taker, arrived
        self._warmup, self._tuples = span
        model = states.Model(
            queues.capacity, queues.drops, queues.max_pending, round_robin, self._warmup,
            firm=not members.crashes, light=not (members.crashes or queues.max_pending or grouping.has_feedback),
        )  # fmt: skip
        servers = None if edge.source_ns is None or served else source_server.make_servers(edge.source_ns)
        self._run = function(event_loop.simulate, own=True)
        self._state = states.make_state(model, servers, edge.sources, members.most, members.events)
        self._workers = Workers(edge.service, edge.delay, edge.free, recorder.waits, None, edge.held)
        self._stream: streams.Stream | None = None
        self._last_of = np.full(edge.sources, -1, dtype=np.int64)
        self._events = self._blank(_EVENTS)
        self._clock = Clock(0, 0, 0, -1)
        # What was read of the stream, whether it is all, and redeliveries that are known.
        self._end, self._last, self._redeliveries = 0, 0, 0
        self._costs = False
        # Deliveries that were lost and made again: tuple and worker.
        self._again = np.zeros((0, 2), dtype=np.int64)
        # Of tuples before which workers change: when they arrive, and whether the one before arrives with them.
        self._index_arrives: dict[int, tuple[int, bool]] = {}
        self._last_arrival = -1
        # Events are taken up to here, and free for others up to there; what is being accounted in between.
        self._taken = 0
        self._freed = 0
        self._accounting: Future[None] | None = None
        self._accountant = ThreadPoolExecutor(1, thread_name_prefix="streamgroup-account")
        self._events_end = self._next_stop(0, self._capacity)
        self.seconds = 0.0

    def _blank(self, size: int) -> Events:
        """Make columns of events, all of them open."""
        ints, longs = np.zeros((3, size), dtype=np.int32), np.zeros((3, size), dtype=np.int64)
        hot = None if self._grouping.choices is None else ints[2]
        entries = None if self._grouping.detector is None else longs[2]
        finish = np.full(size, OPEN, dtype=np.int64)
        held = None if self._edge.held is None else np.zeros(size, dtype=np.int64)
        return Events(ints[0], np.zeros(size, dtype=np.uint32), ints[1], longs[0], longs[1], finish, hot, entries, held)

    @property
    def counts_queues(self) -> bool:
        """Return whether queues are counted: where they have a limit."""
        return self._queues.capacity > 0

    @property
    def queue_max(self) -> int | None:
        """Return the longest queue, where queues were counted; None where no measured tuple came to a worker."""
        longest = int(self._state.scalars[0].queue_max)
        return longest if self._queues.capacity and longest >= 0 else None

    @property
    def servers(self) -> source_server.Servers | None:
        """Return the sources' servers with what was measured of them, None where sources take no time."""
        return self._state.servers

    def chunk(self, ready: Ready) -> None:
        """Send the tuples of a chunk; after the last one, all that is still to happen happens."""
        self._costs = ready.cost is not None
        self._load(ready)
        self._advance()

    def _advance(self) -> None:
        """Let happen what can before more of the stream is read."""
        while True:
            why = self._call(costs=self._costs)
            if why in (event_loop.MORE, event_loop.DONE):
                break
            self._answer(why)

    def _answer(self, why: int) -> None:
        """Do what the loop came back for."""
        if why == event_loop.FULL_TUPLES:
            self._state = states.grown_tuples(self._state)
        elif why == event_loop.FULL_STATE:
            self._grouping.grow(1)
        elif why == event_loop.FULL_EVENTS:
            self._account()
        elif why == event_loop.CHANGE:
            self._change()
        elif why == event_loop.NO_WORKER:
            raise no_worker(self._grouping, self._members, self._clock.fault)
        else:
            raise too_late(self._clock.fault)

    @property
    def _capacity(self) -> int:
        return len(self._events.finish)

    def _unsent(self) -> int:
        """Return the first tuple of the stream that may be needed still."""
        if self._queues.max_pending:
            return self._clock.arrived
        tuples = self._state.by_source.next_tuple
        return int(np.where(tuples < 0, self._end, tuples).min(initial=self._end))

    def _load(self, ready: Ready) -> None:
        size = len(ready.key)
        end = ready.offset + size
        if self._stream is None:
            capacity = 1 << max(size - 1, 1).bit_length()
            cost = None if ready.cost is None else ready.cost.dtype
            self._stream = streams.make_stream(
                cost, round_robin=ready.source is None, factor=ready.source_factor is not None,
                held_window=ready.held_window is not None, capacity=capacity,
            )  # fmt: skip
            if cost is not None:
                self._state = self._state._replace(cost=self._state.cost.astype(cost))
        first = self._unsent()
        # The last tuple that was read bounds the next one of a source.
        first = max(min(first, ready.offset - 1), 0)
        while end - first > len(self._stream.key):
            self._stream = streams.grown_stream(self._stream, first, ready.offset)
        self._end, self._last = end, int(end == self._tuples)
        if not self._queues.max_pending:
            if (held := self._edge.held) is not None and ready.offset <= self._warmup < end:
                held.origin[0] = ready.arrival[self._warmup - ready.offset]
            for index in self._members.indexes():
                if ready.offset <= index < end:
                    place = index - ready.offset
                    at = int(ready.arrival[place])
                    before = int(ready.arrival[place - 1]) if place else self._last_arrival
                    self._index_arrives[index] = at, at == before
            self._last_arrival = int(ready.arrival[-1])
        chunk = Chunk(
            ready.offset, self._edge.sources, ready.arrival, ready.key, ready.cost, ready.source, ready.source_factor,
            ready.held_window,
        )  # fmt: skip
        self._load_stream(self._state, self._stream, self._last_of, chunk, self._last)

    def finish(self) -> None:
        """Account what is left and end the last window."""
        if not self._last:
            self._last, self._tuples = 1, self._end
            self._turn_all(self._state, self._stream, self._end, self._last)
            self._advance()
        while self._state.model.light and self._members.next_time() <= int(self._edge.free.max()):
            # Where nothing asked what has finished, workers may still change until the last tuple is.
            self._clock = self._clock._replace(now=self._members.next_time())
            self._change()
        self._drop_rejected(self._state, self._events, NEVER)
        self._collect()
        end = self._first_open(self._events.finish, self._taken, self._tuples)
        assert end == self._tuples, f"tuple {end} is neither finished nor lost"
        begun = time.perf_counter()
        self._take(self._taken, end, self._again)
        self._taker.finish(self._piece(0, 0), self._tuples)
        self.seconds += time.perf_counter() - begun

    def close(self) -> None:
        """Wait for the thread that accounts, and end it."""
        self._accountant.shutdown()

    def _call(self, *, costs: bool) -> int:
        edge, grouping = self._edge, self._grouping
        sources = Sources(
            len(edge.free), self._members.alive, edge.cost if costs else None, edge.slowdown,
            grouping.choices, grouping.entries, grouping.detector, grouping.room, self._recorder.largest_state,
            True if grouping.has_feedback else None,
        )  # fmt: skip
        until = self._until()
        begun = time.perf_counter()
        why, self._clock = self._simulate(sources, until)
        self.seconds += time.perf_counter() - begun
        return why

    def _simulate(self, sources: Sources, until: Until) -> tuple[int, Clock]:
        """Let the loop run; return why it came back, and the clock."""
        found: tuple[int, Clock] = self._run(
            self._grouping.hooks, sources, self._workers, self._state, self._stream, self._events, until
        )
        return found

    def _until(self) -> Until:
        """Return how far the loop may go: when workers change next, and what was read."""
        index, at = self._members.next_index(), self._members.next_time()
        tie_at, tie_before = 0, NEVER
        if 0 <= index < self._end:
            if self._queues.max_pending:
                tie_before = index
            else:
                arrives, tied = self._index_arrives[index]
                if tied:
                    tie_at, tie_before = arrives, index
                else:
                    at = min(at, arrives)
        waits = self._members.events and not self._queues.max_pending
        horizon = self._last_arrival if waits else NEVER
        return Until(
            self._clock._replace(by_tie=0), self._end, self._last, self._events_end, self._redeliveries, horizon,
            at, tie_at, tie_before,
        )  # fmt: skip

    def _change(self) -> None:
        """Let the workers change: what was on one that crashed is lost or chosen anew."""
        state, now, index = self._state, self._clock.now, -1
        if self._clock.by_tie:
            index = self._members.next_index()
        elif not self._queues.max_pending:
            index = max((i for i, (at, tied) in self._index_arrives.items() if at <= now and not tied), default=-1)
        pointer = index if self._clock.by_tie else self._arrived(now)
        for event in self._members.due(now, index):
            change = self._members.apply(event, now, pointer)
            for worker in change.left:
                self._drop_rejected(state, self._events, now)
                if event.kind == "crash":
                    self._lose(interpreted(tuples_lost_with_workers.crash, state, worker, now), worker, now)
                interpreted(tuples_lost_with_workers.unblock_sources, state, worker, now)
            self._grouping.change(change)
        if not self._members.crashes and not state.model.firm:
            # Nothing more can be lost: what was sent will finish.
            self._state = state = state._replace(model=state.model._replace(firm=True))
            self._drop_rejected(state, self._events, NEVER)
            interpreted(tuples_lost_with_workers.settle, state, self._events, self._recorder.waits)
        self._turn_all(state, self._stream, self._end, self._last)

    def _arrived(self, now: int) -> int:
        """Count the tuples that arrived before a time."""
        if self._queues.max_pending:
            return self._clock.arrived
        if self._arrived_before is not None:
            return self._arrived_before(now)
        assert self._stream is not None
        items = np.arange(self._unsent(), self._end)
        waiting = self._stream.arrival[items & (len(self._stream.arrival) - 1)]
        return int(items[0] if len(items) else self._end) + int(np.searchsorted(waiting, now))

    def _lose(self, lost: I64, worker: int, now: int) -> None:
        tuples = self._state.tuples
        lost = lost[np.argsort(tuples.seq[lost], kind="stable")]
        if not self._queues.redeliver:
            interpreted(tuples_lost_with_workers.lose, self._state, self._events, lost)
            return
        if not len(lost):
            return
        again = np.stack([tuples.seq[lost], np.full(len(lost), worker)], axis=1)
        # From the last in the stream on: each goes to the head of what its source has to send.
        tuples.following[lost] = np.concatenate([[-1], lost[:-1]])
        self._state.redelivery[self._redeliveries] = now + self._edge.control_delay, lost[-1]
        self._redeliveries += 1
        self._again = np.concatenate([self._again, again.astype(np.int64)])
        self._again = self._again[np.argsort(self._again[:, 0], kind="stable")]

    def _account(self) -> None:
        """Let the tuples that are certain be accounted while the loop goes on; make room if few are."""
        arrived = self._events_end
        if arrived == self._warmup:
            self._grouping.begin_measuring()
        self._drop_rejected(self._state, self._events, self._clock.now)
        self._collect()
        begin = self._taken
        end = int(self._first_open(self._events.finish, begin, self._freed + self._capacity))
        if begin < end:
            count = int(np.searchsorted(self._again[:, 0], end))
            again, self._again = self._again[:count], self._again[count:]
            self._taken = end
            self._accounting = self._accountant.submit(self._take, begin, end, again)
        if self._freed + self._capacity <= arrived:
            self._collect()
            if self._freed + self._capacity - arrived < self._capacity // 4:
                self._more_events()
        self._events_end = self._next_stop(arrived, self._freed + self._capacity)

    def _more_events(self) -> None:
        """Double the room for events; what is new is open."""
        larger, items = self._blank(2 * self._capacity), np.arange(self._freed, self._freed + self._capacity)
        for new, old in zip(larger, self._events, strict=True):
            if new is not None and old is not None:
                new[items & (2 * self._capacity - 1)] = old[items & (self._capacity - 1)]
        self._events = larger

    def _next_stop(self, arrived: int, room: int) -> int:
        """Return before which tuple the loop comes back: to account, for want of room, or where the warm-up ends."""
        stop = min(arrived + max(self._capacity // 4, 1), room)
        return min(stop, self._warmup) if arrived < self._warmup else stop

    def _collect(self) -> None:
        """Wait for what is being accounted; its places are free then."""
        if self._accounting is not None:
            begun = time.perf_counter()
            self._accounting.result()
            self.seconds += time.perf_counter() - begun
            self._accounting = None
        self._freed = self._taken

    def _piece(self, begin: int, end: int) -> Events:
        """View places of the events, read-only."""
        return each_column(self._events, lambda column: frozen(column[begin:end]))

    def _take(self, begin: int, end: int, again: I64) -> None:
        """Account and hand over tuples, in pieces whose events lie together; they are open for others then."""
        size = self._capacity
        while begin < end:
            place = begin & (size - 1)
            upto = min(end, begin + size - place)
            count = int(np.searchsorted(again[:, 0], upto))
            self._taker.take(begin, self._piece(place, place + upto - begin), again[:count])
            self._events.finish[place : place + upto - begin] = OPEN
            begin, again = upto, again[count:]
