"""The predictor of DStream: coins report keys to one synopsis that forgets; each source has a filter of hot keys."""

from dataclasses import dataclass

from tests.naive.detectors.detector_base import Detector
from tests.naive.groupings.simple_groupings import Key, Setting, WorkersChange
from tests.naive.kernels.hashes_and_draws import word
from tests.naive.kernels.shared_helpers import delay_ns, sketch_column

__all__ = ["BloomFilter", "ExactFilter", "Predictor", "Synopsis", "heads_before_tail"]

FULL = 15


def heads_before_tail(bits: int, most: int) -> int:
    """Zeros below the lowest one of a word of 64 bits, at most so many."""
    zeros = 0
    while zeros < 64 and not bits >> zeros & 1:
        zeros += 1
    return min(zeros, most)


class BloomFilter:
    """Counters of 4 bits. One that reached 15 stays there."""

    def __init__(self, counters: int, hashes: int) -> None:
        self.counters = [0] * counters
        self.hashes = hashes

    def places(self, key: Key) -> list[int]:
        return [sketch_column(key, row, len(self.counters)) for row in range(self.hashes)]

    def add(self, key: Key) -> None:
        for place in self.places(key):
            if self.counters[place] < FULL:
                self.counters[place] += 1

    def remove(self, key: Key) -> None:
        for place in self.places(key):
            if 0 < self.counters[place] < FULL:
                self.counters[place] -= 1

    def __contains__(self, key: Key) -> bool:
        return all(self.counters[place] > 0 for place in self.places(key))

    def __len__(self) -> int:
        return len(self.counters)


class ExactFilter:
    """A set."""

    def __init__(self) -> None:
        self.keys: set[Key] = set()

    def add(self, key: Key) -> None:
        self.keys.add(key)

    def remove(self, key: Key) -> None:
        self.keys.discard(key)

    def __contains__(self, key: Key) -> bool:
        return key in self.keys

    def __len__(self) -> int:
        return len(self.keys)


@dataclass
class Vector:
    key: Key
    bits: int
    announced: bool = False


class Synopsis:
    """Bit vectors of keys, oldest first. Each report shifts some of them; an empty one leaves.

    Told once: an append when a key gets hot, a delete when one of these leaves. As the published code (PredictorBolt)
    does it: an append at each report of a hot key, a delete of all that leave.
    """

    def __init__(self, p: float, zeta: int, decline: str, seed: int, signals: str = "once") -> None:
        self.p, self.zeta, self.decline, self.seed = p, zeta, decline, seed
        self.once = signals == "once"
        self.entries: list[Vector] = []
        self.drawn = 0

    def word(self) -> int:
        self.drawn += 1
        return word(self.seed, "dstream:decline", self.drawn - 1)

    def uniform(self) -> float:
        return (self.word() >> 11) * 2.0**-53

    def shifting(self) -> list[bool]:
        """Which entries shift this time."""
        size = len(self.entries)
        if self.decline == "bernoulli":
            return [self.uniform() < self.p for _ in range(size)]
        wanted = int(self.p * size)
        if self.uniform() < self.p * size - wanted:
            wanted += 1
        shifts = []
        for place in range(size):
            drawn = ((self.word() >> 32) * (size - place)) >> 32
            shifts.append(drawn < wanted)
            wanted -= drawn < wanted
        return shifts

    def report(self, key: Key, bit: int) -> list[tuple[str, Key]]:
        """What is to be broadcast after this report: ("append" or "delete", key)."""
        told: list[tuple[str, Key]] = []
        entry = next((e for e in self.entries if e.key == key), None)
        if entry is None:
            entry = Vector(key, 0)
            self.entries.append(entry)
        entry.bits |= 1 << bit
        if entry.bits.bit_count() >= self.zeta and not (entry.announced and self.once):
            entry.announced = True
            told.append(("append", key))
        return [*told, *(("delete", gone) for gone in self.forget())]

    def forget(self) -> list[Key]:
        """Some entries shift, empty ones leave: those of them that are to be told."""
        gone = []
        for other, shifts in zip(self.entries, self.shifting(), strict=True):
            if shifts:
                other.bits >>= 1
                if other.bits == 0 and (other.announced or not self.once):
                    gone.append(other.key)
        self.entries = [e for e in self.entries if e.bits != 0]
        return gone


class Predictor(Detector):
    """It makes no estimates: a key is hot or not. A source holds the counters of its filter, a byte each."""

    held_bytes = 1

    def __init__(
        self,
        setting: Setting,
        r: int | str = 6,
        l: int | str = 16,  # noqa: E741 the paper's name
        p: float | str = 0.01,
        zeta: int | str = 2,
        coin_delay: int | str | None = None,
        broadcast_delay: int | str | None = None,
        filter: str = "bloom",
        counters: int | str = 1024,
        hashes: int | str = 4,
        decline: str = "bernoulli",
        report: str = "above",
        bit: str = "offset",
        signals: str = "once",
        coins: int | str = 0,
        coin_service: int | str = 0,
        synopsis_service: int | str = 0,
    ) -> None:
        super().__init__(setting)
        # when each coin server has done all signals so far, and which one a source sends its next to
        self.coin_free = [0] * int(coins)
        self.next_coin = [source % max(int(coins), 1) for source in range(setting.sources)]
        self.coin_service, self.synopsis_service = delay_ns(coin_service, 0), delay_ns(synopsis_service, 0)
        self.signals_of = [0] * int(coins)
        self.synopsis_free = self.reports_served = 0
        self.seed = setting.seed
        self.r, self.l = int(r), int(l)
        self.coin_delay = delay_ns(coin_delay, setting.control_delay)
        self.broadcast_delay = delay_ns(broadcast_delay, setting.control_delay)
        self.first_reported = self.r + 1 if report == "above" else self.r
        self.most_heads = self.l if signals == "code" else self.l + self.r
        self.offset = self.first_reported if bit == "offset" else 0
        # all sources hear the same at the same instants: one filter is as good as one each
        self.filter = BloomFilter(int(counters), int(hashes)) if filter == "bloom" else ExactFilter()
        # a byte each, at every source; nobody says how large an exact set is
        self.detector_fixed_bytes = setting.sources * int(counters) if filter == "bloom" else 0
        self.synopsis = Synopsis(float(p), int(zeta), decline, setting.seed, signals)
        self.signals = signals
        self.tossed = [0] * setting.sources
        self.made = 0
        # due, source, number, key, heads, arrival of the signal; below: due, number, what, key
        self.reports: list[tuple[int, int, int, Key, int, int]] = []
        self.broadcasts: list[tuple[int, int, str, Key]] = []

    def detect(self, source: int, key: Key, now: int) -> int:
        """What the filter says before the coin is tossed."""
        self.control_messages += 1
        self.control_bytes += 8
        hot = key in self.filter
        self.toss(source, key, now)
        return int(hot)

    def toss(self, source: int, key: Key, now: int) -> None:
        bits = word(self.seed, f"dstream:coin:{source}", self.tossed[source])
        self.tossed[source] += 1
        t = heads_before_tail(bits, self.most_heads)
        received, tossed = now, now
        if self.coin_free:
            server = self.next_coin[source]
            self.next_coin[source] = (server + 1) % len(self.coin_free)
            self.signals_of[server] += 1
            received = now + self.coin_delay
            tossed = max(received, self.coin_free[server]) + self.coin_service
            self.coin_free[server] = tossed
        if t >= self.first_reported:
            self.made += 1
            self.reports.append((tossed + self.coin_delay, source, self.made, key, t, received))
            self.control_messages += 1
            self.control_bytes += 16

    def control_servers(self) -> list[tuple[int, int]]:
        coins = [(signals, self.coin_service) for signals in self.signals_of]
        return [*coins, (self.reports_served, self.synopsis_service)]

    def tick(self, now: int) -> None:
        for report in sorted((r for r in self.reports if r[0] <= now), key=lambda r: r[:3]):
            due, _, _, key, t, received = report
            at = max(due, self.synopsis_free) + self.synopsis_service
            if at > now:
                break
            self.reports.remove(report)
            self.synopsis_free = at
            self.reports_served += 1
            for what, about in self.synopsis.report(key, t - self.offset):
                self.made += 1
                if what == "append":
                    self.signal_delays.append(at - received)
                self.broadcasts.append((at + self.broadcast_delay, self.made, what, about))
                self.control_messages += self.sources
                self.control_bytes += 16 * self.sources
        told = sorted((b for b in self.broadcasts if b[0] <= now), key=lambda b: b[:2])
        self.broadcasts = [b for b in self.broadcasts if b[0] > now]
        for _, _, what, key in told:
            self.hear(what, key)

    def hear(self, what: str, key: Key) -> None:
        """Told once, all is as it is told. The code (SchedulerBolt) asks its filter first, before either."""
        is_member = key in self.filter
        if what == "append" and (self.signals == "once" or not is_member):
            self.filter.add(key)
        elif what == "delete" and (self.signals == "once" or is_member):
            self.filter.remove(key)

    def workers_changed(self, change: WorkersChange) -> None:
        self.tick(change.now - 1)

    def held(self, source: int) -> int:
        return len(self.filter)

    def entries(self) -> int:
        """All sources share one synopsis."""
        return len(self.synopsis.entries)
