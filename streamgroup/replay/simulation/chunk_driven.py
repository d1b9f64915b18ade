"""The simulation of a run in which no worker holds a source back: chunk by chunk, as the stream is read."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, RunError
from streamgroup.replay.accounting import account
from streamgroup.replay.accounting.recorder import Accounting, Recorder
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.live_workers import Members
from streamgroup.replay.running_grouping import RunningGrouping
from streamgroup.replay.simulation import tuples_in_flight
from streamgroup.replay.simulation.choose import CHOSEN, FULL_STATE, NO_WORKER, Sources, choose_block
from streamgroup.replay.simulation.choose_and_serve import FULL_QUEUE, TOO_LATE, Feedback, feedback_block
from streamgroup.replay.simulation.keys_held_by_workers import Held
from streamgroup.replay.simulation.serve import Workers
from streamgroup.replay.simulation.source_server import Servers
from streamgroup.replay.tuple_arrays import (
    NEVER,
    Choices,
    Chunk,
    Events,
    Served,
    Span,
    each_column,
)

__all__ = ["Edge", "FeedForward", "Setup", "frozen", "no_worker", "too_late"]

I64 = NDArray[np.int64]
# Gives a function as it runs: compiled or interpreted; for this grouping alone, or once for all.
Function = Callable[..., Callable[..., Any]]

# Tuples that go through a half before the other one follows. Many, since after each call of compiled code the thread
# waits for the interpreter's lock, which the thread that reads the trace may hold.
BLOCK = 1 << 20


class Edge(NamedTuple):
    """The edge of the job: sources, network and control delay in ns, and the service model.

    `free` int64[n] is when each worker that there can ever be is idle. `cost` and `slowdown` float64[1], float64[n]
    take what the grouping sees of a tuple whose cost and speed vary (else None); `sees` says that it sees any of these.
    `service_ns` int64[n] is the service time where it is the same for all tuples (else None). `dies` int64[n] is when
    each worker will crash, None where none does. `source_ns` int64[sources] is what each source takes for a tuple,
    before a random factor, None where sources take no time.
    `held` is what workers hold, None where that costs nothing.
    """

    sources: int
    delay: int
    control_delay: int
    service: Any
    free: I64
    cost: NDArray[np.float64] | None
    slowdown: NDArray[np.float64] | None
    sees: bool
    service_ns: I64 | None
    dies: I64 | None
    source_ns: I64 | None = None
    held: Held | None = None


class Setup(NamedTuple):
    """What both kinds of simulation run: `function` gives functions compiled or interpreted."""

    function: Function
    grouping: RunningGrouping
    edge: Edge
    members: Members
    recorder: Recorder


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """View an array read-only: compiled code takes those for another type."""
    view = array.view()
    view.flags.writeable = False
    return view


def no_worker(grouping: RunningGrouping, members: Members, seq: int) -> RunError:
    """Report that a grouping chose a worker that does not exist."""
    live = members.live
    span = f"0..{live[-1]}" if len(live) == live[-1] + 1 else "one of the ids in context.live"
    return RunError(
        f"{grouping.selection.name}: it chose a worker that does not exist, for tuple {seq}",
        f"choose() must return {span}",
    )


def too_late(seq: int) -> DataError:
    """Say that the clock is at its end."""
    who = f"tuple {seq}" if seq >= 0 else "a tuple that waited for a place"
    return DataError(
        f"{who} would finish past the clock's 146 years",
        "the job is hopelessly overloaded: use --arrivals utilization=0.8, or a shorter --service",
    )


class FeedForward:
    """Calls the halves in turn, and the accounting.

    With `starts`, chunks that are kept tell the source and the start of each tuple, too.
    """

    def __init__(self, setup: Setup, *, starts: bool = False) -> None:
        function, grouping, self._edge, members, self._recorder = setup
        self._choose = function(choose_block, own=True)
        self._both = function(feedback_block, own=True)
        self._grouping, self._members = grouping, members
        self._warm: Recorder | None = None
        self._in_flight = tuples_in_flight.make_in_flight(members.most) if grouping.has_feedback else None
        self._alternates = self._edge.sees or grouping.has_feedback
        self._last_arrival = -1
        self._varies = members.most > members.ever or members.next_time() < NEVER or members.next_index() >= 0
        self._size, self._starts = 0, starts
        self._choices = Choices(np.zeros(0, dtype=np.int32), None, None)
        self._served = Served(None, np.zeros(0, dtype=np.int64))
        self._by_block = False
        # The other thread still reads which tuples of the chunk before were treated as hot.
        self._hot_before: NDArray[np.int32] | None = None
        self.seconds = 0.0

    # Queues are not counted here: how long they were follows from the longest wait, if at all.
    counts_queues = False
    queue_max: int | None = None
    # Sources that take a time make a simulation event-driven.
    servers: Servers | None = None

    def chunk(self, ready: Ready, *, keep: bool) -> Events:
        """Send the tuples of a chunk; the window that is open at its end stays open.

        Return what happened to them, in arrays of its own if it is to be kept.
        """
        size = len(ready.arrival)
        self._make_room(size, keep=keep)
        hotness, ends = self._recorder.hotness, np.zeros(0, dtype=np.int64)
        if ready.skip:
            # Warm-up: the same, measured by meters that are thrown away.
            if self._warm is None:
                self._warm = self._recorder.blank()
            self._spans(ready, 0, ready.skip, ends, self._warm)
        if ready.skip < size:
            if (held := self._edge.held) is not None and ready.offset + ready.skip == held.measured_from:
                held.origin[0] = ready.arrival[ready.skip]
            if self._warm is not None:
                self._grouping.begin_measuring()
                self._warm = None
            ends = self._recorder.begin_windows(ready.offset, ready.window_place, ready.window_number, ready.arrival)
            self._spans(ready, ready.skip, size, ends, self._recorder)
        events = self._events(ready)
        if hotness is not None and self._choices.hot is not None:
            begun = time.perf_counter()
            hot = self._choices.hot
            hotness.add(ready.key, ready.arrival, hot[:size], ready.offset, ready.skip, ends)
            self._hot_before, self._choices = hot, self._choices._replace(hot=self._hot_before)
            self.seconds += time.perf_counter() - begun
        self._last_arrival = int(ready.arrival[-1])
        if not (keep and self._starts):
            return events
        round_robin = (ready.offset + np.arange(size)) % self._edge.sources
        return events._replace(source=round_robin.astype(np.int32) if ready.source is None else ready.source)

    def _make_room(self, size: int, *, keep: bool) -> None:
        """Make the columns that a chunk needs; they are used again unless they are kept."""
        if size <= self._size and not keep:
            return
        self._size = size
        starts = (keep and self._starts) or self._edge.service_ns is None
        hot = None
        if self._grouping.choices is not None:
            hot = np.zeros(size, dtype=np.int32)
            self._hot_before = np.zeros(size, dtype=np.int32)
        entries = None if self._grouping.detector is None else np.zeros(size, dtype=np.int64)
        self._choices = Choices(np.zeros(size, dtype=np.int32), hot, entries)
        self._by_block = not keep and not self._alternates
        rows = account.BLOCK if self._by_block else size
        self._served = Served(
            np.zeros(rows, dtype=np.int64) if starts else None,
            np.zeros(rows, dtype=np.int64),
            None if self._edge.held is None else np.zeros(rows, dtype=np.int64),
        )

    def _events(self, ready: Ready) -> Events:
        (worker, hot, entries), (start, finish, held) = self._choices, self._served
        events = Events(None, ready.key, worker, ready.arrival, start, finish, hot, entries, held)
        return each_column(events, lambda column: frozen(column[: len(ready.key)]))

    def finish(self, last: Ready) -> None:
        """End the last window, and let the workers change that do so while the last tuples are served."""
        end = len(last.arrival)
        # As for a span, though there are no tuples: so it is the same compiled function.
        _, serving = self._halves(last, self._recorder)
        ends = np.array([last.offset + end])
        accounting = Accounting(self._recorder, self._events(last), last.offset, end, ends, serving=serving)
        accounting.advance(end)
        accounting.finish()
        if self._recorder.hotness is not None:
            begun = time.perf_counter()
            self._recorder.hotness.end()
            self.seconds += time.perf_counter() - begun
        free = self._edge.free if self._edge.dies is None else np.minimum(self._edge.free, self._edge.dies)
        while self._members.next_time() <= int(free.max()):
            self._deliver(last, self._members.next_time() - 1)
            self._change(self._members.next_time(), last.offset + end, -1)
        self._deliver(last, NEVER - 1)

    def _spans(self, ready: Ready, begin: int, end: int, ends: I64, recorder: Recorder) -> None:
        """Stop at each change of the workers between two places of a chunk."""
        first = True
        while True:
            place = self._next_change(ready, begin, end)
            stop = end if place is None else place
            inside = ends[(ends <= stop) & ((ends > begin) | first)]
            self._span(ready, begin, stop, inside, recorder)
            if place is None:
                return
            arrives = int(ready.arrival[place])
            now, pointer = min(self._members.next_time(), arrives), ready.offset + place
            before = int(ready.arrival[place - 1]) if place else self._last_arrival
            # What finishes at that instant comes first where the tuple before arrived at it, too.
            self._deliver(ready, now if before == now else now - 1)
            self._change(now, pointer, pointer if arrives <= now else -1)
            begin, first = place, False

    def _deliver(self, ready: Ready, until: int) -> None:
        """Deliver what finishes until then to a grouping with feedback."""
        if self._in_flight is not None:
            self._halves(ready, self._recorder, until)[0](Span(0, 0))

    def _next_change(self, ready: Ready, begin: int, end: int) -> int | None:
        """Return the place before whose tuple the next change comes, if that is before `end`."""
        if not self._varies:
            return None
        at = self._members.next_time()
        place = begin + int(np.searchsorted(ready.arrival[begin:end], at, side="left")) if at < NEVER else end
        index = self._members.next_index()
        if index >= 0:
            place = min(place, max(index - ready.offset, begin))
        return place if place < end else None

    def _change(self, now: int, pointer: int, index: int) -> None:
        for event in self._members.due(now, index):
            self._grouping.change(self._members.apply(event, now, pointer))

    def _span(self, ready: Ready, begin: int, end: int, ends: I64, recorder: Recorder) -> None:
        """Send the tuples of a span, block by block; windows end before the places `ends`."""
        begun = time.perf_counter()
        simulate, serving = self._halves(ready, recorder)
        accounting = Accounting(
            recorder, self._events(ready), ready.offset, begin, ends + ready.offset, serving=serving
        )
        while True:
            reason, chosen = simulate(Span(begin, min(begin + BLOCK, end)))
            place = accounting.advance(chosen)
            if place < chosen:
                reason = TOO_LATE
            if reason == FULL_STATE:
                self._grouping.grow(1)
            elif reason == FULL_QUEUE:
                assert self._in_flight is not None
                self._in_flight = tuples_in_flight.grown(self._in_flight)
            elif reason == NO_WORKER:
                raise no_worker(self._grouping, self._members, ready.offset + place)
            elif reason == TOO_LATE:
                raise too_late(ready.offset + place)
            if place == end:
                break
            if reason != CHOSEN:
                simulate, _ = self._halves(ready, recorder)
            begin = place
        accounting.finish()
        self.seconds += time.perf_counter() - begun

    def _halves(
        self, ready: Ready, recorder: Recorder, until: int = -1
    ) -> tuple[Callable[[Span], tuple[int, int]], account.Serving | None]:
        """Return two things: a function that chooses for the tuples of a span (its result: why it stopped, before which
        place), and what serves these tuples when they are accounted, None if the function does.
        """
        edge, grouping = self._edge, self._grouping
        sources = Sources(
            len(edge.free), self._members.alive if self._varies else None,
            edge.cost if ready.cost is not None else None, edge.slowdown,
            grouping.choices, grouping.entries, grouping.detector, grouping.room, recorder.largest_state,
        )  # fmt: skip
        workers = Workers(edge.service, edge.delay, edge.free, recorder.waits, edge.dies, edge.held)
        chunk = Chunk(ready.offset, edge.sources, ready.arrival, ready.key, ready.cost, ready.source)
        hooks, choices, served = grouping.hooks, self._choices, self._served
        if self._alternates:
            feedback = Feedback(self._in_flight, grouping.next_read, until)
            both = account.Serving(workers, chunk, served, 0)
            return lambda span: self._both(hooks, sources, both, choices, feedback, span), None
        # Without what only one of the halves needs: then both are compiled once for more kinds of runs.
        choosing, serving = chunk._replace(cost=None), chunk._replace(source=None)
        return (
            lambda span: self._choose(hooks, sources, choosing, choices, span),
            account.Serving(workers, serving, served, int(self._by_block)),
        )
