"""Consistent Grouping: keys probe for a virtual worker that is not full; workers that wait get more of them."""

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange
from tests.naive.kernels.hashes_and_draws import candidate
from tests.naive.kernels.shared_helpers import delay_ns

__all__ = ["ConsistentGrouping", "Mapping"]


class Mapping:
    """Which virtual workers (bins) each worker has, in the order it got them; who waits to give, who to take."""

    def __init__(self, live: list[int], each: int) -> None:
        self.bins = {worker: list(range(place * each, (place + 1) * each)) for place, worker in enumerate(live)}
        self.busy: list[int] = []
        self.idle: list[int] = []

    def owner(self, wanted: int) -> int:
        return next(worker for worker, bins in self.bins.items() if wanted in bins)

    def signal(self, worker: int, kind: str) -> None:
        if worker in self.bins:
            self.is_busy(worker) if kind == "busy" else self.is_idle(worker)

    def is_busy(self, worker: int) -> None:
        forget(self.idle, worker)
        if len(self.bins[worker]) <= 1:
            return
        if self.idle:
            self.bins[self.idle.pop(0)].append(self.bins[worker].pop())
        elif worker not in self.busy:
            self.busy.append(worker)

    def is_idle(self, worker: int) -> None:
        forget(self.busy, worker)
        while self.busy and len(self.bins[self.busy[0]]) <= 1:
            self.busy.pop(0)
        if self.busy:
            self.bins[worker].append(self.bins[self.busy.pop(0)].pop())
        elif worker not in self.idle:
            self.idle.append(worker)

    def change(self, change: WorkersChange) -> None:
        for worker in change.joined:
            self.bins[worker] = []
        for worker in change.left:
            forget(self.busy, worker)
            forget(self.idle, worker)
            for moved in self.bins.pop(worker):
                heir = min(change.live, key=lambda w: (len(self.bins[w]), w))
                self.bins[heir].append(moved)


def forget(queue: list[int], worker: int) -> None:
    if worker in queue:
        queue.remove(worker)


class Worker:
    """What a worker knows of itself: what it was sent, what it finished and when."""

    def __init__(self) -> None:
        self.sent = 0
        self.done = 0
        self.last_finish = 0
        self.finished: list[tuple[int, int, int]] = []

    def finishes(self, arrival: int, start: int, finish: int) -> None:
        self.done += 1
        self.last_finish = finish
        self.finished.append((arrival, start, finish))

    def feels(self, since: int, at: int, busy: float, idle: float) -> str | None:
        """Of the time after `since` until `at`: busy by the last wait, idle by the share without work, or neither."""
        if self.sent == 0:
            return "idle"
        window = at - since
        # what finished before will not be asked for again
        self.finished = recent = [tuple_ for tuple_ in self.finished if since < tuple_[2]]
        if recent:
            arrival, start, _ = recent[-1]
            if start - arrival > busy * window:
                return "busy"
        work = sum(finish - max(start, since) for _, start, finish in recent)
        if self.sent > self.done:
            work += at - max(since, self.last_finish)
        return "idle" if 1.0 - work / window > idle else None


class ConsistentGrouping(Grouping):
    """A setting's own `candidates` are the bins that a key probes."""

    def __init__(
        self,
        setting: Setting,
        virtual: int | str = 10,
        eps: float | str = 0.1,
        window: int | str = "1s",
        busy: float | str = 2.0,
        idle: float | str = 0.1,
        signal_delay: int | str | None = None,
    ) -> None:
        super().__init__(setting)
        self.eps, self.busy, self.idle = float(eps), float(busy), float(idle)
        self.window = delay_ns(window, 0)
        self.signal_delay = delay_ns(signal_delay, setting.control_delay)
        self.bins = setting.workers * int(virtual)
        self.mapping = Mapping(self.live, int(virtual))
        self.load = [[0] * self.bins for _ in range(setting.sources)]
        self.seen = [0] * setting.sources
        self.workers = [Worker() for _ in range(setting.workers)]
        self.timer = 0
        # due, worker, what
        self.signals: list[tuple[int, int, str]] = []

    def probe(self, key: Key, j: int) -> int:
        if self.setting.candidates is not None:
            return self.setting.candidates(key, j)
        return candidate(key, j, self.bins, self.setting.hash_seed)

    def choose(self, source: int, key: Key, now: int) -> int:
        load = self.load[source]
        self.seen[source] += 1
        limit = ((1.0 + self.eps) / self.bins) * self.seen[source]
        chosen = None
        for j in range(1, self.bins + 1):
            place = self.probe(key, j)
            if load[place] < limit:
                chosen = place
                break
        if chosen is None:
            chosen = min(range(self.bins), key=lambda b: (load[b], b))
        load[chosen] += 1
        return self.mapping.owner(chosen)

    def observe(self, source: int, key: Key, worker: int, now: int) -> None:
        self.workers[worker].sent += 1

    def executed(self, worker: int, key: Key, arrival: int, start: int, finish: int) -> None:
        self.workers[worker].finishes(arrival, start, finish)

    def tick(self, now: int) -> None:
        """The timer first: what it makes may be due already, and never before what was made earlier."""
        number = now // self.window
        if number > self.timer:
            self.timer = number
            at = number * self.window
            for worker in self.live:
                kind = self.workers[worker].feels(at - self.window, at, self.busy, self.idle)
                if kind is not None:
                    self.signals.append((at + self.signal_delay, worker, kind))
                    self.control_messages += self.setting.sources
                    self.control_bytes += 8 * self.setting.sources
        while self.signals and self.signals[0][0] <= now:
            _, worker, kind = self.signals.pop(0)
            self.mapping.signal(worker, kind)

    def workers_changed(self, change: WorkersChange) -> None:
        self.tick(change.now - 1)
        super().workers_changed(change)
        self.workers += [Worker() for _ in change.joined]
        self.mapping.change(change)

    def state_entries(self, source: int | None = None) -> int:
        return 2 * self.bins
