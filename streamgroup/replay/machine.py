"""The fast loop for one run: nothing flows back from the workers, so chunks go through as they are read."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, RunError
from streamgroup.replay import heard, loop
from streamgroup.replay.feed import Ready
from streamgroup.replay.grouping import RunningGrouping
from streamgroup.replay.measure import BLOCK, NEVER, NEXT_SOURCE
from streamgroup.replay.members import Members
from streamgroup.replay.recorder import Recorder, blank_rows

__all__ = ["Edge", "FastMachine", "no_worker", "too_late"]

I64 = NDArray[np.int64]
# Windows that one call of the loop may end, as windows x workers.
_WINDOW_CELLS = 1 << 20


class Edge(NamedTuple):
    """The edge of the job: sources, network and control delay in ns, and the service model.

    `free` int64[n] is when each worker that there can ever be is done. `cost` and `speed` float64[1], float64[n] take
    what the grouping sees of a tuple whose cost and speed vary (else None); `sees` says that it sees any of these,
    `equal` that all tuples cost the same on a worker. `dies` int64[n] is when each worker will crash, None where none
    does.
    """

    sources: int
    delay: int
    control_delay: int
    service: Any
    free: I64
    cost: NDArray[np.float64] | None
    speed: NDArray[np.float64] | None
    sees: bool
    equal: bool
    dies: I64 | None


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only: compiled code takes those for another type, so all that is handed to it is."""
    array.flags.writeable = False
    return array


def no_worker(grouping: RunningGrouping, members: Members, seq: int) -> RunError:
    """Say that a grouping chose a worker that there is not."""
    live = members.live
    span = f"0..{live[-1]}" if len(live) == live[-1] + 1 else "one of the ids in context.live"
    return RunError(
        f"{grouping.selection.name}: it chose a worker that there is not, for tuple {seq}",
        f"choose() must return {span}",
    )


def too_late(seq: int) -> DataError:
    """Say that the clock is at its end."""
    who = f"tuple {seq}" if seq >= 0 else "a tuple that waited for a place"
    return DataError(
        f"{who} would finish past the clock's 146 years",
        "the job is hopelessly overloaded: use --arrivals utilization=0.8, or a shorter --service",
    )


class FastMachine:
    """Calls the fast loop; `run` is the compiled or the interpreted one."""

    def __init__(
        self, run: Callable[..., int], grouping: RunningGrouping, edge: Edge, members: Members, recorder: Recorder
    ) -> None:
        self._run = run
        self._grouping = grouping
        self._edge = edge
        self._members = members
        self._recorder = recorder
        self._warm: Recorder | None = None
        self._heard = heard.make_heard(members.most) if grouping.hears else None
        self._last_arrival = -1
        self._told = None if recorder.hotness is None else np.zeros(0, dtype=np.int32)
        # What it told of the chunk before is being read.
        self._told_before = self._told
        waits = edge.sees or (grouping.hears and grouping.heeds is None)
        self._chosen = np.zeros(1 if waits else BLOCK, dtype=np.int64)
        self._varies = members.most > members.ever or members.next_time() < NEVER or members.next_index() >= 0
        self.seconds = 0.0

    # Queues are not counted here: how long they were follows from the longest wait, if at all.
    counts_queues = False
    queue_max: int | None = None

    def chunk(self, ready: Ready, log: loop.Log | None) -> None:
        """Send the tuples of a chunk; the window that is open at its end stays open."""
        size = len(ready.arrival)
        hotness, ends = self._recorder.hotness, np.zeros(0, dtype=np.int64)
        if self._told is not None and len(self._told) < size:
            self._told = np.zeros(size, dtype=np.int32)
        if ready.skip:
            # Warm-up: the same, measured by meters that are thrown away.
            if self._warm is None:
                self._warm = self._recorder.blank()
            self._spans(ready, log, 0, ready.skip, ends, self._warm)
            self._recorder.meters.state[NEXT_SOURCE] = self._warm.meters.state[NEXT_SOURCE]
        if ready.skip < size:
            if self._warm is not None:
                self._grouping.begin_measuring()
                self._warm = None
            ends = self._recorder.begin_windows(ready.offset, ready.window_place, ready.window_number, ready.arrival)
            self._spans(ready, log, ready.skip, size, ends, self._recorder)
        if hotness is not None and self._told is not None:
            begun = time.perf_counter()
            hotness.add(ready.key, ready.arrival, self._told[:size], ready.offset, ready.skip, ends)
            self._told, self._told_before = self._told_before, self._told
            self.seconds += time.perf_counter() - begun
        self._last_arrival = int(ready.arrival[-1])

    def finish(self, last: Ready) -> None:
        """End the last window, and let the workers change that do so while the last tuples are served."""
        end = len(last.arrival)
        self._span(last, None, end, end, np.full(1, end, dtype=np.int64), self._recorder)
        if self._recorder.hotness is not None:
            begun = time.perf_counter()
            self._recorder.hotness.end()
            self.seconds += time.perf_counter() - begun
        free = self._edge.free if self._edge.dies is None else np.minimum(self._edge.free, self._edge.dies)
        while self._members.next_time() <= int(free.max()):
            self._hear(last, self._members.next_time() - 1)
            self._change(self._members.next_time(), last.offset + end, -1)
        self._hear(last, NEVER - 1)

    def _spans(self, ready: Ready, log: loop.Log | None, begin: int, end: int, ends: I64, recorder: Recorder) -> None:
        """Stop at each change of the workers between two places of a chunk."""
        first = True
        while True:
            place = self._next_change(ready, begin, end)
            stop = end if place is None else place
            inside = ends[(ends <= stop) & ((ends > begin) | first)]
            self._span(ready, log, begin, stop, inside, recorder)
            if place is None:
                return
            arrives = int(ready.arrival[place])
            now, pointer = min(self._members.next_time(), arrives), ready.offset + place
            before = int(ready.arrival[place - 1]) if place else self._last_arrival
            # What finishes at that instant comes first where the tuple before arrived at it, too.
            self._hear(ready, now if before == now else now - 1)
            self._change(now, pointer, pointer if arrives <= now else -1)
            begin, first = place, False

    def _hear(self, ready: Ready, until: int) -> None:
        """Let a grouping with feedback hear of what finishes until then."""
        if self._heard is not None:
            self._call(ready, None, 0, 0, np.zeros(0, dtype=np.int64), self._recorder, until)

    def _next_change(self, ready: Ready, begin: int, end: int) -> int | None:
        """Give the place before whose tuple the next change comes, if that is before `end`."""
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

    def _span(self, ready: Ready, log: loop.Log | None, begin: int, end: int, ends: I64, recorder: Recorder) -> None:
        most = max(1, _WINDOW_CELLS // recorder.workers)
        for first in range(0, len(ends) + 1, most):
            some = ends[first : first + most]
            stop = end if first + most > len(ends) else int(some[-1])
            if begin < stop or len(some):
                self._call(ready, log, begin, stop, some, recorder)
            begin = stop

    def _call(
        self,
        ready: Ready,
        log: loop.Log | None,
        begin: int,
        end: int,
        ends: I64,
        recorder: Recorder,
        until: int = -1,
    ) -> None:
        edge, grouping = self._edge, self._grouping
        rows = blank_rows(len(ends), recorder.workers)
        setup = np.array([begin, end, ready.offset, edge.sources, edge.delay, 0, 0, until], dtype=np.int64)
        ends = frozen(ends.copy())
        while True:
            begun = time.perf_counter()
            why = self._run(
                grouping.hooks, edge.service, recorder.meters, recorder.pairs, setup, self._chosen,
                ready.arrival, ready.key, ready.cost, ready.source, ends, rows, log,
                grouping.choices, self._told, grouping.entries, grouping.detector,
                edge.cost if ready.cost is not None else None, edge.speed,
                self._members.alive if self._varies else None, edge.dies,
                edge.service if edge.equal and edge.dies is None else None, self._heard, grouping.room, grouping.heeds,
            )  # fmt: skip
            self.seconds += time.perf_counter() - begun
            if why == loop.DONE:
                break
            if why == loop.FULL_PAIRS:
                recorder.make_room()
                continue
            if why == loop.FULL_HEARD:
                assert self._heard is not None
                self._heard = heard.grown(self._heard)
                continue
            if why == loop.FULL_STATE:
                grouping.grow(len(self._chosen))
                continue
            seq = ready.offset + int(setup[loop.BEGIN])
            raise no_worker(grouping, self._members, seq) if why == loop.NO_WORKER else too_late(seq)
        recorder.add_rows(rows)
