"""load_aware: shuffles that avoid busy workers, by Flink's rule and by Storm's."""

from collections import defaultdict

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange
from tests.naive.kernels.hashes_and_draws import below
from tests.naive.option_texts import time_ns

__all__ = ["FlinkAdaptive", "StormLoadAware", "load_aware"]

MESSAGE_BYTES = 8


def load_aware(setting: Setting, rule: str = "flink", **given: str) -> Grouping:
    return FlinkAdaptive(setting, **given) if rule == "flink" else StormLoadAware(setting, **given)


class FlinkAdaptive(Grouping):
    """The first of `traverse` workers with less than a buffer outstanding, else the one with the least."""

    def __init__(self, setting: Setting, traverse: str = "4", buffer: str = "1") -> None:
        super().__init__(setting)
        self.traverse, self.buffer = int(traverse), int(buffer)
        self.outstanding = [dict.fromkeys(self.live, 0) for _ in range(setting.sources)]
        self.place = [source % setting.workers for source in range(setting.sources)]
        # The sources of a worker's tuples, in the order in which it finishes them.
        self.senders: dict[int, list[int]] = defaultdict(list)
        self.finished: dict[tuple[int, int], int] = defaultdict(int)
        # due, source, worker
        self.credits: list[tuple[int, int, int]] = []

    def choose(self, source: int, key: Key, now: int) -> int:
        outstanding, n = self.outstanding[source], len(self.live)
        places = [(self.place[source] + step) % n for step in range(min(self.traverse, n))]
        looked_at = [self.live[place] for place in places]
        found = next((worker for worker in looked_at if outstanding[worker] < self.buffer), None)
        if found is None:
            found = min(looked_at, key=lambda worker: (outstanding[worker] // self.buffer, outstanding[worker]))
        self.place[source] = (self.live.index(found) + 1) % n
        outstanding[found] += 1
        self.senders[found].append(source)
        return found

    def executed(self, worker: int, key: Key, arrival: int, start: int, finish: int) -> None:
        source = self.senders[worker].pop(0)
        self.finished[worker, source] += 1
        if self.finished[worker, source] % self.buffer == 0:
            self.credits.append((finish + self.setting.control_delay, source, worker))
            self.control_messages += 1
            self.control_bytes += MESSAGE_BYTES

    def tick(self, now: int) -> None:
        for _, source, worker in (credit for credit in self.credits if credit[0] <= now):
            if worker in self.live:
                self.outstanding[source][worker] -= self.buffer
        self.credits = [credit for credit in self.credits if credit[0] > now]

    def workers_changed(self, change: WorkersChange) -> None:
        self.tick(change.now - 1)
        super().workers_changed(change)
        for outstanding in self.outstanding:
            outstanding.update(dict.fromkeys(change.joined, 0))
        self.place = [place % len(self.live) for place in self.place]

    def state_entries(self, source: int | None = None) -> int:
        return len(self.live)


class StormLoadAware(Grouping):
    """A ring of slots by weight, shuffled at each refresh; weights follow the queues that workers report."""

    def __init__(self, setting: Setting, report: str = "5s", refresh: str = "1s", queue: str = "32768") -> None:
        super().__init__(setting)
        self.report_ns, self.refresh_ns, self.queue = time_ns(report), time_ns(refresh), int(queue)
        self.weight = dict.fromkeys(self.live, 100)
        self.reported = dict.fromkeys(self.live, 0)
        self.pending = dict.fromkeys(self.live, 0)
        self.changes = 0
        self.done = 0
        # due, queue by worker
        self.reports: list[tuple[int, dict[int, int]]] = []
        self.build(0)

    def choose(self, source: int, key: Key, now: int) -> int:
        ring = self.rings[source]
        worker = ring[self.slot[source] % len(ring)]
        self.slot[source] += 1
        self.pending[worker] += 1
        return worker

    def executed(self, worker: int, key: Key, arrival: int, start: int, finish: int) -> None:
        self.pending[worker] -= 1

    def tick(self, now: int) -> None:
        """All instants up to now at which anything happens: first reports are made, then they arrive, then weights."""
        delay = self.setting.control_delay
        instants = {at for at, _ in self.reports}
        for step in (self.report_ns, self.refresh_ns):
            first = self.done // step + 1
            made = [count * step for count in range(first, now // step + 1)]
            instants.update(made)
            if step == self.report_ns:
                instants.update(at + delay for at in made)
        for at in sorted(at for at in instants if at <= now):
            self.at(at)
        self.done = max(self.done, now)

    def at(self, at: int) -> None:
        if at % self.report_ns == 0 and at > self.done:
            self.reports.append(
                (at + self.setting.control_delay, {worker: self.pending[worker] for worker in self.live})
            )
            self.control_messages += self.setting.sources * len(self.live)
            self.control_bytes += MESSAGE_BYTES * self.setting.sources * len(self.live)
        for _, queues in (report for report in self.reports if report[0] <= at):
            self.reported.update({worker: queue for worker, queue in queues.items() if worker in self.live})
        self.reports = [report for report in self.reports if report[0] > at]
        if at % self.refresh_ns == 0 and at > self.done:
            self.refresh(at // self.refresh_ns)

    def refresh(self, number: int) -> None:
        shortest = min(self.reported[worker] for worker in self.live)
        for worker in self.live:
            if 20 * (self.reported[worker] - shortest) <= self.queue:
                self.weight[worker] = min(self.weight[worker] + 1, 100)
            else:
                self.weight[worker] = max(self.weight[worker] - 10, 0)
        self.build(number)

    def build(self, number: int) -> None:
        """Make the rings of refresh `number`."""
        self.number = number
        self.slot = [0] * self.setting.sources
        self.rings = [self.ring(source) for source in range(self.setting.sources)]

    def ring(self, source: int) -> list[int]:
        slots = max(1000, 5 * len(self.live))
        drawn = 2 * self.number * slots

        def draw(n: int) -> int:
            nonlocal drawn
            drawn += 1
            return below(self.setting.seed, f"load_aware:{source}:{self.changes}", drawn - 1, n)

        whole = sum(self.weight[worker] for worker in self.live)
        ring = [worker for worker in self.live for _ in range(self.weight[worker] * slots // whole)]
        while len(ring) < slots:
            ring.append(ring[draw(len(ring))])
        for i in range(slots, 1, -1):
            j = draw(i)
            ring[i - 1], ring[j] = ring[j], ring[i - 1]
        return ring

    def workers_changed(self, change: WorkersChange) -> None:
        self.tick(change.now - 1)
        super().workers_changed(change)
        self.weight.update(dict.fromkeys(change.joined, 100))
        for by_worker in (self.reported, self.pending):
            by_worker.update(dict.fromkeys(change.joined, 0))
        if sum(self.weight[worker] for worker in self.live) == 0:
            self.weight.update(dict.fromkeys(self.live, 100))
        self.changes += 1
        self.build(self.number)

    def state_entries(self, source: int | None = None) -> int:
        return len(self.live) + max(1000, 5 * len(self.live))
