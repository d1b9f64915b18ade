"""Groupings that treat frequent keys, which a detector finds, in a way of their own."""

from fractions import Fraction
from math import ceil
from typing import Any

from tests.naive.detectors import make_detector
from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange, smallest_of_survivors
from tests.naive.kernels.optimal_choices import find_d, shares_of_counts
from tests.naive.option_texts import truth

__all__ = ["DChoices", "GreedyDHead", "GreedyFreq", "HeadGrouping", "Rr", "WChoices"]


class HeadGrouping(Grouping):
    """Head and tail. The tail goes by partial key grouping, on loads that count the head, too.

    Of each source: what it sent to each worker since the start, and what its detector holds.
    """

    # whether the loads count the head
    counts_head = True

    def __init__(self, setting: Setting, detector: str = "space_saving", **of_detector: Any) -> None:
        super().__init__(setting)
        self.detector: Any = make_detector(detector, setting, of_detector)
        self.state_entry_bytes = self.detector.held_bytes
        self.detector_entry_bytes = self.detector.detector_entry_bytes
        self.detector_fixed_bytes = self.detector.detector_fixed_bytes
        self.load = [[0] * setting.workers for _ in range(setting.sources)]
        self.most_held = 0
        self.given: dict[Key, int] = {}

    def choose(self, source: int, key: Key, now: int) -> int:
        estimate = self.detector.detect(source, key, now)
        load = self.load[source]
        if estimate > 0:
            worker, self.allowed = self.choose_head(source, key, estimate)
            most = self.allowed
        else:
            worker, self.allowed = self.least_of_few(source, key, 2), 0
            most = min(2, len(self.live))
        if self.allowed == 0 or self.counts_head:
            load[worker] += 1
        self.given[key] = max(most, self.given.get(key, 0))
        self.most_held = max(self.most_held, self.state_entries(source))
        self.count_messages()
        return worker

    def tick(self, now: int) -> None:
        self.detector.tick(now)
        self.count_messages()

    def count_messages(self) -> None:
        self.control_messages = self.detector.control_messages
        self.control_bytes = self.detector.control_bytes

    def choose_head(self, source: int, key: Key, estimate: int) -> tuple[int, int]:
        """The worker, and among how many it was chosen."""
        raise NotImplementedError

    def least_of_all(self, source: int) -> int:
        return min(self.live, key=lambda w: (self.load[source][w], w))

    def least_of_few(self, source: int, key: Key, d: int) -> int:
        candidates = [self.candidate(key, j) for j in range(1, d + 1)]
        return min(candidates, key=lambda w: self.load[source][w])

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        self.detector.workers_changed(change)
        self.count_messages()
        for load in self.load:
            start = smallest_of_survivors(load, change)
            load += [start for _ in change.joined]

    def choices(self, key: Key) -> int:
        """The most it was ever given, at any source."""
        return self.given[key]

    def state_entries(self, source: int | None = None) -> int:
        if source is None:
            return self.most_held
        # 16 bytes for each worker, in entries of the detector's size.
        return self.detector.held(source) + ceil(Fraction(16 * len(self.live), self.state_entry_bytes))

    def detector_entries(self) -> int:
        return self.detector.entries()


class DChoices(HeadGrouping):
    """D-Choices: a head key may go to F_1..F_d, with d from the shares of the head; d as large as n: to any worker.

    d is found anew at a head tuple at which the source has 65/64 of the tuples that it had the last time, or 1000 more;
    or, recompute_every=N, at the first one at or after each multiple of N, and d is 2 before that. For other workers it
    is found anew at the next one. Where the detector knows of no head key, d stays until it is due again. `found_at`:
    the tuples when it was last due, None: it has to be found.
    """

    def __init__(
        self,
        setting: Setting,
        eps: float | str = 1e-4,
        recompute_every: int | str = 0,
        prefixes: str = "ends",
        start: str = "ceil",
        slack: str = "scaled",
        **more: Any,
    ) -> None:
        super().__init__(setting, **more)
        self.eps, self.recompute_every = float(eps), int(recompute_every)
        self.prefixes, self.start, self.slack = prefixes, start, slack
        self.d = [2] * setting.sources
        self.found_at: list[int | None] = [0 if self.recompute_every else None] * setting.sources

    def choose_head(self, source: int, key: Key, estimate: int) -> tuple[int, int]:
        if self.is_due(source):
            if self.detector.hottest(source):
                self.d[source] = self.find(source)
            self.found_at[source] = self.detector.tuples[source]
        d = self.d[source]
        if d >= len(self.live):
            return self.least_of_all(source), len(self.live)
        return self.least_of_few(source, key, d), d

    def is_due(self, source: int) -> bool:
        m, last = self.detector.tuples[source], self.found_at[source]
        if last is None:
            return True
        if self.recompute_every:
            return m // self.recompute_every > last // self.recompute_every
        return 64 * m >= 65 * last or m - last >= 1000

    def find(self, source: int) -> int:
        head, m = self.detector.hottest(source), self.detector.tuples[source]
        shares = shares_of_counts(head, m, self.prefixes)
        return find_d(shares, len(self.live), self.eps, self.start, self.slack)

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        self.found_at = [None] * len(self.found_at)


class WChoices(HeadGrouping):
    """W-Choices: a head key may go to any worker."""

    def choose_head(self, source: int, key: Key, estimate: int) -> tuple[int, int]:
        return self.least_of_all(source), len(self.live)


class Rr(HeadGrouping):
    """Head keys go round robin, each source on its own. Separate: the tail does not see what the head weighs."""

    def __init__(self, setting: Setting, separate: bool | str = False, **more: Any) -> None:
        super().__init__(setting, **more)
        self.counts_head = not truth(separate)
        self.pointer = [source % setting.workers for source in range(setting.sources)]

    def choose_head(self, source: int, key: Key, estimate: int) -> tuple[int, int]:
        place = self.pointer[source]
        self.pointer[source] = (place + 1) % len(self.live)
        return self.live[place], len(self.live)

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        self.pointer = [place % len(self.live) for place in self.pointer]


class GreedyFreq(HeadGrouping):
    """A head key gets as many candidates as its share of the tuples is of workers, at least two."""

    def choose_head(self, source: int, key: Key, estimate: int) -> tuple[int, int]:
        n = len(self.live)
        d = max(2, -(-n * estimate // self.detector.tuples[source]))
        if d >= n:
            return self.least_of_all(source), n
        return self.least_of_few(source, key, d), d


class GreedyDHead(HeadGrouping):
    """A head key gets F_1..F_d, however many workers these are."""

    def __init__(self, setting: Setting, d: int | str = 2, **more: Any) -> None:
        super().__init__(setting, **more)
        self.d = int(d)

    def choose_head(self, source: int, key: Key, estimate: int) -> tuple[int, int]:
        return self.least_of_few(source, key, self.d), min(self.d, len(self.live))
