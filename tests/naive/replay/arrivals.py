"""When each tuple reaches its source, and which source that is."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor

from tests.naive.kernels.hashes_and_draws import below, exponential, source_of
from tests.naive.replay.options import Key, Options, TraceTuple

__all__ = ["arrival_times", "source_for"]

SECOND = 1_000_000_000


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
) -> tuple[list[int] | None, float | None]:
    """Arrivals and the offered load; capacity in tuples per second. A closed loop has neither beforehand."""
    kind = options.arrivals[0]
    count = len(tuples)
    if kind == "saturate":
        return None, None
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
    """The source that a tuple belongs to."""
    if options.source_assignment == "shuffle":
        return seq % options.sources
    if options.source_assignment == "random":
        return below(options.seed, "source", seq, options.sources)
    if options.source_assignment == "key":
        return source_of(key, options.sources)
    raise ValueError(options.source_assignment)
