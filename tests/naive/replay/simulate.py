"""One replay: events in the order of time, and at one instant in the order of their classes.

Membership, finished tuples, places that open, messages (lost tuples that come back to their sources), timers,
mini-batches that leave, tuples that their source has served, tuples. All times are integers, in ns since the start.
"""

import heapq
from collections.abc import Sequence
from typing import Any

from tests.naive.groupings.simple_groupings import Grouping, WorkersChange
from tests.naive.kernels.hashes_and_draws import below
from tests.naive.replay.arrivals import arrival_times
from tests.naive.replay.combiner import Combiner
from tests.naive.replay.keys_held_by_workers import Held
from tests.naive.replay.options import Change, Options, TraceTuple, index_of, slowdowns
from tests.naive.replay.service_time import Service
from tests.naive.replay.source_servers import SourceServers
from tests.naive.replay.tuple_records import Accepted, Choice, Delivery, Life, Record, Run, Tuple, measured_from
from tests.naive.replay.tuples_at_sources import FINISH, FLUSH, LAST_INSTANT, MESSAGE, PLACE, SourceSide
from tests.naive.replay.what_oracles_see import View

__all__ = [
    "Change",
    "NoWorkerError",
    "Options",
    "Record",
    "Run",
    "Simulation",
    "TraceTuple",
    "View",
    "simulate",
    "slowdowns",
]

KINDS = ("join", "leave", "crash")


class NoWorkerError(Exception):
    """A worker was named that is not there, or the last one went."""


class Simulation(SourceSide):
    def __init__(self, tuples: Sequence[TraceTuple], grouping: Any, options: Options) -> None:
        self.keys = [key for _, key, _ in tuples]
        self.grouping, self.options = grouping, options
        self.service = Service(tuples, options)
        self.times, self.offered_load = arrival_times(tuples, options, self.service.capacity())
        control = options.control_delay_ns
        self.control_delay = options.network_delay_ns if control is None else control

        self.now = 0
        # (time, class, worker or source, a number that no other event has, what)
        self.heap: list[tuple[int, int, int, int, Any]] = []
        self.numbers = 0
        self.tuples: list[Tuple] = []
        self.settled = 0
        self.choices: list[Choice] = []

        # by source: tuples to be chosen, by seq; the one that waits for a place (since when, seq, where);
        # how many are chosen and not finished
        self.queue: list[list[int]] = [[] for _ in range(options.sources)]
        self.waiting: list[tuple[int, int, int] | None] = [None] * options.sources
        self.pending = [0] * options.sources
        self.servers = None if options.source_service_ns is None else SourceServers(options)
        self.combiner = None if options.combine is None else Combiner(options, self.keys)

        # by worker that ever was: when it is free of what was sent to it; the starts of what it accepted;
        # what was sent to it and is not finished
        self.live = list(range(options.workers))
        self.free = [0] * options.workers
        self.starts: list[list[int]] = [[] for _ in range(options.workers)]
        self.sent: list[dict[int, Delivery]] = [{} for _ in range(options.workers)]
        self.lives = [Life(0) for _ in range(options.workers)]
        self.changes = list(enumerate(options.changes))
        if self.combiner is not None:
            self.service.combine(self.combiner)
            self.changes = [(number, self.timed(change)) for number, change in self.changes]
        # what workers hold; number and arrival of the first measured tuple, once it is there
        self.held = Held(options, len(tuples))
        self.first_measured: tuple[int, int] | None = None

        self.view = View()
        if hasattr(grouping, "look"):
            grouping.look(self.view)

    def timed(self, change: Change) -> Change:
        """Given by the time at which the tuple arrives that it was given by."""
        if change.at[0] == "time":
            return change
        return change._replace(at=("time", self.times[index_of(change.at, len(self.keys))]))

    def run(self) -> None:
        while self.settled < len(self.keys):
            self.now = self.next_instant()
            while self.step():
                pass

    def next_instant(self) -> int:
        times = [self.heap[0][0]] if self.heap else []
        times += [change.at[1] for _, change in self.changes if change.at[0] == "time"]
        arrived = len(self.tuples)
        if self.times is None:
            times += [0] if arrived == 0 else []
        elif arrived < len(self.keys):
            times.append(self.times[arrived])
        return min(times)

    def step(self) -> bool:
        """Do the first thing that there is to do at this instant; False: nothing."""
        change = self.due_change()
        if change is not None:
            self.apply(*change)
            return True
        if self.heap and self.heap[0][0] == self.now:
            _, kind, place, _, what = heapq.heappop(self.heap)
            self.handle(kind, place, what)
            return True
        # all that comes to a combiner at this instant may leave at it
        if self.combiner is not None and (self.next_tuple() or self.flush_rest()):
            return True
        rank = self.combiner.place if self.combiner is not None else lambda seq: (0, seq)
        ready = [(rank(queue[0]), s) for s, queue in enumerate(self.queue) if queue and self.waiting[s] is None]
        if ready:
            self.choose(min(ready)[1])
            return True
        return self.combiner is None and self.next_tuple()

    def handle(self, kind: int, place: int, what: Any) -> None:
        if kind == FINISH:
            self.finish(what)
        elif kind == PLACE:
            self.give_places(place)
        elif kind == MESSAGE:
            self.queue[place] = sorted([*self.queue[place], what])
        elif kind == FLUSH:
            self.flush(place)
        else:
            self.served(place, what)

    def push(self, time: int, kind: int, place: int, what: Any) -> None:
        self.numbers += 1
        heapq.heappush(self.heap, (time, kind, place, self.numbers, what))

    def choose(self, source: int) -> None:
        """The first tuple in a source's queue gets its worker, and goes there if there is a place."""
        seq = self.queue[source].pop(0)
        key = self.keys[seq]
        if hasattr(self.grouping, "tick"):
            self.grouping.tick(self.now)
        if hasattr(self.grouping, "look"):
            workers = range(len(self.free))
            self.view.cost[:] = [self.service.cost(seq, w) if w in self.live else 0.0 for w in workers]
            self.view.free[:] = self.free
            speeds = [self.service.speed(w, seq, self.now) for w in workers]
            factors = [self.held.factor(self.held.would_hold(w, key, self.window_of(seq))) for w in workers]
            self.view.slowdown[:] = [speed * factor for speed, factor in zip(speeds, factors, strict=True)]
            self.view.shared_cost = self.service.shared_cost(seq)
            self.view.own_factor[:] = [
                self.service.own_factor(w, seq, speeds[w]) * factors[w] if w in self.live else 0.0 for w in workers
            ]
        worker = self.grouping.choose(source, key, self.now)
        if worker not in self.live:
            raise ValueError(f"tuple {seq}: worker {worker} of {self.live}")
        if hasattr(self.grouping, "observe"):
            self.grouping.observe(source, key, worker, self.now)
        for one in self.members(seq):
            self.choices.append(Choice(self.now, source, one, worker, *told(self.grouping, source)))
        if self.options.when_full == "block" and self.is_full(worker, self.now):
            self.waiting[source] = (self.now, seq, worker)
        else:
            self.send(source, seq, worker)

    # Workers.

    def is_full(self, worker: int, at: int) -> bool:
        capacity = self.options.queue_capacity
        return capacity is not None and self.queue_length(worker, at) >= capacity

    def queue_length(self, worker: int, at: int) -> int:
        """Accepted and not started, on the network included."""
        # times only grow: what has started by now will not be asked for again
        self.starts[worker] = [start for start in self.starts[worker] if start > self.now]
        return sum(start > at for start in self.starts[worker])

    def send(self, source: int, seq: int, worker: int) -> None:
        if self.servers is not None:
            self.servers.leaves(source, seq, self.tuples[seq].arrival_ns, self.now)
            self.serve(source)
        reaches = self.now + self.options.network_delay_ns
        self.numbers += 1
        delivery = Delivery(self.numbers, seq, source, worker, reaches)
        self.sent[worker][delivery.number] = delivery
        state = self.tuples[seq]
        state.last = delivery
        if self.options.when_full == "drop" and self.is_full(worker, reaches):
            self.push(reaches, FINISH, worker, delivery)
            return
        delivery.entries = self.held.hold(worker, self.keys[seq], self.window_of(seq))
        self.accept(delivery)

    def accept(self, delivery: Delivery) -> None:
        """The worker takes it; when it starts and finishes is known from then on."""
        seq, worker, reaches = delivery.seq, delivery.worker, delivery.reaches_ns
        start = max(reaches, self.free[worker])
        finish = start + self.service.service_ns(worker, seq, start, self.held.factor(delivery.entries))
        if finish > LAST_INSTANT:
            raise OverflowError(f"tuple {seq}: past the end of the clock")
        delivery.start_ns, delivery.finish_ns = start, finish
        self.free[worker] = finish
        self.starts[worker].append(start)
        blocks = self.options.when_full == "block"
        joins = self.now if blocks else reaches
        accepted = Accepted(worker, start - reaches, self.queue_length(worker, joins))
        self.tuples[seq].deliveries.append(accepted)
        if blocks:
            self.push(start, PLACE, worker, None)
        self.push(finish, FINISH, worker, delivery)

    def window_of(self, seq: int) -> tuple[bool, int]:
        """The one that a tuple's key is held for; of a merged tuple that of its last original."""
        last = self.members(seq)[-1]
        return self.held.window(last, self.tuples[last].arrival_ns, self.first_measured)

    def finish(self, delivery: Delivery) -> None:
        """It is done, or at a full worker and dropped."""
        if delivery.lost:
            return
        del self.sent[delivery.worker][delivery.number]
        self.settle(delivery, "dropped" if delivery.finish_ns is None else "finished")
        if delivery.finish_ns is not None and hasattr(self.grouping, "executed"):
            if hasattr(self.grouping, "tick"):
                self.grouping.tick(self.now - 1)
            key = self.keys[delivery.seq]
            self.grouping.executed(delivery.worker, key, delivery.reaches_ns, delivery.start_ns, delivery.finish_ns)

    def settle(self, delivery: Delivery, status: str) -> None:
        for seq in self.members(delivery.seq):
            self.tuples[seq].status = status
            self.tuples[seq].last = delivery
            self.tuples[seq].deliveries = self.tuples[delivery.seq].deliveries
            self.settled += 1
        self.pending[delivery.source] -= 1

    def give_places(self, worker: int) -> None:
        """To sources that wait for this worker: who waits longest first, then by id."""
        waiters = [(found[0], s) for s, found in enumerate(self.waiting) if found and found[2] == worker]
        for _, source in sorted(waiters):
            if not self.is_full(worker, self.now):
                _, seq, _ = self.waiting[source]
                self.waiting[source] = None
                self.send(source, seq, worker)

    # Membership.

    def due_change(self, emitting: bool = False) -> tuple[int, Change] | None:
        """The first change that is due now: joins, leaves, crashes, each in the order given.

        One given by a tuple is due when the tuple before has arrived and this one comes now: before all else of the
        instant, unless the tuple before came at the same; then, as in a closed loop, right before the tuple.
        """
        seq = len(self.tuples)
        comes = emitting
        if self.times is not None and seq < len(self.keys) and self.times[seq] == self.now:
            comes = emitting or seq == 0 or self.times[seq - 1] < self.now
        due = []
        for number, change in self.changes:
            if change.at[0] == "time":
                is_due = change.at[1] == self.now
            else:
                is_due = comes and index_of(change.at, len(self.keys)) == seq
            if is_due:
                due.append((KINDS.index(change.kind), number, change))
        return min(due)[1:] if due else None

    def apply(self, number: int, change: Change) -> None:
        self.changes.remove((number, change))
        if change.kind == "join":
            worker = len(self.free)
            self.live.append(worker)
            self.free.append(self.now)
            self.starts.append([])
            self.sent.append({})
            self.lives.append(Life(self.now))
            self.tell([worker], [])
            return
        worker = self.meant(number, change)
        if worker not in self.live:
            raise NoWorkerError(f"worker {worker} is not there")
        self.live.remove(worker)
        if not self.live:
            raise NoWorkerError("no worker is left")
        self.lives[worker].ended_ns, self.lives[worker].how = self.now, change.kind
        for source, found in enumerate(self.waiting):
            if found and found[2] == worker:
                self.waiting[source] = None
                self.queue[source] = sorted([*self.queue[source], found[1]])
        if change.kind == "crash":
            self.crash(worker)
        self.tell([], [worker])

    def meant(self, number: int, change: Change) -> int:
        if change.worker is None:
            return self.live[-1]
        if change.worker == "random":
            # as listed: joins, leaves, crashes, each in the order given
            changes = self.options.changes
            listed = sorted(range(len(changes)), key=lambda place: KINDS.index(changes[place].kind))
            return self.live[below(self.options.seed, "membership", listed.index(number), len(self.live))]
        return int(change.worker)

    def crash(self, worker: int) -> None:
        for delivery in list(self.sent[worker].values()):
            ends = delivery.reaches_ns if delivery.finish_ns is None else delivery.finish_ns
            if ends <= self.now:
                continue
            delivery.lost = True
            state = self.tuples[delivery.seq]
            if delivery.finish_ns is None:
                state.deliveries.append(Accepted(worker, None, None))
            if self.options.redeliver:
                state.redelivered += 1
                self.push(self.now + self.control_delay, MESSAGE, delivery.source, delivery.seq)
            else:
                self.settle(delivery, "lost")

    def tell(self, joined: list[int], left: list[int]) -> None:
        if hasattr(self.grouping, "workers_changed"):
            self.grouping.workers_changed(WorkersChange(self.now, list(self.live), joined, left))

    def records(self) -> list[Record]:
        first = measured_from([state.arrival_ns for state in self.tuples], self.options.warmup)
        records = []
        for seq, state in enumerate(self.tuples):
            last = state.last
            done = state.status == "finished"
            records.append(
                Record(
                    seq,
                    state.arrival_ns,
                    state.source,
                    self.keys[seq],
                    last.worker,
                    last.start_ns if done else None,
                    last.finish_ns if done else None,
                    self.service.base_ns(seq, last.worker),
                    state.status,
                    tuple(state.deliveries),
                    state.redelivered,
                    seq >= first,
                    state.alive,
                    state.ever,
                    self.service.cost(seq, last.worker),
                    last.entries if done else None,
                    last.seq == seq,
                )
            )
        return records

    def result(self) -> Run:
        return Run(
            self.records(),
            self.offered_load,
            self.options,
            self.service.slowdowns_at_start(),
            self.service.constant,
            self.grouping,
            self.choices,
            self.lives,
            self.servers,
        )


def told(grouping: Any, source: int) -> tuple[int, int, int | None]:
    """What a grouping tells after a choice; those made for one test may tell nothing."""
    if not isinstance(grouping, Grouping):
        return 0, 0, None
    return grouping.allowed, grouping.state_entries(source), grouping.detector_entries()


def simulate(tuples: Sequence[TraceTuple], grouping: Any, **options: Any) -> Run:
    """Replay the tuples (in stream order) through a grouping; options as in `Options`."""
    chosen = Options(**options)
    if not tuples:
        raise ValueError("an empty trace")
    simulation = Simulation(tuples, grouping, chosen)
    simulation.run()
    return simulation.result()
