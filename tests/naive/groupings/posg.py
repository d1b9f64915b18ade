"""POSG: workers tell the sources in sketches how long each key takes; the source sends to who has least to do."""

from dataclasses import dataclass, field
from math import ceil, e, inf, log2
from typing import NamedTuple

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange
from tests.naive.kernels.shared_helpers import carried, delay_ns, sketch_column

__all__ = ["Instance", "Matrices", "Posg", "Scheduler", "change_of"]

Grid = list[list[int]]
ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = "ROUND_ROBIN", "SEND_ALL", "WAIT_ALL", "RUN"
START, STABILIZING = "START", "STABILIZING"


class Matrices(NamedTuple):
    """How many tuples (F) and how much time (W), by row and column."""

    counts: Grid
    times: Grid

    def add(self, key: Key, time: int) -> None:
        columns = len(self.counts[0])
        for row in range(len(self.counts)):
            column = sketch_column(key, row, columns)
            self.counts[row][column] += 1
            self.times[row][column] += time

    def estimate(self, key: Key, unseen: str = "mean") -> float:
        """By the row that counted the key's cell least; where that is empty the mean of row 0, or zero."""
        columns = len(self.counts[0])
        places = [(row, sketch_column(key, row, columns)) for row in range(len(self.counts))]
        row, column = min(places, key=lambda place: (self.counts[place[0]][place[1]], place[0]))
        count, time = self.counts[row][column], self.times[row][column]
        if count == 0 and unseen == "mean":
            count, time = sum(self.counts[0]), sum(self.times[0])
        return float(time) / float(count) if count else 0.0

    def copy(self) -> "Matrices":
        return Matrices([list(row) for row in self.counts], [list(row) for row in self.times])

    def means(self) -> list[float | None]:
        """W/F of all cells, row after row; None where nothing was counted."""
        cells = zip(
            [f for row in self.counts for f in row],
            [w for row in self.times for w in row],
            strict=True,
        )
        return [float(w) / float(f) if f else None for f, w in cells]


def empty(rows: int, columns: int) -> Matrices:
    return Matrices([[0] * columns for _ in range(rows)], [[0] * columns for _ in range(rows)])


def change_of(before: list[float | None], now: list[float | None], stability: str) -> float:
    """eta: how much the means moved since the snapshot, relative to it."""
    difference = moved = base = 0.0
    for old, new in zip(before, now, strict=True):
        if old is None and stability != "literal":
            continue
        s = 0.0 if old is None else old
        current = 0.0 if new is None else new
        difference += s - current
        moved += abs(s - current)
        base += s
    change = abs(difference) if stability == "outer" else moved
    if base == 0.0:
        return 0.0 if change == 0.0 else inf
    return change / base


@dataclass
class Instance:
    """What a worker knows of itself. Markers: by source the tuple that carries it, its epoch, what was estimated."""

    matrices: Matrices
    snapshot: list[float | None] = field(default_factory=list)
    state: str = START
    sent: int = 0
    executed: int = 0
    work: int = 0
    markers: dict[int, tuple[int, int, float]] = field(default_factory=dict)


@dataclass
class Scheduler:
    """What a source knows. `estimated` (C_hat) is by worker that ever was, in ns."""

    pointer: int
    estimated: list[float]
    state: str = ROUND_ROBIN
    epoch: int = 0
    replies: dict[int, float] = field(default_factory=dict)
    next_op: int = 0
    ran: int = 0
    marker: tuple[int, float] | None = None

    def begin_sending(self) -> None:
        self.state = SEND_ALL
        self.epoch += 1
        self.replies = {}
        self.next_op = 0

    def synchronise(self, live: list[int]) -> None:
        """When all that are there replied."""
        if self.state == WAIT_ALL and all(worker in self.replies for worker in live):
            for worker in live:
                self.estimated[worker] += self.replies[worker]
            self.state = RUN
            self.ran = 0


class Posg(Grouping):
    def __init__(
        self,
        setting: Setting,
        batch: int | str = 1024,
        mu: float | str = 0.05,
        rows: int | str = 4,
        columns: int | str = 54,
        eps: float | str | None = None,
        delta: float | str | None = None,
        reply_delay: int | str | None = None,
        matrix_delay: int | str | None = None,
        sync: str = "finish",
        stability: str = "outer",
        resync_windows: int | str = 0,
        unseen: str = "mean",
        message_service: int | str = 0,
    ) -> None:
        super().__init__(setting)
        self.batch, self.mu = int(batch), float(mu)
        self.rows = int(rows) if delta is None else ceil(log2(1 / float(delta)))
        self.columns = int(columns) if eps is None else ceil(e / float(eps))
        self.reply_delay = delay_ns(reply_delay, setting.control_delay)
        self.matrix_delay = delay_ns(matrix_delay, setting.control_delay)
        self.sync, self.stability, self.resync_windows = sync, stability, int(resync_windows)
        self.unseen = unseen
        self.message_service = delay_ns(message_service, 0)
        self.server_free = self.messages_served = 0
        n = setting.workers
        self.instances = [Instance(empty(self.rows, self.columns)) for _ in range(n)]
        self.schedulers = [Scheduler(source % n, [0.0] * n) for source in range(setting.sources)]
        # what the sources know: all of them are told the same at the same instants
        self.known: dict[int, Matrices] = {}
        # all that are on their way, as sent: due, worker, what; by (source, worker): due, epoch, Delta
        self.sketches: list[tuple[int, int, Matrices]] = []
        self.replies: dict[tuple[int, int], tuple[int, int, float]] = {}
        self.most_held = 0

    # Sources.

    def choose(self, source: int, key: Key, now: int) -> int:
        own = self.schedulers[source]
        n = len(self.live)
        limit = self.batch * n * self.resync_windows
        if own.state == RUN and limit > 0 and own.ran >= limit:
            own.begin_sending()
        if own.state == RUN:
            own.ran += 1
        own.marker = None
        if own.state == ROUND_ROBIN:
            worker = self.live[own.pointer]
            own.pointer = (own.pointer + 1) % n
        elif own.state == SEND_ALL:
            worker = self.live[own.next_op]
            own.next_op += 1
            own.estimated[worker] += self.known[worker].estimate(key, self.unseen)
            own.marker = (own.epoch, own.estimated[worker])
            if own.next_op == n:
                own.state = WAIT_ALL
                own.synchronise(self.live)
        else:
            worker = min(self.live, key=lambda w: (own.estimated[w], w))
            own.estimated[worker] += self.known[worker].estimate(key, self.unseen)
        self.most_held = max(self.most_held, self.state_entries(source))
        return worker

    def observe(self, source: int, key: Key, worker: int, now: int) -> None:
        """It is the sent-th tuple of the worker, from all sources; a marker rides on it."""
        instance = self.instances[worker]
        instance.sent += 1
        marker = self.schedulers[source].marker
        if marker is not None:
            instance.markers[source] = (instance.sent, *marker)
            self.schedulers[source].marker = None

    # Workers.

    def executed(self, worker: int, key: Key, arrival: int, start: int, finish: int) -> None:
        if worker not in self.live:
            return
        instance = self.instances[worker]
        time = finish - start
        instance.matrices.add(key, time)
        instance.executed += 1
        instance.work += time
        for source, (number, epoch, estimated) in sorted(instance.markers.items()):
            if number == instance.executed:
                del instance.markers[source]
                true = finish if self.sync == "finish" else instance.work
                self.replies[source, worker] = (self.served(finish) + self.reply_delay, epoch, float(true) - estimated)
                self.control_messages += 1
                self.control_bytes += 16
        if instance.executed % self.batch == 0:
            self.batch_done(worker, finish)

    def batch_done(self, worker: int, finish: int) -> None:
        instance = self.instances[worker]
        means = instance.matrices.means()
        stable = instance.state == STABILIZING and change_of(instance.snapshot, means, self.stability) <= self.mu
        if not stable:
            instance.snapshot = means
            instance.state = STABILIZING
            return
        self.sketches.append((self.served(finish) + self.matrix_delay, worker, instance.matrices.copy()))
        self.control_messages += self.setting.sources
        self.control_bytes += self.setting.sources * self.rows * self.columns * 16
        instance.matrices = empty(self.rows, self.columns)
        instance.state = START

    def control_servers(self) -> list[tuple[int, int]]:
        return [(self.messages_served, self.message_service)]

    # Messages.

    def served(self, sent: int) -> int:
        """When the server has done with a message."""
        self.server_free = max(sent, self.server_free) + self.message_service
        self.messages_served += 1
        return self.server_free

    def tick(self, now: int) -> None:
        """At one instant sketches come first, those of a worker in the order sent."""
        events = [(due, 0, number, 0) for number, (due, _, _) in enumerate(self.sketches) if due <= now]
        events += [(due, 1, source, worker) for (source, worker), (due, _, _) in self.replies.items() if due <= now]
        arrived = []
        for _, kind, first, second in sorted(events):
            if kind == 0:
                _, worker, matrices = self.sketches[first]
                self.matrices_arrive(worker, matrices)
                arrived.append(first)
            else:
                self.reply_arrives(first, second)
        self.sketches = [sketch for number, sketch in enumerate(self.sketches) if number not in arrived]

    def matrices_arrive(self, worker: int, matrices: Matrices) -> None:
        self.known[worker] = matrices
        for own in self.schedulers:
            if own.state != ROUND_ROBIN or all(w in self.known for w in self.live):
                own.begin_sending()

    def reply_arrives(self, source: int, worker: int) -> None:
        _, epoch, delta = self.replies.pop((source, worker))
        own = self.schedulers[source]
        if epoch == own.epoch and own.state in (SEND_ALL, WAIT_ALL):
            own.replies[worker] = delta
            own.synchronise(self.live)

    def workers_changed(self, change: WorkersChange) -> None:
        self.tick(change.now - 1)
        super().workers_changed(change)
        self.instances += [Instance(empty(self.rows, self.columns)) for _ in change.joined]
        for worker in change.left:
            self.known.pop(worker, None)
        self.sketches = [sketch for sketch in self.sketches if sketch[1] in self.live]
        self.replies = {who: reply for who, reply in self.replies.items() if who[1] in self.live}
        for own in self.schedulers:
            own.state = ROUND_ROBIN
            own.epoch += 1
            own.replies = {}
            own.pointer %= len(self.live)
            own.estimated = carried(own.estimated, change)

    def state_entries(self, source: int | None = None) -> int:
        if source is None:
            return self.most_held
        return len(self.live) * (2 * self.rows * self.columns + 1)
