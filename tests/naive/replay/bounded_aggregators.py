"""Aggregators with bounded queues, which hold workers back: a replay in which no start is known before it happens.

A worker that has partial results to send starts no tuple. So each start is an event: at the finish before it, when the
tuple reaches the worker, or when the worker has got rid of its partial results. At one instant: places at aggregators,
by aggregator; then finishes, starts and the places for sources that they open, by worker; the rest as in `Simulation`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from tests.naive.metrics.aggregation import Merge, factor
from tests.naive.replay.keys_held_by_workers import number
from tests.naive.replay.options import Key, Options, TraceTuple
from tests.naive.replay.simulate import Simulation
from tests.naive.replay.tuple_records import Accepted, Delivery, Run, is_measured
from tests.naive.replay.tuples_at_sources import FINISH, LAST_INSTANT

__all__ = ["Bounded", "Partial", "key_ids", "simulate_bounded"]

AGGREGATOR_PLACE = 0


class Partial(NamedTuple):
    """One partial result, when it was chosen for, when it got its place, and what its aggregator did."""

    worker: int
    window: int
    key: Key
    aggregator: int
    chosen_ns: int
    accepted_ns: int
    start_ns: int
    finish_ns: int


class Bounded(NamedTuple):
    """A run, and its partial results in the order in which they were chosen for."""

    run: Run
    partials: list[Partial]

    def complete(self) -> dict[Any, int]:
        """When the result of each (window, key) is complete."""
        found: dict[Any, int] = {}
        for one in self.partials:
            at = (one.window, one.key)
            found[at] = max(found.get(at, 0), one.finish_ns)
        return found

    def busy(self, aggregators: int) -> list[int]:
        busy = [0] * aggregators
        for one in self.partials:
            busy[one.aggregator] += one.finish_ns - one.start_ns
        return busy


@dataclass
class Sender:
    """What a worker has to send, (window, key); of the first one: aggregator, number, chosen when, waits since when."""

    left: list[tuple[int, Key]] = field(default_factory=list)
    chosen: tuple[int, int, int] | None = None
    since: int | None = None


class BoundedAggregators(Simulation):
    def __init__(self, tuples: Sequence[TraceTuple], grouping: Any, options: Options, merge: Merge) -> None:
        super().__init__(tuples, grouping, options)
        assert options.queue_capacity is not None
        self.capacity = options.queue_capacity
        self.merge = merge
        self.ids = key_ids(self.keys)
        workers = range(options.workers)
        # by worker: accepted and not started, in order; the one in service; all it ever accepted, with when
        self.line: list[list[Delivery]] = [[] for _ in workers]
        self.serving: list[Delivery | None] = [None for _ in workers]
        self.taken: list[list[tuple[int, Delivery]]] = [[] for _ in workers]
        self.senders = [Sender() for _ in workers]
        # by window: its tuples that arrived, and that were accepted; by worker and window: accepted and not
        # finished, keys of finished ones
        self.arrived: Counter[int] = Counter()
        self.accepted: Counter[int] = Counter()
        self.unfinished: Counter[tuple[int, int]] = Counter()
        self.finished: dict[tuple[int, int], set[Key]] = {}
        self.closed: set[int] = set()
        self.windows: dict[int, int | None] = {}
        # number and arrival of the first measured tuple
        self.first: tuple[int, int] | None = None
        # by aggregator: when it is free, the starts of what it accepted and what has not started
        self.aggregator_free = [0] * merge.aggregators
        self.aggregator_line: list[list[int]] = [[] for _ in range(merge.aggregators)]
        self.chosen = 0
        self.partials: dict[int, Partial] = {}

    def run(self) -> None:
        super().run()
        while self.heap:
            self.now = self.heap[0][0]
            while self.step():
                pass
        assert not any(sender.left for sender in self.senders)
        for worker, taken in enumerate(self.taken):
            for place, (joined, delivery) in enumerate(taken):
                ahead = [one for _, one in taken[: place + 1] if one.start_ns > joined]
                wait = delivery.start_ns - delivery.reaches_ns
                self.tuples[delivery.seq].deliveries.append(Accepted(worker, wait, len(ahead)))

    def handle(self, kind: int, place: int, what: Any) -> None:
        if kind == AGGREGATOR_PLACE:
            self.give_aggregator_places(place)
        elif kind == FINISH and what is None:
            self.start_next(place)
        else:
            super().handle(kind, place, what)

    # Workers: a tuple starts once it has reached its worker, that is idle, and has nothing to send.

    def is_full(self, worker: int, at: int) -> bool:
        return len(self.line[worker]) >= self.capacity

    def accept(self, delivery: Delivery) -> None:
        worker, window = delivery.worker, self.windows[delivery.seq]
        self.taken[worker].append((self.now, delivery))
        self.line[worker].append(delivery)
        if delivery.reaches_ns > self.now:
            self.push(delivery.reaches_ns, FINISH, worker, None)
        else:
            # The place that this opens was free before: nobody waits for it.
            self.start(worker)
        if window is not None:
            self.accepted[window] += 1
            self.unfinished[worker, window] += 1
            self.close(window)

    def start_next(self, worker: int) -> None:
        """At one instant a worker finishes all that it can before sources get the places that have become free."""
        self.start(worker)
        self.give_places(worker)

    def give_places(self, worker: int, *, after_finishes: bool = True) -> None:
        while not (after_finishes and self.finishes_now(worker)) and not self.is_full(worker, self.now):
            waiters = [(found[0], s) for s, found in enumerate(self.waiting) if found and found[2] == worker]
            if not waiters:
                return
            found = self.waiting[min(waiters)[1]]
            assert found is not None
            self.waiting[min(waiters)[1]] = None
            self.send(min(waiters)[1], found[1], worker)

    def finishes_now(self, worker: int) -> bool:
        """It starts a tuple that takes no time: this finish is to come."""
        serving = self.serving[worker]
        return serving is not None and serving.finish_ns == self.now

    def start(self, worker: int) -> None:
        line = self.line[worker]
        if self.serving[worker] is not None or self.senders[worker].left:
            return
        if not line or line[0].reaches_ns > self.now:
            return
        delivery = line.pop(0)
        self.serving[worker] = delivery
        service = self.service.service_ns(worker, delivery.seq, self.now, self.held.factor(delivery.entries))
        delivery.start_ns, delivery.finish_ns = self.now, self.now + service
        if delivery.finish_ns > LAST_INSTANT:
            raise OverflowError(f"tuple {delivery.seq}: past the end of the clock")
        self.push(delivery.finish_ns, FINISH, worker, delivery)

    def finish(self, delivery: Delivery) -> None:
        super().finish(delivery)
        worker, window = delivery.worker, self.windows[delivery.seq]
        self.serving[worker] = None
        if window is not None:
            self.unfinished[worker, window] -= 1
            self.finished.setdefault((worker, window), set()).add(self.keys[delivery.seq])
            self.leave(worker, window)
        self.start_next(worker)

    # Windows: closed when all their tuples are accepted and no more will come.

    def arrive(self, seq: int, source: int) -> None:
        before, window = self.windows.get(seq - 1), self.measured_window(seq, self.now)
        self.windows[seq] = window
        if window is not None:
            self.arrived[window] += 1
        if before is not None and before != window:
            # news only where nobody knew when this tuple would come
            self.close(before)
        super().arrive(seq, source)

    def measured_window(self, seq: int, arrival: int) -> int | None:
        """Of a tuple that arrives then; None: it is warm-up."""
        options, tuples = self.options, len(self.keys)
        if self.first is None and is_measured(seq, arrival, options.warmup, tuples):
            self.first = seq, arrival
        if self.first is None:
            return None
        every = options.aggregate_every or ("share", Fraction(1))
        return number(every, seq - self.first[0], arrival - self.first[1], tuples - self.first[0])

    def more_comes(self, window: int) -> bool:
        """A tuple of this window may still arrive: in a closed loop times are not known before."""
        seq = len(self.windows)
        if seq == len(self.keys) or self.windows[seq - 1] != window:
            return False
        every = self.options.aggregate_every
        if self.times is None:
            return (every is not None and every[0] == "time") or self.measured_window(seq, self.now) == window
        return self.measured_window(seq, self.times[seq]) == window

    def close(self, window: int) -> None:
        if window in self.closed or self.accepted[window] < self.arrived[window] or self.more_comes(window):
            return
        self.closed.add(window)
        for worker in range(self.options.workers):
            self.leave(worker, window)

    def leave(self, worker: int, window: int) -> None:
        """The partial results of a worker's window, if it is closed and the worker is done with it."""
        if window not in self.closed or self.unfinished[worker, window]:
            return
        keys = sorted(self.finished.pop((worker, window), ()), key=lambda key: self.ids[key])
        sender = self.senders[worker]
        waits = bool(sender.left)
        sender.left += [(window, key) for key in keys]
        if not waits:
            self.send_partials(worker)

    # Aggregators.

    def send_partials(self, worker: int) -> None:
        """All that a worker has to send, until one has to wait."""
        sender = self.senders[worker]
        while sender.left:
            window, key = sender.left[0]
            was_chosen = sender.chosen is not None
            if sender.chosen is None:
                if hasattr(self.merge.grouping, "tick"):
                    self.merge.grouping.tick(self.now)
                sender.chosen = self.merge.grouping.choose(worker, key, self.now), self.chosen, self.now
                self.chosen += 1
            aggregator, place, chosen = sender.chosen
            # A place was given to one that was chosen for before; a new one waits behind those that wait.
            if not was_chosen and (len(self.aggregator_line[aggregator]) >= self.capacity or self.waits_at(aggregator)):
                sender.since = self.now
                return
            start = max(self.now + self.merge.network_delay_ns, self.aggregator_free[aggregator])
            finish = start + round(float(self.merge.service_ns) * factor(self.merge, place))
            self.aggregator_free[aggregator] = finish
            if start > self.now:
                self.aggregator_line[aggregator].append(start)
                self.push(start, AGGREGATOR_PLACE, aggregator, None)
            self.partials[place] = Partial(worker, window, key, aggregator, chosen, self.now, start, finish)
            sender.chosen = sender.since = None
            sender.left.pop(0)

    def waits_at(self, aggregator: int) -> list[tuple[int, int]]:
        """Since when workers wait for a place there, with the worker."""
        return [
            (sender.since, worker)
            for worker, sender in enumerate(self.senders)
            if sender.since is not None and sender.chosen is not None and sender.chosen[0] == aggregator
        ]

    def give_aggregator_places(self, aggregator: int) -> None:
        """What starts now has started. Places go to workers that wait: who waits longest first, then by id."""
        line = self.aggregator_line[aggregator]
        line[:] = [start for start in line if start > self.now]
        while len(line) < self.capacity:
            waiters = self.waits_at(aggregator)
            if not waiters:
                return
            worker = min(waiters)[1]
            self.senders[worker].since = None
            self.send_partials(worker)
            # Finishes of this instant come later, even that of a tuple which starts now and takes no time.
            self.start(worker)
            self.give_places(worker, after_finishes=False)


def key_ids(keys: Sequence[Key]) -> dict[Key, int]:
    """The most frequent key first; then no key, then by bytes."""
    counts = Counter(keys)
    order = sorted(counts, key=lambda key: (-counts[key], key is not None, key or b""))
    return {key: place for place, key in enumerate(order)}


def simulate_bounded(tuples: Sequence[TraceTuple], grouping: Any, merge: Merge, **options: Any) -> Bounded:
    """Replay the tuples; the queues of workers and of aggregators have `queue_capacity` places each."""
    simulation = BoundedAggregators(tuples, grouping, Options(**options), merge)
    simulation.run()
    return Bounded(simulation.result(), [simulation.partials[place] for place in sorted(simulation.partials)])
