"""Storm's load-aware shuffle: a ring of workers in proportion to weights, which fall where queues are long."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.compiled_random_draws import draw_below
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["WeightedRing", "begin"]

I64 = NDArray[np.int64]

_NEVER = np.int64(1 << 62)
_REPORT_BYTES = 8
_MOST_WEIGHT, _GROWS, _SHRINKS = 100, 1, 10
# A worker is as good as the best if its queue is longer by no more than the 20th part of its capacity.
_PART = 20
_LEAST_SLOTS, _SLOTS_PER_WORKER = 1000, 5
# Columns of `worker`: tuples sent and finished, the queue in the report on its way, that in the last one, the weight.
_SENT, _DONE, _REPORTED, _KNOWN, _WEIGHT = range(5)
# Places of `clock`: the next report, when the last one arrives, the next refresh, and the number of the last one.
_REPORT, _ARRIVAL, _REFRESH, _NUMBER = range(4)


class WeightedRing(NamedTuple):
    """The workers of a ring in turn, which each source fills by weight at each refresh.

    It is Storm's `LoadAwareShuffleGrouping`.

    All sources get the same reports at the same time, so weights are kept once: `worker` int64[N, 5] as above.
    `ring` int64[sources, capacity] holds C slots from the left, `place` int64[sources] the next one, `slots` int64[1]
    is C. `clock` int64[4] as above, in ns; `due` int64[1] is the first of its times; `next_read` the next report.
    `stream` uint64[sources] are the draws since the last change of workers, of which there were `changes`.

    Departures from Storm: no localities; P counts the tuple in service; weights are integers; sources refresh at once.
    """

    ring: I64
    place: I64
    slots: I64
    worker: I64
    live: I64
    clock: I64
    due: I64
    next_read: I64
    stream: NDArray[np.uint64]
    control_messages: I64
    control_bytes: I64
    report: int
    refresh: int
    delay: int
    queue: int
    changes: int
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the worker of the next slot."""
        place = self.place[source]
        self.place[source] = place + 1 if place + 1 < self.slots[0] else 0
        return self.ring[source, place]

    def observe(self, source: int, key: int, worker: int, now: int) -> None:
        """Count what the worker has to do."""
        self.worker[worker, _SENT] += 1

    def executed(self, worker: int, key: int, arrival: int, start: int, finish: int) -> None:
        """Count what it has done."""
        self.worker[worker, _DONE] += 1

    def tick(self, now: int) -> None:
        """Report queues, and refresh weights and rings."""
        if self.due[0] <= now:
            catch_up(self, now)

    def workers_changed(self, change: WorkersChange, context: Context) -> "WeightedRing":
        """Build the rings anew for the live workers; joiners have full weight and an empty queue.

        If the live workers that are left all have weight 0, they get full weight. UsageError if the rings would be too
        large.
        """
        worker = np.zeros((max(len(self.worker), int(change.live[-1]) + 1), 5), dtype=np.int64)
        worker[: len(self.worker)] = self.worker
        worker[len(self.worker) :, _WEIGHT] = _MOST_WEIGHT
        if not worker[change.live, _WEIGHT].any():
            worker[change.live, _WEIGHT] = _MOST_WEIGHT
        changes, slots = self.changes + 1, _slots(context)
        changed = self._replace(
            ring=np.zeros((context.sources, max(slots, self.ring.shape[1])), dtype=np.int64),
            place=self.place.copy(),
            slots=np.full(1, slots, dtype=np.int64),
            worker=worker,
            live=change.live.copy(),
            stream=_streams(context, changes),
            changes=changes,
            state_entries=context.workers + slots,
        )
        call(build, changed)
        return changed


@njit
def catch_up(state: Any, now: Any) -> None:
    """Do what is due by now, in order of time; at one instant reports arrive first, and rings are refreshed last."""
    clock, refreshed = state.clock, False
    while min(clock[_REPORT], clock[_ARRIVAL], clock[_REFRESH]) <= now:
        if clock[_ARRIVAL] <= min(clock[_REPORT], clock[_REFRESH]):
            for one in range(state.worker.shape[0]):
                state.worker[one, _KNOWN] = state.worker[one, _REPORTED]
            clock[_ARRIVAL] = _NEVER
        elif clock[_REPORT] <= clock[_REFRESH]:
            for one in range(state.worker.shape[0]):
                state.worker[one, _REPORTED] = state.worker[one, _SENT] - state.worker[one, _DONE]
            clock[_ARRIVAL] = clock[_REPORT] + state.delay
            note_reports(state, 1)
        else:
            refreshed = True
            weigh(state)
            clock[_NUMBER] += 1
            clock[_REFRESH] += state.refresh
            if is_quiet(state):
                skip(state, now)
        if is_known(state):
            skip_reports(state, min(now, clock[_REFRESH]))
    if refreshed:
        build(state)
    state.due[0] = min(clock[_REPORT], clock[_ARRIVAL], clock[_REFRESH])
    state.next_read[0] = clock[_REPORT]


@njit
def note_reports(state: Any, times: Any) -> None:
    """Count reports of all live workers to all sources, and move on to the next."""
    messages = times * state.live.shape[0] * state.place.shape[0]
    state.control_messages[0] += messages
    state.control_bytes[0] += _REPORT_BYTES * messages
    state.clock[_REPORT] += times * state.report


@njit
def weigh(state: Any) -> None:
    """Let weights grow where queues are short, and shrink elsewhere."""
    worker, live = state.worker, state.live
    least = worker[live[0], _KNOWN]
    for place in range(1, live.shape[0]):
        least = min(least, worker[live[place], _KNOWN])
    for place in range(live.shape[0]):
        one = live[place]
        if _PART * (worker[one, _KNOWN] - least) <= state.queue:
            worker[one, _WEIGHT] = min(worker[one, _WEIGHT] + _GROWS, _MOST_WEIGHT)
        else:
            worker[one, _WEIGHT] = max(worker[one, _WEIGHT] - _SHRINKS, 0)


@njit
def is_quiet(state: Any) -> Any:
    """Return whether no worker has anything to do, all sources know it, and all weights are full."""
    if not is_known(state):
        return False
    worker, live = state.worker, state.live
    for place in range(live.shape[0]):
        if worker[live[place], _KNOWN] != 0 or worker[live[place], _WEIGHT] != _MOST_WEIGHT:
            return False
    return True


@njit
def is_known(state: Any) -> Any:
    """Return whether a report would change nothing: none is on its way, and all queues are as in the last one."""
    if state.clock[_ARRIVAL] != _NEVER:
        return False
    worker, live = state.worker, state.live
    for place in range(live.shape[0]):
        one = live[place]
        if worker[one, _SENT] - worker[one, _DONE] != worker[one, _KNOWN]:
            return False
    return True


@njit
def skip(state: Any, now: Any) -> None:
    """Pass over what would change nothing, but for the last of each."""
    clock = state.clock
    refreshes = (now - clock[_REFRESH]) // state.refresh
    if refreshes > 0:
        clock[_NUMBER] += refreshes
        clock[_REFRESH] += refreshes * state.refresh
    skip_reports(state, now)


@njit
def skip_reports(state: Any, until: Any) -> None:
    """Count the reports up to then, but for the last one."""
    reports = (until - state.clock[_REPORT]) // state.report
    if reports > 0:
        note_reports(state, reports)


@njit
def build(state: Any) -> None:
    """Fill the ring of each source by weight, shuffle it, and begin at its start."""
    ring, worker, live, slots = state.ring, state.worker, state.live, state.slots[0]
    total = np.int64(0)
    for place in range(live.shape[0]):
        total += worker[live[place], _WEIGHT]
    for source in range(ring.shape[0]):
        stream, index = state.stream[source], 2 * state.clock[_NUMBER] * slots
        filled = np.int64(0)
        for place in range(live.shape[0]):
            for _ in range(worker[live[place], _WEIGHT] * slots // total):
                ring[source, filled] = live[place]
                filled += 1
        for slot in range(filled, slots):
            ring[source, slot] = ring[source, draw_below(stream, index, slot)]
            index += 1
        for slot in range(slots - 1, 0, -1):
            other = draw_below(stream, index, slot + 1)
            index += 1
            held = ring[source, slot]
            ring[source, slot] = ring[source, other]
            ring[source, other] = held
        state.place[source] = 0


def _slots(context: Context) -> int:
    """Return the number of slots of a ring; UsageError if the rings of all sources would be too large."""
    slots = max(_LEAST_SLOTS, _SLOTS_PER_WORKER * context.workers)
    what = f"load_aware: rings of {slots} slots at {context.sources} sources"
    fits(context.sources * slots, MOST_CELLS, what, "use fewer sources or workers")
    return slots


def _streams(context: Context, changes: int) -> NDArray[np.uint64]:
    streams = [context.draw_stream(f"load_aware:{source}:{changes}") for source in range(context.sources)]
    return np.array(streams, dtype=np.uint64)


def begin(context: Context, report: int, refresh: int, queue: int) -> WeightedRing:
    """All weights are full. Times are in ns.

    UsageError if a report takes longer than the time to the next, or if the rings would be too large.
    """
    if context.control_delay >= report:
        raise UsageError(
            "load_aware: the time between two reports is not longer than the control delay",
            "report less often, or lower --control-delay",
        )
    worker = np.zeros((context.workers, 5), dtype=np.int64)
    worker[:, _WEIGHT] = _MOST_WEIGHT
    slots = _slots(context)
    state = WeightedRing(
        ring=np.zeros((context.sources, slots), dtype=np.int64),
        place=np.zeros(context.sources, dtype=np.int64),
        slots=np.full(1, slots, dtype=np.int64),
        worker=worker,
        live=context.live.copy(),
        clock=np.array([report, _NEVER, refresh, 0], dtype=np.int64),
        due=np.full(1, min(report, refresh), dtype=np.int64),
        next_read=np.full(1, report, dtype=np.int64),
        stream=_streams(context, 0),
        control_messages=np.zeros(1, dtype=np.int64),
        control_bytes=np.zeros(1, dtype=np.int64),
        report=report,
        refresh=refresh,
        delay=context.control_delay,
        queue=queue,
        changes=0,
        state_entries=context.workers + slots,
        state_entry_bytes=8,
    )
    call(build, state)
    return state
