"""Salting: named keys, or the most frequent of the whole stream, get a suffix, round robin or at random."""

from pathlib import Path

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting
from tests.naive.kernels.hashes_and_draws import below

__all__ = ["Salted"]


class Salted(Grouping):
    """A tuple of a salted key gets salt 0..salts-1, which leads to F_(salt + 1); other keys go to F_1.

    Salted are the keys that the file `keys` names, or the `top` most frequent ones.
    With one salt there is nothing to choose, and no key counts as salted.

    Of each source: its next salt of each salted key, which is its own number at first, modulo the salts; and how many
    salts it drew.
    """

    state_entry_bytes = 16

    def __init__(
        self, setting: Setting, salts: str = "8", top: str = "10", pick: str = "round_robin", keys: str = ""
    ) -> None:
        super().__init__(setting)
        assert setting.counts is not None
        self.salts, self.pick = int(salts), pick
        by_count = sorted(setting.counts.items(), key=lambda pair: (-pair[1], pair[0] is not None, pair[0] or b""))
        salted = [key for key, _ in by_count[: int(top)]]
        if keys:
            named = {line.removesuffix(b"\r") for line in Path(keys).read_bytes().split(b"\n")}
            salted = [key for key in setting.counts if key and key in named]
        self.salted = salted if self.salts > 1 else []
        self.next_salt = [dict.fromkeys(self.salted, source % self.salts) for source in range(setting.sources)]
        self.drawn = [0] * setting.sources

    def choose(self, source: int, key: Key, now: int) -> int:
        if key not in self.salted:
            self.allowed = 0
            return self.candidate(key, 1)
        self.allowed = min(self.salts, len(self.live))
        if self.pick == "random":
            salt = below(self.setting.seed, f"salted:{source}", self.drawn[source], self.salts)
            self.drawn[source] += 1
        else:
            salt = self.next_salt[source][key]
            self.next_salt[source][key] = (salt + 1) % self.salts
        return self.candidate(key, salt + 1)

    def choices(self, key: Key) -> int:
        return min(self.salts, self.ever) if key in self.salted else 1

    def state_entries(self, source: int | None = None) -> int:
        return len(self.salted)
