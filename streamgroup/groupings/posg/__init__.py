"""POSG: shuffle grouping by estimated execution times, which workers sketch and report to the sources."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._control_server_time import service_ns
from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings._time_parameters import delay_ns
from streamgroup.groupings.posg import count_min, sketches_in_flight
from streamgroup.groupings.posg.params import Params
from streamgroup.groupings.posg.scheduler import (
    CARRIER,
    EPOCH,
    KNOWN,
    LEFT,
    MARK_EPOCH,
    MARKED,
    POINTER,
    REPLIES,
    REPLY_EPOCH,
    REPLYING,
    ROUND_ROBIN,
    RUN,
    SEND_ALL,
    STATE,
    TURN,
    WAIT_ALL,
    begin_epoch,
    reply_arrives,
    sketch_arrives,
)
from streamgroup.groupings.posg.sketches_in_flight import NEVER, InFlight
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.control_servers import ControlServers, make_servers, serve
from streamgroup.kernels.counts.count_min import cells_of_keys
from streamgroup.kernels.ordered.tournament_tree import make_tournament, set_leaf

__all__ = ["CITE", "Params", "Posg", "start"]

CITE = ("004",)

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

# Columns of `counters`, with KNOWN: tuples sent, tuples executed, tuples to the end of the batch, whether STABILIZING,
# number of the tuple that carries the next marker, time executed (ns).
_SENT, _DONE, _TO_BATCH, _STABILIZING, _MARKER, _WORK = range(6)
_CELL_BYTES = 16
_REPLY_BYTES = 16
# Numbers that there are of a worker for each cell of its sketch: `cells`, `means` and one sketch in flight have two.
_NUMBERS = 7
# Room where nothing stays in flight.
_PLENTY = 1 << 62


def _new_counters(workers: int, batch: int) -> I64:
    """Make workers that have done nothing."""
    counters = np.zeros((workers, 7), dtype=np.int64)
    counters[:, _TO_BATCH] = batch
    counters[:, _MARKER] = NEVER
    return counters


def _wider(array: NDArray[Any], room: int, axis: int, fill: int = 0) -> NDArray[Any]:
    """Copy an array, with room for workers up to `room` along an axis."""
    shape = list(array.shape)
    shape[axis] = room - shape[axis]
    return np.concatenate([array, np.full(shape, fill, dtype=array.dtype)], axis=axis)


def _messages(flight: InFlight, replies: I64) -> tuple[I64, I64]:
    """Make the tournament of what is due: leaf 0 is the next sketch, then come the replies int64[sources, workers]."""
    due = np.concatenate([[call(sketches_in_flight.next_due, flight)], replies.reshape(-1)])
    return make_tournament(due.reshape(1, -1), np.arange(due.size))


def _room(flight: InFlight, counters: I64, live: I64, batch: int) -> int:
    """Count the tuples that may still be sent before there can be more sketches in flight than there is room for.

    Two sketches of a worker are two batches apart. What it has executed towards the next one, and what it has yet to
    execute, counts.
    """
    own = counters[live]
    towards = batch - own[:, _TO_BATCH] + batch * own[:, _STABILIZING]
    free = len(flight.due) - int(flight.ring[1])
    return int(2 * batch * free - np.sum(towards + own[:, _SENT] - own[:, _DONE]))


def _entries(workers: int, cells: int) -> int:
    """Count what a source holds: the sketches of the live workers and its C_hat."""
    return workers * (2 * cells + 1)


class Posg(NamedTuple):
    """Proactive Online Shuffle Grouping (004, section III): the least estimated execution time sent so far.

    Instances (workers) and schedulers (sources) are state machines.

    A worker adds what each tuple took to its sketch: `cells` int64[worker, row x column, 2], F and W
    (see `count_min`). Every `batch`
    executed tuples it is START, and keeps a `snapshot` (W/F) and is STABILIZING; or STABILIZING, and compares: if the
    means moved by at most `mu`, it sends F and W to all sources, empties them and is START, else keeps a new snapshot.

    A source adds up the estimated times of what it sent to each worker: C_hat, the entrants of `assigned`
    float64[source, 2 leaves] (see `kernels.ordered.tournament_tree`). It is ROUND_ROBIN until all live workers have
    sent sketches; each that comes from then on starts an epoch: SEND_ALL, the next n tuples go to the live workers in
    turn, each with a marker (epoch, C_hat); then WAIT_ALL, until all have replied with Delta = C_op - C_hat, which is
    added: RUN. In WAIT_ALL and RUN a tuple goes to the least C_hat, ties to the lowest id. `means` are the sketches
    that came, in a form to read: all sources get them at the same instant. One server (`servers`) passes sketches and
    replies on. Sketches on the way are in `flight`, any number of them; if `direct`, without a delay or service, they
    arrive at once. The first of these and replies by (source, worker) are entrants of the tournament `due`. `room` is
    as the loop has it, for `flight`.

    O(rows + log n) a tuple, rows x columns every `batch` of a worker.

    Departures from the paper: one scheduler for each source, as 004 has but one (by default there is one source); C_op
    is the time at which the marker's tuple finished, as in the authors' code (`sync=exec` has the text's); equation 1
    takes the absolute value of the sum, not of each difference, and skips cells that the snapshot had no tuple for
    (`stability`): only so it is met at the first check, as figure 10 has it; a key with an empty cell is taken for
    average (`unseen`). A worker replies to the newest marker of a source only. When workers change, sources start again
    at ROUND_ROBIN in a new epoch, and those that stay need not send again; one that leaves sends nothing more.
    """

    cell_of: NDArray[np.uint16] | NDArray[np.uint32]
    cells: I64
    flight: InFlight
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
    servers: ControlServers
    live: I64
    unknown: I64
    room: I64
    control_messages: I64
    control_bytes: I64
    columns: int
    batch: int
    resync: int
    reply_delay: int
    matrix_delay: int
    direct: bool
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
        state = plan[s, STATE]
        if state == ROUND_ROBIN:
            place = plan[s, POINTER]
            plan[s, POINTER] = (place + 1) % self.live.shape[0]
            return self.live[place]
        if state == RUN:
            if plan[s, LEFT] == 0:
                state = SEND_ALL
                begin_epoch(plan, s)
            plan[s, LEFT] -= 1
        worker = self.live[plan[s, TURN]] if state == SEND_ALL else self.least[s, 1]
        w = np.uint64(worker)
        total = self.assigned[s, w + np.uint64(self.assigned.shape[1] >> 1)]
        total += count_min.mean(self.means, w, self.cell_of, key)
        set_leaf(self.assigned, self.least, s, w, total)
        if state == SEND_ALL:
            carrier = self.counters[w, _SENT] + 1
            self.counters[w, _MARKER] = min(self.counters[w, _MARKER], carrier)
            self.marks[s, w, CARRIER] = carrier
            self.marks[s, w, MARK_EPOCH] = plan[s, EPOCH]
            self.gaps[s, w, MARKED] = total
            plan[s, TURN] += 1
            if plan[s, TURN] == self.live.shape[0]:
                plan[s, STATE] = WAIT_ALL
        return worker

    def observe(self, source: int, key: int, worker: int, now: int) -> None:
        """Count what was sent: workers execute in this order, so a marker is found by its number."""
        self.counters[np.uint64(worker), _SENT] += 1
        self.room[0] -= 1

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
            following = np.int64(NEVER)
            for s in range(self.marks.shape[0]):
                carrier = self.marks[s, w, CARRIER]
                if carrier == done:
                    self.marks[s, w, REPLY_EPOCH] = self.marks[s, w, MARK_EPOCH]
                    self.gaps[s, w, REPLYING] = reached - self.gaps[s, w, MARKED]
                    entrant = 1 + s * counters.shape[0] + worker
                    served = serve(self.servers.free, self.servers.jobs, self.servers.takes, 0, finish)
                    set_leaf(self.due, self.first, 0, entrant, served + self.reply_delay)
                    self.control_messages[0] += 1
                    self.control_bytes[0] += _REPLY_BYTES
                elif carrier > done:
                    following = min(following, carrier)
            counters[w, _MARKER] = following
        if counters[w, _TO_BATCH] == 0:
            counters[w, _TO_BATCH] = self.batch
            stabilizing = counters[w, _STABILIZING] == 1
            if stabilizing and count_min.drift(self.cells, w, self.snapshot, self.every_cell, self.outer) <= self.mu:
                sources = self.plan.shape[0]
                self.control_messages[0] += sources
                self.control_bytes[0] += sources * self.cells.shape[1] * _CELL_BYTES
                served = serve(self.servers.free, self.servers.jobs, self.servers.takes, 0, finish)
                if self.direct:
                    # No source looks before the end of this instant, and replies of this instant come later.
                    sketch_arrives(self, self.cells, w, w)
                else:
                    sketches_in_flight.push(self.flight, self.cells, worker, served + self.matrix_delay)
                    set_leaf(self.due, self.first, 0, 0, sketches_in_flight.next_due(self.flight))
                count_min.clear(self.cells, w)
                counters[w, _STABILIZING] = 0
            else:
                count_min.take_snapshot(self.cells, w, self.snapshot)
                counters[w, _STABILIZING] = 1
                if stabilizing:
                    # The next sketch is a batch further off.
                    self.room[0] += self.batch

    def tick(self, now: int) -> None:
        """Deliver what is due: a worker's sketch to all sources, replies each to its source."""
        while self.due[0, 1] <= now:
            entrant = self.first[0, 1]
            if entrant == 0:
                place = sketches_in_flight.pop(self.flight)
                set_leaf(self.due, self.first, 0, 0, sketches_in_flight.next_due(self.flight))
                self.room[0] += 2 * self.batch
                sketch_arrives(self, self.flight.cells, place, self.flight.sender[place])
            else:
                set_leaf(self.due, self.first, 0, entrant, np.int64(NEVER))
                workers = self.counters.shape[0]
                reply_arrives(self, (entrant - 1) // workers, (entrant - 1) % workers)

    def grown(self) -> "Posg":
        """Make room for twice as many sketches in flight; UsageError if they would be too large."""
        flight = self.flight
        fits(
            2 * flight.cells.size, MOST_CELLS, f"posg: {2 * len(flight.due)} sketches in flight",
            "raise batch, or lower matrix_delay to 0",
        )  # fmt: skip
        flight = sketches_in_flight.doubled(flight)
        self.room[0] += 2 * self.batch * len(self.flight.due)
        return self._replace(flight=flight)

    def workers_changed(self, change: WorkersChange, context: Context) -> "Posg":
        """Start again at ROUND_ROBIN, in a new epoch; who stays is known and keeps its C_hat."""
        before = len(self.counters)
        half = self.assigned.shape[1] // 2
        loads = carry_loads(self.assigned[:, half : half + before], change)
        room = loads.shape[1]
        counters = _new_counters(room, self.batch)
        counters[:before] = self.counters
        # Workers that left send no more messages, and their messages that have not arrived are dropped.
        gone = np.setdiff1d(np.arange(room), change.live)
        counters[gone, KNOWN] = 0
        counters[gone, _TO_BATCH] = counters[gone, _MARKER] = NEVER
        assigned, least = make_tournament(loads, change.live)
        half = self.due.shape[1] // 2
        replies = self.due[0, half + 1 : half + 1 + before * len(self.plan)].reshape(-1, before)
        replies = _wider(replies, room, 1, NEVER)
        replies[:, gone] = NEVER
        flight = sketches_in_flight.without(self.flight, gone)
        due, first = _messages(flight, replies)
        plan = self.plan.copy()
        plan[:, STATE] = ROUND_ROBIN
        plan[:, EPOCH] += 1
        plan[:, POINTER] %= context.workers
        plan[:, REPLIES] = 0
        return self._replace(
            cells=_wider(self.cells, room, 0),
            flight=flight,
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
            unknown=np.array([np.count_nonzero(counters[change.live, KNOWN] == 0)]),
            room=self.room if self.direct else np.array([_room(flight, counters, change.live, self.batch)]),
            state_entries=_entries(context.workers, self.cells.shape[1]),
        )


def start(params: Params, context: Context) -> Posg:
    """Start with round robin at every source, and with empty sketches; UsageError if these would be too large."""
    workers, sources = context.workers, context.sources
    rows, columns = params.size()
    fits(
        _NUMBERS * workers * rows * columns,
        MOST_CELLS,
        f"posg: sketches of {rows} x {columns} at {workers} workers",
        "lower columns or rows",
    )
    matrix_delay = delay_ns(params.matrix_delay, context.control_delay)
    service = service_ns(params.message_service)
    direct = matrix_delay == 0 and service == 0
    cell_of = cells_of_keys(context.hash_lo, rows, columns)
    cells = np.zeros((workers, rows * columns, 2), dtype=np.int64)
    flight = sketches_in_flight.make_in_flight(1 if direct else workers, rows * columns)
    counters = _new_counters(workers, params.batch)
    plan = np.zeros((sources, 6), dtype=np.int64)
    plan[:, POINTER] = np.arange(sources) % workers
    assigned, least = make_tournament(np.zeros((sources, workers)), context.live)
    due, first = _messages(flight, np.full((sources, workers), NEVER, dtype=np.int64))
    return Posg(
        cell_of, cells, flight, np.zeros(cells.shape[:2]), np.zeros(cells.shape), counters, plan,
        np.zeros((sources, workers, 3), dtype=np.int64), np.zeros((sources, workers, 3)),
        assigned, least, due, first,
        servers=make_servers([service]),
        live=np.arange(workers, dtype=np.int64),
        unknown=np.full(1, workers, dtype=np.int64),
        room=np.array([_PLENTY if direct else _room(flight, counters, context.live, params.batch)]),
        control_messages=np.zeros(1, dtype=np.int64),
        control_bytes=np.zeros(1, dtype=np.int64),
        columns=columns,
        batch=params.batch,
        resync=params.batch * params.resync_windows,
        reply_delay=delay_ns(params.reply_delay, context.control_delay),
        matrix_delay=matrix_delay,
        direct=direct,
        by_finish=params.sync == "finish",
        every_cell=params.stability == "literal",
        outer=params.stability == "outer",
        unseen_is_zero=params.unseen == "zero",
        mu=params.mu,
        state_entries=_entries(workers, cells.shape[1]),
        state_entry_bytes=8,
    )  # fmt: skip
