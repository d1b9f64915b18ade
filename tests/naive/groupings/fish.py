"""FISH: recent hot keys, a number of workers for each by its heat, and workers by the work that waits there."""

from math import ceil
from typing import Any

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange, smallest_of_survivors
from tests.naive.kernels.hash_ring import Ring, key_place
from tests.naive.kernels.optimal_choices import find_d, shares_of_weights
from tests.naive.kernels.space_saving import Decayed
from tests.naive.option_texts import time_ns, truth
from tests.naive.share_threshold import share

__all__ = ["Fish"]

FIRST_REPORT = 50


class Speeds:
    """The mean time of a tuple on each worker, as the sources know it: told by the workers, now and then."""

    def __init__(self, setting: Setting, interval: int) -> None:
        self.interval, self.delay = interval, setting.control_delay
        self.finished: dict[int, int] = {}
        self.since: dict[int, list[int]] = {}
        self.timer = 0
        self.under_way: list[tuple[int, int, int, float]] = []
        self.told: dict[int, float] = {}
        self.reports = 0

    def executed(self, worker: int, service: int, finish: int) -> None:
        self.finished[worker] = self.finished.get(worker, 0) + 1
        self.since.setdefault(worker, []).append(service)
        if self.finished[worker] == FIRST_REPORT:
            self.report(worker, finish)

    def report(self, worker: int, at: int) -> None:
        services = self.since[worker]
        self.since[worker] = []
        self.reports += 1
        self.under_way.append((at + self.delay, self.reports, worker, float(sum(services)) / float(len(services))))

    def tick(self, now: int) -> None:
        """The timer first, for what it sends may be due already; nothing else depends on which is first."""
        number = now // self.interval
        if number > self.timer:
            self.timer = number
            for worker in sorted(self.since):
                if self.finished[worker] >= FIRST_REPORT and self.since[worker]:
                    self.report(worker, number * self.interval)
        for _, _, worker, mean in sorted(message for message in self.under_way if message[0] <= now):
            self.told[worker] = mean
        self.under_way = [message for message in self.under_way if message[0] > now]

    def known(self, live: list[int]) -> dict[int, float] | None:
        """Of each live worker; of one that did not report, the mean of the others. None: nobody did."""
        told = [self.told[worker] for worker in live if worker in self.told]
        if not told:
            return None
        total = 0.0
        for value in told:
            total += value
        return {worker: self.told.get(worker, total / len(told)) for worker in live}


class Fish(Grouping):
    """Of each source: its table, and by worker the tuples it sent that are not done, as far as it can tell."""

    state_entry_bytes = 16

    def __init__(
        self,
        setting: Setting,
        alpha: float | str = 0.2,
        epoch: int | str = 1000,
        capacity: int | str = 1000,
        theta: str = "1/4n",
        d_min: int | str = 2,
        interval: int | str = "10s",
        vnodes: int | str = 100,
        hwa: bool | str = True,
        chk: bool | str = True,
        ring: bool | str = True,
        head: str = "chk",
        f_mode: str = "epoch_end",
        scope: str = "source",
        pw: str = "sampled",
        drain: str = "elapsed",
    ) -> None:
        super().__init__(setting)
        self.theta, self.f_mode, self.scope, self.pw = theta, f_mode, scope, pw
        self.hwa = truth(hwa)
        self.head = "w" if head == "chk" and not truth(chk) else head
        self.interval = time_ns(str(interval))
        self.vnodes = int(vnodes)
        self.ring = Ring(self.live, self.vnodes) if truth(ring) else None
        self.on_ring: dict[Key, list[int]] = {}
        self.average = d_min == "avg"
        sources = setting.sources
        self.d_min = [2 if self.average else int(d_min)] * sources
        self.d = [2] * sources
        self.tables = [Decayed(int(capacity), int(epoch), float(alpha)) for _ in range(sources)]
        states = 1 if scope == "global" else sources
        self.sent = [[0.0] * setting.workers for _ in range(states)]
        # N_w of the literal reading: sent since the last time that what was done was taken off
        self.literal = drain == "literal"
        self.lately = [[0.0] * setting.workers for _ in range(states)]
        self.drained = [0] * states
        self.speeds = Speeds(setting, self.interval)
        self.cost_sum, self.chosen = 0.0, 0
        self.given: dict[Key, int] = {}
        self.most_held = 0
        if pw == "oracle":
            self.look = self.look_at

    def look_at(self, view: Any) -> None:
        self.view = view

    def executed(self, worker: int, key: Key, arrival: int, start: int, finish: int) -> None:
        if not self.hwa or self.pw == "oracle":
            return
        self.speeds.executed(worker, finish - start, finish)
        self.count_messages()

    def tick(self, now: int) -> None:
        self.speeds.tick(now)
        self.count_messages()

    def count_messages(self) -> None:
        self.control_messages = self.speeds.reports * self.setting.sources
        self.control_bytes = 16 * self.control_messages

    def choose(self, source: int, key: Key, now: int) -> int:
        place = 0 if self.scope == "global" else source
        times = self.times()
        if times is not None:
            self.drain(place, times, now)
        table = self.tables[source]
        table.offer(key)
        # When an epoch is complete; in the first one after 1, 2, 4, 8, ... tuples too.
        if table.in_epoch == table.epoch or (table.offered < table.epoch and table.offered.bit_count() == 1):
            self.from_hot_keys(source)
        d = self.count_candidates(source, key)
        candidates = self.candidates(key, d)
        sent = self.sent[place]
        if times is None:
            worker = min(candidates, key=lambda w: sent[w])
        else:
            worker = min(candidates, key=lambda w: sent[w] * times[w])
        sent[worker] += 1.0
        self.lately[place][worker] += 1.0
        self.given[key] = max(d, self.given.get(key, 0))
        self.most_held = max(self.most_held, self.state_entries(source))
        return worker

    # Workers.

    def times(self) -> dict[int, float] | None:
        """P_w of each live worker; None: not known, or not asked for."""
        if self.pw == "oracle":
            self.cost_sum += self.view.shared_cost
            self.chosen += 1
            mean = self.cost_sum / self.chosen
            known = {w: mean * self.view.own_factor[w] for w in self.live}
        else:
            known = self.speeds.known(self.live)
        return known if self.hwa else None

    def drain(self, place: int, times: dict[int, float], now: int) -> None:
        """What the workers did since the last time, of this source's part."""
        elapsed = now - self.drained[place]
        if elapsed <= self.interval:
            return
        self.drained[place] = now
        if self.literal:
            self.drain_literally(place, times)
            return
        sharing = 1.0 if self.scope == "global" else float(self.setting.sources)
        sent = self.sent[place]
        for w in self.live:
            done = float(elapsed) / (times[w] * sharing) if times[w] * sharing > 0 else float("inf")
            sent[w] = max(0.0, sent[w] - done)

    def drain_literally(self, place: int, times: dict[int, float]) -> None:
        """Algorithm 3: what was sent lately counts twice, and T has passed, however long it was."""
        sent, lately = self.sent[place], self.lately[place]
        for w in self.live:
            done = float(self.interval) / times[w] if times[w] > 0 else float("inf")
            sent[w] = max(0.0, (sent[w] + lately[w]) - done)
            lately[w] = 0.0

    def candidates(self, key: Key, d: int) -> list[int]:
        if self.ring is None:
            functions = [self.candidate(key, j) for j in range(1, d + 1)]
            return list(dict.fromkeys(functions + self.live)) if d == len(self.live) else functions
        if key not in self.on_ring:
            self.on_ring[key] = self.ring.successors(key_place(key), len(self.live))
        return self.on_ring[key][:d]

    # How many.

    def count_candidates(self, source: int, key: Key) -> int:
        n, table = len(self.live), self.tables[source]
        if not table.is_hot(key, share(self.theta, n), self.f_mode):
            self.allowed = 0
            return min(2, n)
        if self.head == "chk":
            entry = table.table[key]
            entry.given = min(n, max(n >> table.halvings(key), self.d_min[source], entry.given))
            d = entry.given
        elif self.head == "d":
            d = self.d[source]
        else:
            d = n
        self.allowed = min(d, n)
        return self.allowed

    def from_hot_keys(self, source: int) -> None:
        """What all hot keys have in common, as if an epoch ended here."""
        n, table = len(self.live), self.tables[source]
        theta = share(self.theta, n)
        hot = sorted((e.stored for k, e in table.table.items() if table.is_hot(k, theta, "ratio")), reverse=True)
        if self.head == "d":
            self.d[source] = find_d(shares_of_weights(hot, table.total), n) if hot else 2
        if self.average:
            total = 0.0
            for stored in hot:
                total += stored
            self.d_min[source] = max(2, ceil(n * (total / table.total) / len(hot) - 1e-9)) if hot else 2

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        n = len(self.live)
        if self.ring is not None:
            self.ring = Ring(self.live, self.vnodes)
        self.on_ring = {}
        for sent in self.sent:
            start = smallest_of_survivors(sent, change)
            sent += [start for _ in change.joined]
        for lately in self.lately:
            lately += [0.0 for _ in change.joined]
        for table in self.tables:
            for entry in table.table.values():
                entry.given = min(entry.given, n)
        self.d = [min(d, n) for d in self.d]

    def choices(self, key: Key) -> int:
        """The most it was ever given, at any source."""
        return self.given[key]

    def state_entries(self, source: int | None = None) -> int:
        return self.most_held if source is None else len(self.tables[source]) + len(self.live)

    def detector_entries(self) -> int:
        return sum(len(table) for table in self.tables)
