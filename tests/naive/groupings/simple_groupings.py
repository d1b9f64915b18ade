"""The groupings of the first release, each as the rule reads.

Every class takes the setting it works in and chooses one worker for one tuple. What a source knows
is kept per source. `choices` is the number of workers a key may go to, `state_entries` what one
source keeps. Workers come and go: `live` lists the ids of those that are there, ascending.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.naive.kernels.hashes_and_draws import below, candidate

__all__ = ["FullKnowledge", "GreedyD", "Grouping", "Kg", "Pkg", "Setting", "Sg", "SgRandom", "WorkersChange"]

Key = bytes | None


class Setting(NamedTuple):
    """Workers, sources, seeds, delays in ns; `candidates` replaces F_j(key) where an example gives its own.

    `counts` are the tuples of each key in the whole stream, for rules that are made from a recording. `modulo`: F_j is
    a hash modulo n.
    """

    workers: int
    sources: int = 5
    seed: int = 0
    hash_seed: int = 0
    candidates: Callable[[Key, int], int] | None = None
    network_delay: int = 0
    control_delay: int = 0
    counts: Mapping[Key, int] | None = None
    modulo: bool = False


class WorkersChange(NamedTuple):
    """Who is there from now on, ascending, and who just came and went."""

    now: int
    live: list[int]
    joined: list[int]
    left: list[int]


def smallest_of_survivors(values: list[Any], change: WorkersChange) -> Any:
    """Where a joiner starts: with the least of those that are there and were there before."""
    return min(values[worker] for worker in change.live if worker not in change.joined)


class Grouping:
    """Beside `choose`, one may have the hooks of `streamgroup.groupings.protocol`: `observe`, `executed`, `tick`.

    `allowed` is how many workers the tuple just chosen for may go to if its key is treated as hot, else 0.
    `control_messages` and `control_bytes` are what its parts told each other so far,
    `state_entry_bytes` the nominal size of an entry of its state.
    """

    state_entry_bytes = 8

    def __init__(self, setting: Setting) -> None:
        self.allowed = 0
        self.control_messages = 0
        self.control_bytes = 0
        self.setting = setting
        self.live = list(range(setting.workers))
        self.most_live = setting.workers
        self.ever = setting.workers

    def choose(self, source: int, key: Key, now: int) -> int:
        raise NotImplementedError

    def workers_changed(self, change: WorkersChange) -> None:
        self.live = list(change.live)
        self.most_live = max(self.most_live, len(self.live))
        self.ever += len(change.joined)

    def candidate(self, key: Key, j: int) -> int:
        """F_j(key): a place in the list of those that are there."""
        if self.setting.candidates is not None:
            return self.setting.candidates(key, j)
        return self.live[candidate(key, j, len(self.live), self.setting.hash_seed, self.setting.modulo)]

    def choices(self, key: Key) -> int:
        """As many as there ever were, unless the rule limits them."""
        return self.ever

    def state_entries(self, source: int | None = None) -> int:
        """What a source holds now; None: the most that any of them ever held."""
        return 0

    def control_servers(self) -> list[tuple[int, int]]:
        """How many messages each was given, and its time for one."""
        detector = getattr(self, "detector", None)
        return [] if detector is None else detector.control_servers()  # type: ignore[no-any-return]

    def signal_delays(self) -> list[int]:
        """From the arrival of a signal at a detector outside the sources to the announcement, for each of these."""
        detector = getattr(self, "detector", None)
        return [] if detector is None else detector.signal_delays  # type: ignore[no-any-return]

    def detector_entries(self) -> int | None:
        """What the detectors of hot keys at all sources hold now; None: there is none."""
        return None


class Sg(Grouping):
    """Round robin; source i starts at i mod n, and goes on modulo the workers that there are."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.pointer = [source % setting.workers for source in range(setting.sources)]

    def choose(self, source: int, key: Key, now: int) -> int:
        place = self.pointer[source]
        self.pointer[source] = (place + 1) % len(self.live)
        return self.live[place]

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        self.pointer = [place % len(self.live) for place in self.pointer]

    def state_entries(self, source: int | None = None) -> int:
        return 1


class SgRandom(Grouping):
    """Uniform, from a sequence of the source's own."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.sent = [0] * setting.sources

    def choose(self, source: int, key: Key, now: int) -> int:
        index = self.sent[source]
        self.sent[source] += 1
        return self.live[below(self.setting.seed, f"sg_random:{source}", index, len(self.live))]

    def state_entries(self, source: int | None = None) -> int:
        return 1


class Kg(Grouping):
    """The first candidate."""

    def choose(self, source: int, key: Key, now: int) -> int:
        return self.candidate(key, 1)

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
        best = self.candidate(key, 1)
        for j in range(2, self.d + 1):
            other = self.candidate(key, j)
            if load[other] < load[best]:
                best = other
        load[best] += 1
        return best

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        for load in self.load:
            start = smallest_of_survivors(load, change)
            load += [start for _ in change.joined]

    def choices(self, key: Key) -> int:
        return min(self.d, self.ever)

    def state_entries(self, source: int | None = None) -> int:
        return self.most_live


class Pkg(GreedyD):
    """Partial key grouping: two candidates unless told otherwise."""

    def __init__(self, setting: Setting, d: int = 2) -> None:
        super().__init__(setting, d)


class FullKnowledge(Grouping):
    """Where the sum of service times sent is least; with backlog, who is free first. Ties: the lowest id.

    One state for all sources. It looks at the workers, which no real source can.
    """

    def __init__(self, setting: Setting, backlog: bool = False) -> None:
        super().__init__(setting)
        self.backlog = backlog
        self.work = [0] * setting.workers

    def look(self, view: Any) -> None:
        self.view = view

    def choose(self, source: int, key: Key, now: int) -> int:
        if self.backlog:
            return min(self.live, key=lambda w: (max(now, self.view.free[w]), w))
        worker = min(self.live, key=lambda w: (self.work[w], w))
        self.work[worker] += round(self.view.cost[worker] * self.view.slowdown[worker])
        return worker

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        self.work += [smallest_of_survivors(self.work, change) for _ in change.joined]

    def state_entries(self, source: int | None = None) -> int:
        return 0 if self.backlog else self.most_live
