"""SpaceSaving as tables that are searched from end to end: with counts, and with weights that decay by epochs."""

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Decayed", "Entry", "SpaceSaving", "Weight"]

Key = bytes | None
SMALLEST = 1e-6
RENORMALISE = 2.0**400


@dataclass
class Entry:
    count: int
    error: int
    updated: int


class SpaceSaving:
    """At most `capacity` keys. Without replacement a key that comes to a full table stays out."""

    def __init__(self, capacity: int, replacement: bool = True) -> None:
        self.capacity, self.replacement = capacity, replacement
        self.table: dict[Key, Entry] = {}
        self.offered = 0

    def offer(self, key: Key) -> None:
        self.offered += 1
        if key in self.table:
            entry = self.table[key]
            entry.count += 1
            entry.updated = self.offered
        elif len(self.table) < self.capacity:
            self.table[key] = Entry(1, 0, self.offered)
        elif self.replacement:
            out = min(self.table, key=lambda k: (self.table[k].count, self.table[k].updated))
            least = self.table.pop(out).count
            self.table[key] = Entry(least + 1, least, self.offered)

    def estimate(self, key: Key, kind: str = "count") -> int:
        """By count, count+error or count-error; 0 if the key is not in the table."""
        entry = self.table.get(key)
        if entry is None:
            return 0
        return entry.count + {"count": 0, "count+error": entry.error, "count-error": -entry.error}[kind]

    def __len__(self) -> int:
        return len(self.table)


@dataclass
class Weight:
    """An entry; `stored` and `error` are in units that all entries share. `given`: the largest d it was given."""

    stored: float
    error: float
    updated: int
    given: int = 0


class Decayed:
    """FISH, Algorithm 1: after each epoch all that was counted weighs alpha times what it did.

    The weight of what comes grows instead (`inc`), so that nothing stored changes, but for powers of two.
    """

    def __init__(self, capacity: int, epoch: int, alpha: float) -> None:
        self.capacity, self.epoch, self.alpha = capacity, epoch, alpha
        self.table: dict[Key, Weight] = {}
        self.inc = 1.0
        self.total = 0.0
        self.total_at_start = 0.0
        self.in_epoch = 0
        self.offered = 0

    def offer(self, key: Key) -> bool:
        """Count it; True: an epoch ended before."""
        ended = self.in_epoch == self.epoch
        if ended:
            self.end_epoch()
            self.in_epoch = 0
        self.in_epoch += 1
        self.offered += 1
        self.total += self.inc
        if key in self.table:
            entry = self.table[key]
            entry.stored += self.inc
            entry.updated = self.offered
        elif len(self.table) < self.capacity:
            self.table[key] = Weight(self.inc, 0.0, self.offered)
        else:
            least = self.table.pop(self.least()).stored
            self.table[key] = Weight(least + self.inc, least, self.offered)
        return ended

    def least(self) -> Key:
        return min(self.table, key=lambda k: (self.table[k].stored, self.table[k].updated))

    def end_epoch(self) -> None:
        if self.alpha == 0:
            self.table.clear()
            self.total, self.inc = 0.0, 1.0
        else:
            self.inc = self.inc / self.alpha
            if self.inc >= RENORMALISE:
                self.inc *= 2.0**-400
                self.total *= 2.0**-400
                for entry in self.table.values():
                    entry.stored *= 2.0**-400
                    entry.error *= 2.0**-400
            while self.table and self.table[self.least()].stored < SMALLEST * self.inc:
                del self.table[self.least()]
        self.total_at_start = self.total

    def denominator(self, mode: str) -> float:
        """What shares are taken of: all so far, or all that there will be at the end of the epoch."""
        return self.total if mode == "ratio" else self.total_at_start + self.epoch * self.inc

    def is_hot(self, key: Key, theta: Fraction, mode: str) -> bool:
        share = float(theta.numerator) / float(theta.denominator)
        return self.table[key].stored > share * self.denominator(mode)

    def halvings(self, key: Key) -> int:
        """How often the key's weight may be doubled and not pass the largest: floor(log2(f_top / f_k))."""
        top = Fraction(max(entry.stored for entry in self.table.values()))
        weight, index = Fraction(self.table[key].stored), 0
        while weight * 2 <= top:
            weight, index = weight * 2, index + 1
        return index

    def __len__(self) -> int:
        return len(self.table)
