"""The keys that each worker holds, as sets, and what they make of its service."""

from fractions import Fraction
from typing import Any

from tests.naive.replay.options import Key, Options, Span

__all__ = ["Held"]


class Held:
    """Keys by worker. Windows are counted from the first arrival in the warm-up, else from the first measured tuple."""

    def __init__(self, options: Options, tuples: int) -> None:
        self.options = options
        self.every = options.aggregate_every
        self.tuples = tuples
        self.keys: dict[int, set[Key]] = {}
        self.windows: dict[int, tuple[bool, int]] = {}

    def window(self, seq: int, arrival: int, measured: tuple[int, int] | None) -> tuple[bool, int]:
        """A number, larger for later ones. measured: number and arrival of the first measured tuple, once there."""
        if self.every is None:
            return False, 0
        if measured is None or seq < measured[0]:
            return False, number(self.every, seq, arrival, self.tuples)
        return True, number(self.every, seq - measured[0], arrival - measured[1], self.tuples - measured[0])

    def would_hold(self, worker: int, key: Key, window: tuple[bool, int]) -> int:
        held = self.keys.get(worker, set())
        if worker in self.windows and window > self.windows[worker]:
            held = set()
        return len(held | {key})

    def hold(self, worker: int, key: Key, window: tuple[bool, int]) -> int:
        """The worker gets a tuple; how many keys it holds then."""
        if window > self.windows.setdefault(worker, window):
            self.windows[worker] = window
            self.keys[worker] = set()
        self.keys.setdefault(worker, set()).add(key)
        return len(self.keys[worker])

    def factor(self, entries: int) -> float:
        found = 1.0
        if self.options.state_cost is not None:
            beta, of, *shared = self.options.state_cost.split("/")
            found += float(Fraction(beta) * (self.options.workers if shared else 1) / int(of)) * entries
        if self.options.memory_limit is not None:
            most, _, over = self.options.memory_limit.partition(":")
            if entries > (int(most[:-2]) // self.options.workers if most.endswith("/n") else int(most)):
                found *= float(Fraction(over))
        return found


def number(every: Span, place: int, since: int, tuples: int) -> int:
    kind, size = every
    length: Any = size
    if kind == "time":
        return since // length
    if kind == "share":
        length = Fraction(size) * tuples
    return place // length
