"""A circle of 2^32 places with the workers' points on it, searched one by one."""

from collections.abc import Callable

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange
from tests.naive.kernels.hashes_and_draws import hash_key, mix64

__all__ = ["KgRing", "Ring", "key_place", "node_place"]


def node_place(worker: int, node: int) -> int:
    return mix64(((worker << 32) | node) ^ 0x589965CC75374CC3) >> 32


def key_place(key: Key) -> int:
    h1, _ = hash_key(key)
    return mix64(h1 ^ 0x8EBC6AF09C88C6E3) >> 32


class Ring:
    """`vnodes` points for each worker; one whose place is taken goes on with the node number v + vnodes, ..."""

    def __init__(self, live: list[int], vnodes: int, place: Callable[[int, int], int] = node_place) -> None:
        taken: dict[int, int] = {}
        for worker in sorted(live):
            for v in range(vnodes):
                node = v
                while place(worker, node) in taken:
                    node += vnodes
                taken[place(worker, node)] = worker
        self.points = sorted(taken.items())

    def successors(self, place: int, d: int) -> list[int]:
        """The first d distinct workers clockwise; a point at the place itself counts."""
        at_or_after = [worker for point, worker in self.points if point >= place]
        before = [worker for point, worker in self.points if point < place]
        found: list[int] = []
        for worker in at_or_after + before:
            if worker not in found:
                found.append(worker)
            if len(found) == d:
                break
        return found


class KgRing(Grouping):
    """Key grouping by the first worker of the ring."""

    def __init__(self, setting: Setting, vnodes: int | str = 100) -> None:
        super().__init__(setting)
        self.vnodes = int(vnodes)
        self.ring = Ring(self.live, self.vnodes)
        self.remembered: dict[Key, int] = {}

    def choose(self, source: int, key: Key, now: int) -> int:
        if key not in self.remembered:
            self.remembered[key] = self.ring.successors(key_place(key), 1)[0]
        return self.remembered[key]

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        self.ring = Ring(self.live, self.vnodes)
        self.remembered = {}

    def choices(self, key: Key) -> int:
        return 1
