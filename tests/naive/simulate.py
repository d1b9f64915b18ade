"""One replay: arrivals, sources, choices, workers. All times are integers, ns since the first arrival."""

import heapq
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any, NamedTuple

from tests.naive.hashing import below, exponential, source_of

__all__ = ["Options", "Record", "Run", "TraceTuple", "arrival_times", "base_costs", "simulate", "slowdowns"]

Key = bytes | None
# timestamp and cost (if the trace has one) in us
TraceTuple = tuple[int, Key, float | None]

LAST_INSTANT = 1 << 62
LONGEST_SERVICE = 1 << 53
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Options:
    """The options of a replay.

    arrivals: ("trace",), ("rate", R), ("poisson", R), ("utilization", rho) or ("poisson-utilization", rho),
    numbers as decimal text, int or Fraction. slowdown: "1,1,2", "half:2" or a list; it repeats to the
    number of workers. service_ns replaces the trace's costs; without both a tuple costs 1 ms.
    """

    workers: int
    sources: int = 5
    source_assignment: str = "shuffle"
    arrivals: tuple[Any, ...] = ("trace",)
    spread_ties: bool = False
    speedup: Any = 1
    service_ns: int | None = None
    slowdown: Any = "1"
    network_delay_ns: int = 0
    seed: int = 0


class Record(NamedTuple):
    seq: int
    arrival_ns: int
    source: int
    key: Key
    worker: int
    start_ns: int
    finish_ns: int
    cost_ns: int


class Run(NamedTuple):
    records: list[Record]
    offered_load: float | None
    options: Options
    slowdown: list[Fraction]
    constant_cost: bool
    grouping: Any


def slowdowns(given: Any, workers: int) -> list[Fraction]:
    """One factor for each worker."""
    if isinstance(given, str) and given.startswith("half:"):
        slow = Fraction(given.removeprefix("half:"))
        return [slow if worker >= workers - workers // 2 else Fraction(1) for worker in range(workers)]
    texts = given.split(",") if isinstance(given, str) else list(given)
    return [Fraction(texts[worker % len(texts)]) for worker in range(workers)]


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


def trace_arrivals(timestamps_us: list[int], speedup: Fraction, spread_ties: bool) -> list[int]:
    """The trace's own times; on demand equal ones are spread over the gap after (the last: before) them."""
    first = timestamps_us[0]
    times = [Fraction((t - first) * 1000) for t in timestamps_us]
    sizes = Counter(times)
    distinct = list(sizes)
    if spread_ties and len(distinct) > 1:
        after = dict(pairwise(distinct))
        last_gap = distinct[-1] - distinct[-2]
        times = []
        for t in distinct:
            gap = after[t] - t if t in after else last_gap
            times += [t + gap * place / sizes[t] for place in range(sizes[t])]
    return [round(t / speedup) for t in times]


def spaced_arrivals(count: int, spacing_ns: Fraction) -> list[int]:
    """Tuple i at floor(i x spacing)."""
    return [floor(i * spacing_ns) for i in range(count)]


def poisson_arrivals(count: int, mean_ns: Fraction, seed: int) -> list[int]:
    """The first at 0; each exponential gap is rounded once."""
    mean = float(mean_ns)
    times = [0]
    for i in range(1, count):
        times.append(times[-1] + round(mean * exponential(seed, "arrivals", i)))
    return times


def arrival_times(
    tuples: Sequence[TraceTuple], options: Options, capacity: Fraction | None
) -> tuple[list[int], float | None]:
    """When each tuple reaches its source, and the offered load; capacity in tuples per second."""
    kind = options.arrivals[0]
    count = len(tuples)
    if kind == "trace":
        speedup = Fraction(options.speedup)
        times = trace_arrivals([t for t, _, _ in tuples], speedup, options.spread_ties)
        if times[-1] == times[0] or capacity is None:
            return times, None
        rate = Fraction((count - 1) * SECOND, times[-1] - times[0])
        return times, float(rate / capacity)
    asked = Fraction(options.arrivals[1])
    if kind in ("rate", "poisson"):
        rate = asked
    elif capacity is None:
        raise ValueError("no capacity to be a share of: every cost is 0")
    else:
        rate = asked * capacity
    spacing = SECOND / rate
    if kind in ("rate", "utilization"):
        times = spaced_arrivals(count, spacing)
    else:
        times = poisson_arrivals(count, spacing, options.seed)
    return times, None if capacity is None else float(rate / capacity)


def source_for(seq: int, key: Key, options: Options) -> int:
    if options.source_assignment == "shuffle":
        return seq % options.sources
    if options.source_assignment == "random":
        return below(options.seed, "source", seq, options.sources)
    if options.source_assignment == "key":
        return source_of(key, options.sources)
    raise ValueError(options.source_assignment)


class Executor:
    """Tells a grouping about finished tuples in the order of (finish, worker), if it wants to know."""

    def __init__(self, grouping: Any) -> None:
        self.executed = getattr(grouping, "executed", None)
        self.tick = getattr(grouping, "tick", None)
        self.running: list[tuple[int, int, int, Key, int, int]] = []

    def started(self, record: Record, arrival_at_worker: int) -> None:
        if self.executed is not None:
            # seq orders what one worker finishes at one instant (services of length 0)
            entry = (
                record.finish_ns,
                record.worker,
                record.seq,
                record.key,
                arrival_at_worker,
                record.start_ns,
            )
            heapq.heappush(self.running, entry)

    def finish_until(self, now: int) -> None:
        while self.running and self.running[0][0] <= now:
            finish, worker, _, key, arrival, start = heapq.heappop(self.running)
            if self.tick is not None:
                self.tick(finish - 1)
            self.executed(worker, key, arrival, start, finish)

    def advance(self, now: int) -> None:
        self.finish_until(now)
        if self.tick is not None:
            self.tick(now)


def simulate(tuples: Sequence[TraceTuple], grouping: Any, **options: Any) -> Run:
    """Replay the tuples (in stream order) through a grouping; options as in `Options`."""
    chosen = Options(**options)
    if not tuples:
        raise ValueError("an empty trace")
    slowdown = slowdowns(chosen.slowdown, chosen.workers)
    factors = [float(s) for s in slowdown]
    costs = base_costs(tuples, chosen.service_ns)
    mean_cost = Fraction(sum(costs), len(costs))
    capacity = sum(1 / s for s in slowdown) * SECOND / mean_cost if mean_cost else None
    arrivals, offered_load = arrival_times(tuples, chosen, capacity)

    free = [0] * chosen.workers
    executor = Executor(grouping)
    observe = getattr(grouping, "observe", None)
    records = []
    for seq, (_, key, _) in enumerate(tuples):
        now = arrivals[seq]
        executor.advance(now)
        source = source_for(seq, key, chosen)
        worker = grouping.choose(source, key, now)
        if not 0 <= worker < chosen.workers:
            raise ValueError(f"tuple {seq}: worker {worker} of {chosen.workers}")
        if observe is not None:
            observe(source, key, worker, now)
        arrival_at_worker = now + chosen.network_delay_ns
        service = round(float(costs[seq]) * factors[worker])
        start = max(arrival_at_worker, free[worker])
        finish = start + service
        if service > LONGEST_SERVICE or now > LAST_INSTANT or finish > LAST_INSTANT:
            raise OverflowError(f"tuple {seq}: past the end of the clock")
        free[worker] = finish
        record = Record(seq, now, source, key, worker, start, finish, costs[seq])
        executor.started(record, arrival_at_worker)
        records.append(record)
    executor.finish_until(LAST_INSTANT)
    constant = chosen.service_ns is not None or all(cost is None for _, _, cost in tuples)
    return Run(records, offered_load, chosen, slowdown, constant, grouping)
