"""POSG: shuffle grouping by estimated execution times, which workers sketch and report to the sources."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._membership import carry_loads
from streamgroup.groupings._times import Delay, delay_ns
from streamgroup.groupings.posg import count_min
from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange
from streamgroup.kernels.count_min import cells_of_keys
from streamgroup.kernels.tournament import make_tournament, set_leaf

__all__ = ["CITE", "Params", "Posg", "start"]

CITE = ("004",)

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

# States of a source.
_ROUND_ROBIN, _SEND_ALL, _WAIT_ALL, _RUN = range(4)
# Columns of `plan`: state, epoch, place in the list of the live (of round robin, and of SEND_ALL), replies that came in
# this epoch, tuples left in RUN before it synchronises by itself.
_STATE, _EPOCH, _POINTER, _TURN, _REPLIES, _LEFT = range(6)
# Columns of `counters`: tuples sent, tuples executed, tuples to the end of the batch, whether STABILIZING, number of
# the tuple that carries the next marker, time executed (ns), whether sketches are on the way, and whether any have
# come.
_SENT, _DONE, _TO_BATCH, _STABILIZING, _MARKER, _WORK, _SHIPPING, _KNOWN = range(8)
# Columns of `marks`: number of the tuple that carries the newest marker, its epoch, the epoch of the reply on the way.
_CARRIER, _MARK_EPOCH, _REPLY_EPOCH = range(3)
# Columns of `gaps`: C_hat in the marker, Delta of the reply on the way, Delta that came.
_MARKED, _REPLYING, _TOLD = range(3)
_NEVER = (1 << 63) - 1
_CELL_BYTES = 16
_REPLY_BYTES = 16
# Numbers that there are of a worker for each cell of its sketch: `cells`, `shipped` and `means` have two.
_NUMBERS = 7


def _new_counters(workers: int, batch: int) -> I64:
    """Make workers that have done nothing."""
    counters = np.zeros((workers, 8), dtype=np.int64)
    counters[:, _TO_BATCH] = batch
    counters[:, _MARKER] = _NEVER
    return counters


def _wider(array: NDArray[Any], room: int, axis: int, fill: int = 0) -> NDArray[Any]:
    """Copy an array, with room for workers up to `room` along an axis."""
    shape = list(array.shape)
    shape[axis] = room - shape[axis]
    return np.concatenate([array, np.full(shape, fill, dtype=array.dtype)], axis=axis)


def _messages(due: I64) -> tuple[I64, I64]:
    """Make the tournament of messages from when they are due: [0, w] a worker's sketch, [1 + s, w] its reply to s."""
    return make_tournament(due.reshape(1, -1), np.arange(due.size))


def _entries(workers: int, cells: int) -> int:
    """Count what a source holds: the sketches of the live workers and its C_hat."""
    return workers * (2 * cells + 1)


class Params(GroupingParams):
    """Parameters of POSG, with the symbols of 004."""

    batch: int = Field(default=1024, ge=1, le=1 << 30, description="tuples that a worker executes between checks (N)")
    mu: float = Field(
        default=0.05, ge=0, le=1e9, description="relative change of the sketch up to which it is stable (mu)"
    )
    rows: int = Field(default=4, ge=1, le=64, description="rows of a sketch (r = ceil(log2(1/delta)))")
    columns: int = Field(default=54, ge=1, le=1 << 16, description="columns of a sketch (c = e/epsilon)")
    reply_delay: Delay = Field(default=None, description="time a worker's reply takes; the control delay if not given")
    matrix_delay: Delay = Field(default=None, description="time that sketches take; the control delay if not given")
    sync: Literal["finish", "exec"] = Field(
        default="finish",
        description="what C_op is at a marker: finish (the time, as the authors' code has it) or exec (time executed)",
    )
    stability: Literal["skip_empty", "literal", "outer"] = Field(
        default="skip_empty",
        description="how eta is taken: skip_empty (over cells in the snapshot), literal (over all), outer (|sum|/sum)",
    )
    resync_windows: int = Field(
        default=0,
        ge=0,
        le=1 << 16,
        description="batches of each worker in RUN after which a source synchronises; 0 never",
    )
    unseen: Literal["mean", "zero"] = Field(
        default="mean",
        description="estimate of an item that no tuple was sketched of (F = 0): mean (of all), or zero (authors' code)",
    )

    def seeds_used(self) -> tuple[str, ...]:
        """The columns of sketches take no seed."""
        return ()

    def choices_per_key(self, workers: int) -> int:
        """Any key may go to any worker."""
        return workers

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """Each new sketch makes every source place a tuple on each worker, from the lowest id on."""
        doubts = super().doubts(workers, sources, keys)
        if 2 * self.batch < workers * sources:
            doubts.append(
                f"batch={self.batch}: sketches may come faster than {sources} sources place a tuple on each of "
                f"{workers} workers, which each sketch makes them begin anew, so that low ids get more; raise batch"
            )
        return doubts

    def needs_every_delivery(self) -> bool:
        """A marker is found by counting the tuples that were sent and those executed."""
        return True


class Posg(NamedTuple):
    """Proactive Online Shuffle Grouping (004, section III): the least estimated execution time sent so far.

    Instances (workers) and schedulers (sources) are state machines.

    A worker adds what each tuple took to its sketch: `cells` int64[worker, row x column, 2], F and W
    (see `count_min`). Every `batch`
    executed tuples it is START, and keeps a `snapshot` (W/F) and is STABILIZING; or STABILIZING, and compares: if the
    means moved by at most `mu`, it sends F and W to all sources, empties them and is START, else keeps a new snapshot.

    A source adds up the estimated times of what it sent to each worker: C_hat, the entrants of `assigned`
    float64[source, 2 leaves] (see `kernels.tournament`). It is ROUND_ROBIN until all live workers have sent sketches;
    each that comes from then on starts an epoch: SEND_ALL, the next n tuples go to the live workers in turn, each with
    a marker (epoch, C_hat); then WAIT_ALL, until all have replied with Delta = C_op - C_hat, which is added: RUN. In
    WAIT_ALL and RUN a tuple goes to the least C_hat, ties to the lowest id. `means` are the sketches that came, in a
    form to read: all sources get them at the same instant. Messages on the way are entrants of the tournament `due`:
    worker w's sketch, then replies by (source, worker).

    O(rows + log n) a tuple, rows x columns every `batch` of a worker.

    Departures from the paper: one scheduler for each source, as 004 has but one; C_op is the time at which the
    marker's tuple finished, as in the authors' code (`sync=exec` has the text's); equation 1 skips cells that the
    snapshot had no tuple for (`stability`); a key with an empty cell is taken for average (`unseen`). Of a worker's
    sketches one is on the way at a time. When workers change, sources start again at ROUND_ROBIN in a new epoch, and
    those that stay need not send again; one that leaves sends nothing more.
    """

    cell_of: NDArray[np.uint16] | NDArray[np.uint32]
    cells: I64
    shipped: I64
    snapshot: F64
    means: F64
    counters: I64
    plan: I64
    marks: I64
    gaps: F64
    assigned: F64
    least: I64
    due: I64
    first: I64
    live: I64
    unknown: I64
    control_messages: I64
    control_bytes: I64
    columns: int
    batch: int
    resync: int
    reply_delay: int
    matrix_delay: int
    by_finish: bool
    every_cell: bool
    outer: bool
    unseen_is_zero: bool
    mu: float
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the worker that the source's state says; add the estimate, and in SEND_ALL a marker."""
        s = np.uint64(source)
        plan = self.plan
        state = plan[s, _STATE]
        if state == _ROUND_ROBIN:
            place = plan[s, _POINTER]
            plan[s, _POINTER] = (place + 1) % self.live.shape[0]
            return self.live[place]
        if state == _RUN:
            if plan[s, _LEFT] == 0:
                state = _SEND_ALL
                plan[s, _STATE] = _SEND_ALL
                plan[s, _EPOCH] += 1
                plan[s, _TURN] = 0
                plan[s, _REPLIES] = 0
            plan[s, _LEFT] -= 1
        worker = self.live[plan[s, _TURN]] if state == _SEND_ALL else self.least[s, 1]
        w = np.uint64(worker)
        total = self.assigned[s, w + np.uint64(self.assigned.shape[1] >> 1)]
        total += count_min.mean(self.means, w, self.cell_of, key)
        set_leaf(self.assigned, self.least, s, w, total)
        if state == _SEND_ALL:
            carrier = self.counters[w, _SENT] + 1
            self.counters[w, _MARKER] = min(self.counters[w, _MARKER], carrier)
            self.marks[s, w, _CARRIER] = carrier
            self.marks[s, w, _MARK_EPOCH] = plan[s, _EPOCH]
            self.gaps[s, w, _MARKED] = total
            plan[s, _TURN] += 1
            if plan[s, _TURN] == self.live.shape[0]:
                plan[s, _STATE] = _WAIT_ALL
        return worker

    def observe(self, source: int, key: int, worker: int, now: int) -> None:
        """Count what was sent: workers execute in this order, so a marker is found by its number."""
        self.counters[np.uint64(worker), _SENT] += 1

    def executed(self, worker: int, key: int, arrival: int, start: int, finish: int) -> None:
        """Sketch the tuple; reply if it carried a marker; at the end of a batch look whether the sketch is stable."""
        w = np.uint64(worker)
        counters = self.counters
        count_min.add(self.cells, w, self.cell_of, key, finish - start)
        counters[w, _DONE] += 1
        counters[w, _WORK] += finish - start
        counters[w, _TO_BATCH] -= 1
        done = counters[w, _DONE]
        if done == counters[w, _MARKER]:
            reached = np.float64(finish) if self.by_finish else np.float64(counters[w, _WORK])
            following = np.int64(_NEVER)
            for s in range(self.marks.shape[0]):
                carrier = self.marks[s, w, _CARRIER]
                if carrier == done:
                    self.marks[s, w, _REPLY_EPOCH] = self.marks[s, w, _MARK_EPOCH]
                    self.gaps[s, w, _REPLYING] = reached - self.gaps[s, w, _MARKED]
                    entrant = (s + 1) * counters.shape[0] + worker
                    set_leaf(self.due, self.first, 0, entrant, finish + self.reply_delay)
                    self.control_messages[0] += 1
                    self.control_bytes[0] += _REPLY_BYTES
                elif carrier > done:
                    following = min(following, carrier)
            counters[w, _MARKER] = following
        if counters[w, _TO_BATCH] == 0:
            counters[w, _TO_BATCH] = self.batch
            stable = False
            if counters[w, _STABILIZING] == 1 and counters[w, _SHIPPING] == 0:
                stable = count_min.drift(self.cells, w, self.snapshot, self.every_cell, self.outer) <= self.mu
            if stable:
                count_min.copy(self.cells, w, self.shipped)
                count_min.clear(self.cells, w)
                set_leaf(self.due, self.first, 0, worker, finish + self.matrix_delay)
                sources = self.plan.shape[0]
                self.control_messages[0] += sources
                self.control_bytes[0] += sources * self.cells.shape[1] * _CELL_BYTES
                counters[w, _SHIPPING] = 1
                counters[w, _STABILIZING] = 0
            else:
                count_min.take_snapshot(self.cells, w, self.snapshot)
                counters[w, _STABILIZING] = 1

    def tick(self, now: int) -> None:
        """Deliver what is due: a worker's sketch to all sources, replies each to its source."""
        while self.due[0, 1] <= now:
            entrant = self.first[0, 1]
            set_leaf(self.due, self.first, 0, entrant, np.int64(_NEVER))
            worker = entrant % self.counters.shape[0]
            counters, plan = self.counters, self.plan
            if entrant == worker:
                counters[worker, _SHIPPING] = 0
                count_min.take_means(self.shipped, worker, self.columns, self.means, self.unseen_is_zero)
                self.unknown[0] -= 1 - counters[worker, _KNOWN]
                counters[worker, _KNOWN] = 1
                for s in range(plan.shape[0]):
                    if self.unknown[0] == 0 or plan[s, _STATE] != _ROUND_ROBIN:
                        plan[s, _STATE] = _SEND_ALL
                        plan[s, _EPOCH] += 1
                        plan[s, _TURN] = 0
                        plan[s, _REPLIES] = 0
            else:
                s = entrant // counters.shape[0] - 1
                state = plan[s, _STATE]
                waits = state in (_SEND_ALL, _WAIT_ALL)
                if waits and self.marks[s, worker, _REPLY_EPOCH] == plan[s, _EPOCH]:
                    self.gaps[s, worker, _TOLD] = self.gaps[s, worker, _REPLYING]
                    plan[s, _REPLIES] += 1
                    if plan[s, _REPLIES] == self.live.shape[0]:
                        half = self.assigned.shape[1] >> 1
                        for place in range(self.live.shape[0]):
                            w = self.live[place]
                            total = self.assigned[s, half + w] + self.gaps[s, w, _TOLD]
                            set_leaf(self.assigned, self.least, s, w, total)
                        plan[s, _STATE] = _RUN
                        resync = self.resync * self.live.shape[0]
                        plan[s, _LEFT] = resync if resync > 0 else np.int64(_NEVER)

    def workers_changed(self, change: WorkersChange, context: Context) -> "Posg":
        """Start again at ROUND_ROBIN, in a new epoch; who stays is known and keeps its C_hat."""
        before = len(self.counters)
        half = self.assigned.shape[1] // 2
        loads = carry_loads(self.assigned[:, half : half + before], change)
        room = loads.shape[1]
        counters = _new_counters(room, self.batch)
        counters[:before] = self.counters
        # Who left says nothing more, and what it said and has not come is forgotten.
        gone = np.setdiff1d(np.arange(room), change.live)
        counters[gone, _KNOWN] = 0
        counters[gone, _TO_BATCH] = counters[gone, _MARKER] = _NEVER
        assigned, least = make_tournament(loads, change.live)
        half = self.due.shape[1] // 2
        sources = len(self.plan)
        on_the_way = _wider(self.due[0, half : half + before * (sources + 1)].reshape(-1, before), room, 1, _NEVER)
        on_the_way[:, gone] = _NEVER
        due, first = _messages(on_the_way)
        plan = self.plan.copy()
        plan[:, _STATE] = _ROUND_ROBIN
        plan[:, _EPOCH] += 1
        plan[:, _POINTER] %= context.workers
        plan[:, _REPLIES] = 0
        return self._replace(
            cells=_wider(self.cells, room, 0),
            shipped=_wider(self.shipped, room, 0),
            snapshot=_wider(self.snapshot, room, 0),
            means=_wider(self.means, room, 0),
            counters=counters,
            plan=plan,
            marks=_wider(self.marks, room, 1),
            gaps=_wider(self.gaps, room, 1),
            assigned=assigned,
            least=least,
            due=due,
            first=first,
            live=change.live.copy(),
            unknown=np.array([np.count_nonzero(counters[change.live, _KNOWN] == 0)]),
            state_entries=_entries(context.workers, self.cells.shape[1]),
        )


def start(params: Params, context: Context) -> Posg:
    """Every source deals in turn, every sketch is empty; UsageError if these would be too large."""
    workers, sources = context.workers, context.sources
    fits(
        _NUMBERS * workers * params.rows * params.columns,
        MOST_CELLS,
        f"posg: sketches of {params.rows} x {params.columns} at {workers} workers",
        "lower columns or rows",
    )
    cell_of = cells_of_keys(context.hash_lo, params.rows, params.columns)
    cells = np.zeros((workers, params.rows * params.columns, 2), dtype=np.int64)
    counters = _new_counters(workers, params.batch)
    plan = np.zeros((sources, 6), dtype=np.int64)
    plan[:, _POINTER] = np.arange(sources) % workers
    assigned, least = make_tournament(np.zeros((sources, workers)), context.live)
    due, first = _messages(np.full((sources + 1, workers), _NEVER, dtype=np.int64))
    return Posg(
        cell_of, cells, cells.copy(), np.zeros(cells.shape[:2]), np.zeros(cells.shape), counters, plan,
        np.zeros((sources, workers, 3), dtype=np.int64), np.zeros((sources, workers, 3)),
        assigned, least, due, first,
        live=np.arange(workers, dtype=np.int64),
        unknown=np.full(1, workers, dtype=np.int64),
        control_messages=np.zeros(1, dtype=np.int64),
        control_bytes=np.zeros(1, dtype=np.int64),
        columns=params.columns,
        batch=params.batch,
        resync=params.batch * params.resync_windows,
        reply_delay=delay_ns(params.reply_delay, context.control_delay),
        matrix_delay=delay_ns(params.matrix_delay, context.control_delay),
        by_finish=params.sync == "finish",
        every_cell=params.stability == "literal",
        outer=params.stability == "outer",
        unseen_is_zero=params.unseen == "zero",
        mu=params.mu,
        state_entries=_entries(workers, cells.shape[1]),
        state_entry_bytes=8,
    )  # fmt: skip
