"""Rivetti et al.'s distribution-aware key grouping: learn the stream's start, then one fixed place for every key."""

from dataclasses import dataclass
from math import ceil

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange, smallest_of_survivors
from tests.naive.kernels.shared_helpers import delay_ns, sketch_column
from tests.naive.kernels.space_saving import SpaceSaving
from tests.naive.share_threshold import share

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
    """What one source has counted since it began or last reported."""

    def __init__(self, capacity: int, buckets: int) -> None:
        self.table = SpaceSaving(capacity)
        self.buckets = [0] * buckets

    def learn(self, key: Key) -> None:
        self.table.offer(key)
        self.buckets[sketch_column(key, 0, len(self.buckets))] += 1

    def held(self) -> int:
        return len(self.table.table) + len(self.buckets)


class Reports:
    """What was reported since the last plan: the tuples that keys have for certain, and those of the buckets."""

    def __init__(self) -> None:
        self.sure: dict[Key, int] = {}
        self.buckets: list[int] = []

    def add(self, learner: Learner) -> None:
        for key in learner.table.table:
            self.sure[key] = self.sure.get(key, 0) + learner.table.estimate(key, "count-error")
        old = self.buckets or [0] * len(learner.buckets)
        self.buckets = [one + more for one, more in zip(old, learner.buckets, strict=True)]

    def tuples(self) -> int:
        return sum(self.buckets)


@dataclass
class Source:
    """A source's plan, its learner while it learns, and how many tuples it has sent since it began that or ended it."""

    plan: Plan | None
    learner: Learner | None
    sent: int = 0


class RivettiDkg(Grouping):
    """`ids` are the keys' ids in the trace, which decide between equally heavy ones; without them their bytes do."""

    state_entry_bytes = 16

    def __init__(
        self,
        setting: Setting,
        theta: str = "1/2n",
        mu: float | str = 2.0,
        epsilon_factor: float | str = 2.0,
        learning_length: int | str = 80_000,
        relearn_every: int | str = 0,
        learner: str = "shared",
        learner_service: int | str = 0,
        ids: dict[Key, int] | None = None,
    ) -> None:
        super().__init__(setting)
        self.theta, self.mu, self.epsilon_factor = theta, float(mu), float(epsilon_factor)
        self.alone = learner == "source" or setting.sources == 1
        self.learning_length = int(learning_length)
        parts = 1 if self.alone else setting.sources
        self.part = ceil(self.learning_length / parts)
        self.rest = ceil(int(relearn_every) / parts)
        self.ids = ids
        self.sources = [Source(None, self.new_learner()) for _ in range(setting.sources)]
        self.reports = Reports()
        self.due: int | None = None
        self.learner_service = delay_ns(learner_service, 0)
        self.learner_free = self.reports_served = 0
        self.held_last = [0] * setting.sources

    def new_learner(self) -> Learner:
        n = len(self.live)
        theta = share(self.theta, n)
        capacity = ceil(self.epsilon_factor * theta.denominator / theta.numerator)
        return Learner(capacity, ceil(self.mu * n))

    def order(self, key: Key) -> tuple[int, bytes]:
        if self.ids is not None:
            return self.ids[key], b""
        return (0, b"") if key is None else (1, key)

    def tick(self, now: int) -> None:
        """A plan that was sent has come: all sources have it."""
        if self.due is not None and now >= self.due:
            self.due = None
            plan = self.build(self.reports)
            self.reports = Reports()
            self.sources = [Source(plan, None) for _ in self.sources]
            self.control_messages += len(self.sources)
            self.control_bytes += 16 * len(self.sources) * len(plan.items)

    def choose(self, source: int, key: Key, now: int) -> int:
        own = self.sources[source]
        if own.plan is None:
            worker = self.candidate(key, 1)
        else:
            worker = own.plan.worker(key, sketch_column(key, 0, own.plan.buckets()))
        if own.learner is None and self.rest and own.sent == self.rest:
            own.learner, own.sent = self.new_learner(), 0
        own.sent += 1
        if own.learner is not None:
            own.learner.learn(key)
        self.held_last[source] = self.held(source)
        if own.learner is not None and own.sent == self.part:
            if self.alone:
                only = Reports()
                only.add(own.learner)
                self.sources[source] = Source(self.build(only), None)
            else:
                self.report(own, now)
        return worker

    def report(self, own: Source, now: int) -> None:
        """A control delay after the last report that was needed is served, the plan is there."""
        assert own.learner is not None
        self.control_messages += 1
        self.control_bytes += 16 * len(own.learner.table.table) + 8 * len(own.learner.buckets)
        reaches = now + self.setting.control_delay
        self.learner_free = max(reaches, self.learner_free) + self.learner_service
        self.reports_served += 1
        if self.due is None:
            self.reports.add(own.learner)
            if self.reports.tuples() >= self.learning_length:
                self.due = self.learner_free + self.setting.control_delay
        own.learner, own.sent = self.new_learner(), 0

    def control_servers(self) -> list[tuple[int, int]]:
        return [(self.reports_served, self.learner_service)]

    def build(self, reports: Reports) -> Plan:
        theta = share(self.theta, len(self.live))
        sure = {key: reports.sure[key] for key in sorted(reports.sure, key=self.order)}
        sure = {k: c for k, c in sure.items() if c * theta.denominator >= theta.numerator * reports.tuples()}
        bucket_of = {key: sketch_column(key, 0, len(reports.buckets)) for key in sure}
        return Plan(heavy_and_rest(sure, reports.buckets, bucket_of), self.live)

    def workers_changed(self, change: WorkersChange) -> None:
        """Who learns begins anew, and reports that were not enough are void."""
        super().workers_changed(change)
        plans = {id(own.plan): own.plan for own in self.sources if own.plan is not None}
        for plan in plans.values():
            plan.change(change)
        for own in self.sources:
            if own.learner is not None:
                own.learner, own.sent = self.new_learner(), 0
        if self.due is None:
            self.reports = Reports()

    def held(self, source: int) -> int:
        own = self.sources[source]
        planned = 0 if own.plan is None else len(own.plan.items)
        return planned + (0 if own.learner is None else own.learner.held())

    def state_entries(self, source: int | None = None) -> int:
        return max(self.held_last) if source is None else self.held_last[source]
