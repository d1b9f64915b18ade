"""Consistent hashing with bounded loads: clockwise to the first worker that has room for one more tuple."""

from fractions import Fraction
from math import ceil

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange, smallest_of_survivors
from tests.naive.kernels.hash_ring import Ring, key_place

__all__ = ["BoundedLoad"]


class BoundedLoad(Grouping):
    """Each source counts what it sent: of m tuples, with the one at hand, no worker gets over ceil((1 + c) m / n)."""

    def __init__(self, setting: Setting, c: str = "0.25", vnodes: str = "100") -> None:
        super().__init__(setting)
        self.c = Fraction(c)
        self.vnodes = int(vnodes)
        self.sent = [dict.fromkeys(self.live, 0) for _ in range(setting.sources)]
        self.order: dict[Key, list[int]] = {}
        self.ring = Ring(self.live, self.vnodes)

    def clockwise(self, key: Key) -> list[int]:
        """All live workers from the place of the key on."""
        if key not in self.order:
            self.order[key] = self.ring.successors(key_place(key), len(self.live))
        return self.order[key]

    def choose(self, source: int, key: Key, now: int) -> int:
        sent = self.sent[source]
        tuples = sum(sent[worker] for worker in self.live) + 1
        most = ceil((1 + self.c) * tuples / len(self.live))
        worker = next(worker for worker in self.clockwise(key) if sent[worker] + 1 <= most)
        sent[worker] += 1
        return worker

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        for sent in self.sent:
            start = smallest_of_survivors(sent, change) if set(change.live) - set(change.joined) else 0
            sent.update(dict.fromkeys(change.joined, start))
        self.ring = Ring(self.live, self.vnodes)
        self.order = {}

    def state_entries(self, source: int | None = None) -> int:
        return self.most_live
