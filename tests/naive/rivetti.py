"""Rivetti et al.'s distribution-aware key grouping: learn the stream's start, then one fixed place for every key."""

from dataclasses import dataclass
from math import ceil

from tests.naive.groupings import Grouping, Key, Setting, WorkersChange, smallest_of_survivors
from tests.naive.parts import sketch_column
from tests.naive.shares import share
from tests.naive.space_saving import SpaceSaving

__all__ = ["Load", "Plan", "RivettiDkg", "heavy_and_rest"]


@dataclass
class Load:
    """A bucket (key unknown) or a heavy key, and who has it."""

    load: int
    bucket: int | None
    key: Key
    worker: int = -1


class Plan:
    """Items from the heaviest down, each to who has least until then."""

    def __init__(self, items: list[Load], live: list[int]) -> None:
        self.items = items
        self.loads = dict.fromkeys(live, 0)
        for item in items:
            self.place(item)

    def place(self, item: Load) -> None:
        item.worker = min(self.loads, key=lambda w: (self.loads[w], w))
        self.loads[item.worker] += item.load

    def worker(self, key: Key, bucket: int) -> int:
        of_bucket = -1
        for item in self.items:
            if item.bucket is None and item.key == key:
                return item.worker
            if item.bucket == bucket:
                of_bucket = item.worker
        return of_bucket

    def buckets(self) -> int:
        return sum(item.bucket is not None for item in self.items)

    def change(self, change: WorkersChange) -> None:
        joiners = dict.fromkeys(change.joined, 0)
        loads = [self.loads.get(w, 0) for w in range(max([*self.loads, *change.live]) + 1)]
        joiners = {worker: smallest_of_survivors(loads, change) for worker in joiners}
        self.loads = {w: joiners.get(w, self.loads.get(w, 0)) for w in change.live}
        for item in self.items:
            if item.worker not in self.loads:
                self.place(item)


def heavy_and_rest(guaranteed: dict[Key, int], buckets: list[int], bucket_of: dict[Key, int]) -> list[Load]:
    """Heavy keys by what they have for certain, buckets by what is left; keys are given in the order of ties."""
    rest = list(buckets)
    for key, count in guaranteed.items():
        rest[bucket_of[key]] -= count
    items = [Load(load, bucket, None) for bucket, load in enumerate(rest)]
    items += [Load(count, None, key) for key, count in guaranteed.items()]
    return sorted(items, key=lambda item: -item.load)


class Learner:
    def __init__(self, capacity: int, buckets: int) -> None:
        self.table = SpaceSaving(capacity)
        self.buckets = [0] * buckets
        self.seen = 0

    def learn(self, key: Key) -> None:
        self.seen += 1
        self.table.offer(key)
        self.buckets[sketch_column(key, 0, len(self.buckets))] += 1


class RivettiDkg(Grouping):
    """`ids` are the keys' ids in the trace, which decide between equally heavy ones; without them their bytes do."""

    def __init__(
        self,
        setting: Setting,
        theta: str = "1/2n",
        mu: float | str = 2.0,
        epsilon_factor: float | str = 2.0,
        learning_length: int | str = 80_000,
        relearn_every: int | str = 0,
        ids: dict[Key, int] | None = None,
    ) -> None:
        super().__init__(setting)
        self.theta, self.mu, self.epsilon_factor = theta, float(mu), float(epsilon_factor)
        self.learning_length, self.relearn_every = int(learning_length), int(relearn_every)
        self.ids = ids
        self.plan: Plan | None = None
        self.since_plan = 0
        self.learner = self.new_learner()
        self.learning = True
        self.most_held = 0

    def new_learner(self) -> Learner:
        n = len(self.live)
        theta = share(self.theta, n)
        capacity = ceil(self.epsilon_factor * theta.denominator / theta.numerator)
        return Learner(capacity, ceil(self.mu * n))

    def order(self, key: Key) -> tuple[int, bytes]:
        if self.ids is not None:
            return self.ids[key], b""
        return (0, b"") if key is None else (1, key)

    def choose(self, source: int, key: Key, now: int) -> int:
        if self.plan is None:
            worker = self.candidate(key, 1)
        else:
            worker = self.plan.worker(key, sketch_column(key, 0, self.plan.buckets()))
        if not self.learning and self.relearn_every and self.since_plan == self.relearn_every:
            self.learner = self.new_learner()
            self.learning = True
        if self.learning:
            self.learner.learn(key)
            if self.learner.seen == self.learning_length:
                self.build()
        else:
            self.since_plan += 1
        self.most_held = max(self.most_held, self.state_entries(source))
        return worker

    def build(self) -> None:
        table = self.learner.table
        theta = share(self.theta, len(self.live))
        sure = {key: table.estimate(key, "count-error") for key in sorted(table.table, key=self.order)}
        sure = {k: c for k, c in sure.items() if c * theta.denominator >= theta.numerator * self.learner.seen}
        bucket_of = {key: sketch_column(key, 0, len(self.learner.buckets)) for key in sure}
        self.plan = Plan(heavy_and_rest(sure, self.learner.buckets, bucket_of), self.live)
        self.learning = False
        self.since_plan = 0

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        if self.plan is not None:
            self.plan.change(change)

    def state_entries(self, source: int | None = None) -> int:
        return self.most_held if source is None else len(self.learner.table) + len(self.learner.buckets)
