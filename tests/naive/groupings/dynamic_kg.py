"""Dynamic Key Grouping: keys grow up through three spaces; the old ones may get more neighbours of their place."""

from dataclasses import dataclass
from math import floor, inf, sqrt

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange
from tests.naive.kernels.shared_helpers import carried, delay_ns

__all__ = ["DynamicKg", "Item", "by_count", "promote", "promote_literally"]


@dataclass
class Item:
    """A key in a space; `seen`: which of its source's items it was, by the time it was made."""

    key: Key
    count: int
    seen: int = 0
    last_check: float = -inf


def by_count(items: list[Item]) -> list[Item]:
    """Most first; equal ones stay in their order."""
    return sorted(items, key=lambda item: -item.count)


def promote(source: list[Item], destination: list[Item], capacity: int) -> None:
    """Algorithm 3 as the authors' code has it; both lists change."""
    while source and len(destination) < capacity:
        destination.insert(0, source.pop(0))
    for _ in range(capacity):
        if not source or not destination or source[0].count <= destination[-1].count:
            break
        destination.insert(0, source.pop(0))
        source.append(destination.pop())


def promote_literally(source: list[Item], destination: list[Item], capacity: int) -> None:
    """Algorithm 3 to the letter: once for each item that is there, so that an empty space stays empty; ties swap."""
    for _ in range(len(destination)):
        if not source or source[0].count < destination[-1].count:
            break
        destination.insert(0, source.pop(0))
        source.append(destination.pop())


class Source:
    """All that one source knows."""

    def __init__(self, workers: int, promotion: str, truncate: str = "count") -> None:
        self.truncate = truncate
        self.promote = promote_literally if promotion == "literal" else promote
        self.counts = [0] * workers
        self.total = 0
        self.width: dict[Key, int] = {}
        self.baby: list[Item] = []
        self.teenage: list[Item] = []
        self.old: list[Item] = []
        self.seen = 0
        self.item: dict[Key, Item] = {}

    def items(self) -> int:
        return len(self.baby) + len(self.teenage) + len(self.old)

    def add(self, key: Key) -> None:
        self.seen += 1
        self.item[key] = Item(key, 1, self.seen)
        self.baby.append(self.item[key])

    def is_old(self, key: Key) -> bool:
        return any(item.key == key for item in self.old)

    def grow_up(self, expected_keys: int, old_too: bool) -> None:
        self.baby.sort(key=lambda item: item.seen)
        if self.truncate == "count":
            self.baby = by_count(self.baby)
        for cut in self.baby[expected_keys * 5 // 10 :]:
            del self.item[cut.key]
        self.baby = by_count(self.baby[: expected_keys * 5 // 10])
        self.teenage = by_count(self.teenage)
        self.promote(self.baby, self.teenage, expected_keys * 4 // 10)
        if old_too:
            self.teenage = by_count(self.teenage)
            self.old = by_count(self.old)
            self.promote(self.teenage, self.old, expected_keys // 10)


class DynamicKg(Grouping):
    def __init__(
        self,
        setting: Setting,
        expected_keys: int | str = 100,
        warmup: int | str = "15s",
        teenage_period: int | str = "15s",
        old_period: int | str = "60s",
        check_interval: int | str = "60s",
        initial: int | str = 2,
        load: str = "float",
        baby_cap: int | str = 0,
        promotion: str = "fill",
        truncate: str = "count",
    ) -> None:
        super().__init__(setting)
        self.expected_keys, self.initial = int(expected_keys), int(initial)
        self.warmup, self.period = delay_ns(warmup, 0), delay_ns(teenage_period, 0)
        self.every = delay_ns(old_period, 0) // self.period
        self.check_interval = delay_ns(check_interval, 0)
        self.whole = load == "int"
        self.baby_cap = int(baby_cap)
        self.of = [Source(setting.workers, promotion, truncate) for _ in range(setting.sources)]
        self.timer = 0
        self.most_held = 0
        self.given: dict[Key, int] = {}

    def threshold(self) -> float:
        ideal = 100.0 / len(self.live)
        limit = ideal + sqrt(ideal)
        return floor(limit) if self.whole else limit

    def load(self, own: Source, worker: int) -> float:
        if own.total == 0:
            return 0.0
        percent = 100.0 * own.counts[worker] / own.total
        return floor(percent) if self.whole else percent

    def neighbour(self, key: Key, j: int) -> int:
        """The j-th worker after the key's first place, around the list of those that are there."""
        base = self.live.index(self.candidate(key, 1))
        return self.live[(base + j) % len(self.live)]

    def least(self, own: Source, workers: list[int]) -> int:
        """The first of those with the least load."""
        best = workers[0]
        for worker in workers[1:]:
            if self.load(own, worker) < self.load(own, best):
                best = worker
        return best

    def choose(self, source: int, key: Key, now: int) -> int:
        own = self.of[source]
        width = min(own.width.get(key, self.initial), len(self.live))
        workers = [self.neighbour(key, j) for j in range(width)]
        best = self.least(own, workers)
        item = own.item.get(key)
        if item is not None and now - item.last_check > self.check_interval:
            item.last_check = now
            best, width = self.check(own, key, now, workers, best)
        self.given[key] = max(self.given.get(key, 0), width)
        self.allowed = width if own.is_old(key) else 0
        own.counts[best] += 1
        own.total += 1
        if item is not None:
            item.count += 1
        elif self.baby_cap == 0 or len(own.baby) < self.baby_cap:
            own.add(key)
        self.most_held = max(self.most_held, self.state_entries(source))
        return best

    def check(self, own: Source, key: Key, now: int, workers: list[int], best: int) -> tuple[int, int]:
        """One worker more, one less, or as it was: who gets the tuple, and how many may."""
        limit = self.threshold()
        width = len(workers)
        lowest = self.load(own, best)
        if now > self.warmup and lowest >= limit and own.is_old(key) and width < len(self.live):
            another = self.neighbour(key, width)
            if self.load(own, another) < lowest:
                own.width[key] = width + 1
                return another, width + 1
        elif width > self.initial and sum(self.load(own, w) < limit for w in workers) >= 2:
            if width - 1 == self.initial:
                own.width.pop(key, None)
            else:
                own.width[key] = width - 1
            return self.least(own, workers[:-1]), width - 1
        return best, width

    def tick(self, now: int) -> None:
        number = now // self.period
        if number > self.timer:
            old_too = number // self.every > self.timer // self.every
            for own in self.of:
                own.grow_up(self.expected_keys, old_too)
            self.timer = number

    def workers_changed(self, change: WorkersChange) -> None:
        self.tick(change.now - 1)
        super().workers_changed(change)
        for own in self.of:
            own.counts = carried(own.counts, change)
            own.total = sum(own.counts[worker] for worker in self.live)
            widths = {key: min(width, len(self.live)) for key, width in own.width.items()}
            own.width = {key: width for key, width in widths.items() if width > self.initial}

    def choices(self, key: Key) -> int:
        """The most it was ever given, at any source."""
        return self.given[key]

    def state_entries(self, source: int | None = None) -> int:
        if source is None:
            return self.most_held
        own = self.of[source]
        return own.items() + len(own.width) + len(self.live)

    def detector_entries(self) -> int:
        return sum(own.items() for own in self.of)
