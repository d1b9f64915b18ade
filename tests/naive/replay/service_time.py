"""How long a worker takes for a tuple: base cost, random factor, slowdown, slow drift."""

import struct
from collections.abc import Sequence
from fractions import Fraction
from math import sqrt

from tests.naive.kernels.hashes_and_draws import exp, exponential, log, normal
from tests.naive.replay.combiner import Combiner
from tests.naive.replay.options import Options, TraceTuple, index_of, slowdowns

__all__ = ["Service", "base_costs"]

LONGEST_SERVICE = 1 << 53
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


def base_costs(tuples: Sequence[TraceTuple], service_ns: int | None) -> list[int]:
    """What each tuple costs on a worker with slowdown 1, in ns."""
    costs = []
    for _, _, cost_us in tuples:
        if service_ns is not None:
            costs.append(service_ns)
        elif cost_us is None:
            costs.append(MILLISECOND)
        else:
            as_stored = struct.unpack("<f", struct.pack("<f", cost_us))[0]
            costs.append(round(as_stored * 1000.0))
    return costs


class Service:
    """The capacity model of a run. Workers from the number of the first ones on have joined: slowdown 1."""

    def __init__(self, tuples: Sequence[TraceTuple], options: Options) -> None:
        self.options = options
        self.keys = [key for _, key, _ in tuples]
        self.costs = base_costs(tuples, options.service_ns)
        self.traced = any(cost is not None for _, _, cost in tuples)
        self.by_worker = options.key_cost is not None and any(isinstance(row, tuple) for row in options.key_cost)
        self.combiner: Combiner | None = None
        self.drifts: dict[int, list[float]] = {}
        self.factors: dict[str, list[Fraction]] = {}
        kind, _, cv = options.service_distribution.partition(":")
        self.distribution = kind
        self.variance = log(1.0 + float(cv) * float(cv)) if cv else 0.0
        self.by_time = any(place[0] == "time" for place, _ in options.slowdown_at)

    def combine(self, combiner: Combiner) -> None:
        """From now on these are merged tuples."""
        self.combiner = combiner

    @property
    def constant(self) -> bool:
        """All tuples cost the same."""
        same = self.options.service_ns is not None or not self.traced
        same = same and self.options.combine is None
        return same and self.options.key_cost is None and self.distribution == "deterministic"

    def base_ns(self, seq: int, worker: int) -> int:
        table = self.options.key_cost
        if table is None:
            return self.costs[seq]
        key = self.keys[seq]
        return round(table[(key, worker) if self.by_worker else key] * 1000.0)

    def cost(self, seq: int, worker: int) -> float:
        """With the random factor, before the slowdown."""
        if self.by_worker:
            return float(self.base_ns(seq, worker)) * self.shared_cost(seq)
        return self.merged([float(self.base_ns(one, worker)) * self.factor(one) for one in self.members(seq)])

    def members(self, seq: int) -> list[int]:
        return [seq] if self.combiner is None else self.combiner.members.get(seq, [seq])

    def merged(self, costs: list[float]) -> float:
        """What a merged tuple costs; whole numbers are rounded."""
        how = self.options.combine_cost
        if self.combiner is None or how == "max":
            return max(costs)
        total = 0.0
        for cost in costs:
            total += cost
        total *= 1.0 if how == "sum" else float(how)
        return total if self.by_worker or self.distribution != "deterministic" else float(round(total))

    def factor(self, seq: int) -> float:
        if self.distribution == "exponential":
            return exponential(self.options.seed, "service", seq)
        if self.distribution == "lognormal":
            draw = normal(self.options.seed, "service", seq)
            return exp(sqrt(self.variance) * draw - self.variance / 2)
        return 1.0

    def shared_cost(self, seq: int) -> float:
        """What is the same on all workers: the cost, or where that depends on the worker the random factor."""
        if self.by_worker:
            return self.merged([self.factor(one) for one in self.members(seq)])
        return self.cost(seq, 0)

    def own_factor(self, worker: int, seq: int, speed: float) -> float:
        """What the shared cost is multiplied with on a worker of this speed."""
        return float(self.base_ns(seq, worker)) * speed if self.by_worker else speed

    def slowdown(self, worker: int, seq: int, start: int) -> Fraction:
        """In force for this tuple if it starts then."""
        if worker >= self.options.workers:
            return Fraction(1)
        factors, since = self.options.slowdown, -1
        for place, changed in self.options.slowdown_at:
            at = place[1] if self.by_time else index_of(place, len(self.keys))
            if since <= at <= (start if self.by_time else seq):
                factors, since = changed, at
        name = str(factors)
        if name not in self.factors:
            self.factors[name] = slowdowns(factors, self.options.workers)
        return self.factors[name][worker]

    def drift(self, worker: int, seq: int) -> float:
        if self.options.speed_jitter is None:
            return 1.0
        if self.combiner is not None:
            seq = self.combiner.rank(seq)
        cv, every, *start = self.options.speed_jitter.split(":")
        spread = log(1.0 + float(cv) * float(cv))
        step = sqrt(0.19 * spread)
        logs = self.drifts.setdefault(worker, [])
        while len(logs) <= seq // int(every):
            drawn = normal(self.options.seed, f"jitter:{worker}", len(logs))
            if logs:
                logs.append(0.9 * logs[-1] + step * drawn)
            else:
                logs.append((step if start else sqrt(spread)) * drawn)
        return exp(logs[seq // int(every)])

    def speed(self, worker: int, seq: int, start: int) -> float:
        """What the cost is multiplied with."""
        return float(self.slowdown(worker, seq, start)) * self.drift(worker, seq)

    def service_ns(self, worker: int, seq: int, start: int, state: float = 1.0) -> int:
        """state: the factor of what the worker holds."""
        service = round(self.cost(seq, worker) * self.speed(worker, seq, start) * state)
        if service > LONGEST_SERVICE:
            raise OverflowError(f"tuple {seq}: a service of {service} ns")
        return service

    def slowdowns_at_start(self) -> list[Fraction]:
        return [self.slowdown(worker, 0, 0) for worker in range(self.options.workers)]

    def capacity(self) -> Fraction | None:
        """Tuples a second of the first workers; None: without a limit."""
        total = Fraction(0)
        for worker, slowdown in enumerate(self.slowdowns_at_start()):
            work = sum(self.base_ns(seq, worker) for seq in range(len(self.keys)))
            if work == 0:
                return None
            total += SECOND / (slowdown * Fraction(work, len(self.keys)))
        return total
