"""Dalton: each source learns by reward which workers are good for a hot key, and a reducer merges what they learned."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from tests.naive.groupings.dagreedy import HotBySlide
from tests.naive.groupings.simple_groupings import Key, Setting, WorkersChange
from tests.naive.kernels.hashes_and_draws import below

__all__ = ["Dalton"]

UNKNOWN = -2.0


@dataclass
class Row:
    """What a source knows of a hot key: Q by worker; hot to the end of slide `until`."""

    key: Key
    until: int
    q: dict[int, float]
    full: bool = False


class Reported(NamedTuple):
    key: Key
    count: int
    until: int
    q: dict[int, float]


@dataclass
class Learned:
    """A key of the merged table."""

    until: int
    count: int = 0
    q: dict[int, float] = field(default_factory=dict)


class Dalton(HotBySlide):
    """Rows have numbers: `rows[source][number]`."""

    def __init__(
        self,
        setting: Setting,
        theta: str = "1/n",
        alpha: str = "0.1",
        epsilon: str = "0.1",
        balance: str = "0.5",
        split: str = "2",
        most_split: str = "6",
        capacity: str = "0",
        sync: str = "true",
        **window: str,
    ) -> None:
        super().__init__(setting, theta, **window)
        self.alpha, self.balance = float(alpha), float(balance)
        self.epsilon = Fraction(epsilon)
        self.most_split = int(most_split)
        self.given_capacity = int(capacity)
        self.sync = sync == "true" and setting.sources > 1
        self.split = [int(split)] * setting.sources
        self.rows: list[dict[int, Row]] = [{} for _ in range(setting.sources)]
        self.drawn = [0] * setting.sources
        self.slides_done = 0
        # due, table
        self.tables: list[tuple[int, dict[Key, Learned]]] = []

    @property
    def capacity(self) -> int:
        return self.given_capacity or 2 * self.most_live

    def row_of(self, source: int, key: Key) -> Row | None:
        return next((row for row in self.rows[source].values() if row.key == key), None)

    def new_row(self, source: int, key: Key, until: int) -> Row | None:
        """None if there is no room."""
        rows = self.rows[source]
        number = next((number for number in range(self.capacity) if number not in rows), None)
        if number is None:
            return None
        rows[number] = Row(key, until, dict.fromkeys(self.live, UNKNOWN))
        return rows[number]

    def draw(self, source: int, n: int) -> int:
        self.drawn[source] += 1
        return below(self.setting.seed, f"dalton:{source}", self.drawn[source] - 1, n)

    def choose(self, source: int, key: Key, now: int) -> int:
        own = self.windows[source]
        is_first = own.slide != now // self.slide_ns
        self.move(source, now)
        if is_first:
            self.rows[source] = {n: row for n, row in self.rows[source].items() if row.until >= own.slide}
        row = self.row_of(source, key)
        if self.is_frequent(own, key):
            row = row or self.new_row(source, key, own.slide + 1)
            if row is not None:
                row.until = own.slide + 1
        if row is None:
            self.allowed = 0
            return self.send(source, key, self.candidate(key, 1))
        self.allowed = len(self.live)
        worker = self.send(source, key, self.worker_for(source, row))
        self.reward(source, row, worker)
        return worker

    def holders(self, source: int, key: Key) -> list[int]:
        pairs = self.windows[source].pairs()
        return [worker for worker in self.live if (key, worker) in pairs]

    def worker_for(self, source: int, row: Row) -> int:
        if self.draw(source, 10**6) < self.epsilon * 10**6:
            among = self.holders(source, row.key) if row.full else self.live
            if not among:
                row.full = False
                among = self.live
            return among[self.draw(source, len(among))]
        best = max(row.q[worker] for worker in self.live)
        first = self.candidate(row.key, 1)
        return first if row.q[first] == best else next(worker for worker in self.live if row.q[worker] == best)

    def reward(self, source: int, row: Row, worker: int) -> None:
        own, n = self.windows[source], len(self.live)
        sent = float(own.tuples(worker))
        mean = sum(own.tuples(other) for other in self.live) / n
        holders = len(self.holders(source, row.key))
        load = (sent - mean) / max(sent, mean)
        reward = -(self.balance * load + (1 - self.balance) * (holders / n))
        row.q[worker] = row.q[worker] * (1 - self.alpha) + self.alpha * reward
        if holders >= self.split[source]:
            row.full = True
        rows = self.rows[source].values()
        if 10 * sum(row.full for row in rows) >= 7 * len(rows) and self.split[source] < self.most_split:
            self.split[source] += 1
            for row in rows:
                row.full = False

    def tick(self, now: int) -> None:
        """Slides end before tables are due: with no delay, at once."""
        if not self.sync:
            return
        for ended in range(self.slides_done, now // self.slide_ns):
            self.end_of(ended)
        self.slides_done = now // self.slide_ns
        while self.tables and self.tables[0][0] <= now:
            self.apply(self.tables.pop(0)[1])

    def end_of(self, slide: int) -> None:
        reports = [self.report(source, slide) for source, own in enumerate(self.windows) if own.all_in_slide(slide)]
        if not reports:
            return
        table: dict[Key, Learned] = {}
        for one in (one for report in reports for one in report):
            learned = table.setdefault(one.key, Learned(one.until, 0, dict.fromkeys(one.q, 0.0)))
            learned.until = max(learned.until, one.until)
            learned.count += one.count
            for worker, q in one.q.items():
                learned.q[worker] += one.count * q
        for learned in table.values():
            learned.q = {worker: q / learned.count for worker, q in learned.q.items()}
        row_bytes = 16 + 8 * len(self.live)
        self.control_messages += len(reports) + self.setting.sources
        self.control_bytes += row_bytes * (sum(map(len, reports)) + self.setting.sources * len(table))
        self.tables.append(((slide + 1) * self.slide_ns + 2 * self.setting.control_delay, table))

    def report(self, source: int, slide: int) -> list[Reported]:
        found = []
        for _, row in sorted(self.rows[source].items()):
            count = self.windows[source].in_slide(slide, row.key)
            if count > 0 and row.until > slide:
                found.append(Reported(row.key, count, row.until, {worker: row.q[worker] for worker in self.live}))
        return found

    def apply(self, table: dict[Key, Learned]) -> None:
        for key, learned in table.items():
            for source in range(self.setting.sources):
                row = self.row_of(source, key) or self.new_row(source, key, learned.until)
                if row is not None:
                    row.until = max(row.until, learned.until)
                    row.q.update(learned.q)

    def workers_changed(self, change: WorkersChange) -> None:
        self.tick(change.now - 1)
        super().workers_changed(change)
        of_rows = [row.q for rows in self.rows for row in rows.values()]
        of_tables = [learned.q for _, table in self.tables for learned in table.values()]
        for q in [*of_rows, *of_tables]:
            q.update(dict.fromkeys(change.joined, UNKNOWN))

    def state_entries(self, source: int | None = None) -> int:
        assert source is not None
        return (1 + len(self.rows[source])) * len(self.live) + len(self.windows[source].pairs())

    def choices(self, key: Key) -> int:
        return self.ever
