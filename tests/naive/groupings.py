"""The groupings of the first release, each as the rule reads.

Every class takes the setting it works in and chooses one worker for one tuple. What a source knows
is kept per source. `choices` is the number of workers a key may go to, `state_entries` what one
source keeps.
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.naive.hashing import below, candidate

__all__ = ["GreedyD", "Grouping", "Kg", "Pkg", "Setting", "Sg", "SgRandom"]

Key = bytes | None


class Setting(NamedTuple):
    """Workers, sources and seeds; `candidates` replaces F_j(key) where an example gives its own."""

    workers: int
    sources: int = 5
    seed: int = 0
    hash_seed: int = 0
    candidates: Callable[[Key, int], int] | None = None

    def candidate(self, key: Key, j: int) -> int:
        if self.candidates is not None:
            return self.candidates(key, j)
        return candidate(key, j, self.workers, self.hash_seed)


class Grouping:
    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def choose(self, source: int, key: Key, now: int) -> int:
        raise NotImplementedError

    def choices(self, key: Key) -> int:
        """As many as there are, unless the rule limits them."""
        return self.setting.workers

    def state_entries(self) -> int:
        return 0


class Sg(Grouping):
    """Round robin; source i starts at i mod n."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.pointer = [source % setting.workers for source in range(setting.sources)]

    def choose(self, source: int, key: Key, now: int) -> int:
        worker = self.pointer[source]
        self.pointer[source] = (worker + 1) % self.setting.workers
        return worker

    def state_entries(self) -> int:
        return 1


class SgRandom(Grouping):
    """Uniform, from a sequence of the source's own."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.sent = [0] * setting.sources

    def choose(self, source: int, key: Key, now: int) -> int:
        index = self.sent[source]
        self.sent[source] += 1
        return below(self.setting.seed, f"sg_random:{source}", index, self.setting.workers)

    def state_entries(self) -> int:
        return 1


class Kg(Grouping):
    """The first candidate."""

    def choose(self, source: int, key: Key, now: int) -> int:
        return self.setting.candidate(key, 1)

    def choices(self, key: Key) -> int:
        return 1


class GreedyD(Grouping):
    """The candidate among F_1..F_d that this source sent least to; ties: the first."""

    def __init__(self, setting: Setting, d: int) -> None:
        super().__init__(setting)
        self.d = d
        self.load = [[0] * setting.workers for _ in range(setting.sources)]

    def choose(self, source: int, key: Key, now: int) -> int:
        load = self.load[source]
        best = self.setting.candidate(key, 1)
        for j in range(2, self.d + 1):
            other = self.setting.candidate(key, j)
            if load[other] < load[best]:
                best = other
        load[best] += 1
        return best

    def choices(self, key: Key) -> int:
        return min(self.d, self.setting.workers)

    def state_entries(self) -> int:
        return self.setting.workers


class Pkg(GreedyD):
    """Partial key grouping: two candidates unless told otherwise."""

    def __init__(self, setting: Setting, d: int = 2) -> None:
        super().__init__(setting, d)
