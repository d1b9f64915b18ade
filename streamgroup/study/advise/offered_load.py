"""The load of the workers for `advise`: known or assumed, and as a rate that holds for other numbers of workers."""

import dataclasses
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from streamgroup.base.errors import StreamgroupError, UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.replay.scenario.arrivals_option import SEARCHED
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import Plan, make_plan, offered_load, trace_span
from streamgroup.study.dry_run import describe_plan
from streamgroup.traces.trace import Trace

__all__ = ["ASSUMED", "OfferedLoad", "Peak", "find_offered_load"]

# Where nothing says how long a tuple takes, or how fast they come.
ASSUMED = "utilization=0.8"
_NS_PER_S = 10**9
# The peak is that of so many pieces of the time, of fewer where they would have fewer tuples than this on average: in a
# piece with two tuples three are no peak.
_PEAK_PIECES = 100
_PEAK_TUPLES = 200
_DIGITS = 15


class Peak(NamedTuple):
    """The busiest of up to 100 equal pieces of a trace's time: its rate in tuples a second, its load, and when, in us.

    The load is that of the workers at the mean cost of a tuple.
    """

    rate: float
    load: float
    first: int
    last: int


@dataclass(frozen=True)
class OfferedLoad:
    """The conditions of all runs: `options` as given, but for the arrivals where they are `assumed`.

    `rate` is what the arrivals are as tuples a second, where they are given as a share of the capacity, else None.
    `load` is the offered load of the workers asked for (None: tuples cost nothing), `sustainable` the least number of
    workers for which it is at most 1 (None: none up to 65,536), `alone` the load of a worker that gets nothing but the
    most frequent key, at the best speed; None where costs differ. `description` is that of `describe_plan`. `peak` is
    None unless tuples come at the times of the trace, and are some hundreds.
    """

    trace: Trace
    options: ReplayOptions
    assumed: bool
    rate: str | None
    load: float | None
    sustainable: int | None
    alone: float | None
    description: dict[str, object]
    peak: Peak | None = None

    def run(self, grouping: str, workers: int, *, whole: bool) -> ReplayOptions:
        """Return the options of a run: the rate is that of the whole trace, whatever segment and workers get it."""
        made = dataclasses.replace(self.options, grouping=grouping, workers=workers, top_keys=0)
        if self.rate is None or (whole and workers == self.options.workers):
            return made
        return dataclasses.replace(made, arrivals=self.rate)


def find_offered_load(trace: Trace, options: ReplayOptions) -> OfferedLoad:
    """Find out what workers are offered; `options` with what their capacity file says.

    Where neither the trace nor an option says how long tuples take, or all come at one instant, ASSUMED is the load.
    UsageError for options that are wrong, or of whose outcome nothing general can be said.
    """
    _refuse(options)
    costs_known = trace.has_cost or options.service is not None or options.key_cost is not None
    as_recorded = options.arrivals == "trace" and not options.spread_ties and options.speedup == "1"
    instant = trace.first_timestamp == trace.last_timestamp
    plan = make_plan(trace, options)
    assumed = as_recorded and (instant or not costs_known) and not plan.costs.free_of_charge
    if assumed:
        options = dataclasses.replace(options, arrivals=ASSUMED)
        plan = make_plan(trace, options)
    load = offered_load(trace, plan)
    return OfferedLoad(
        trace=trace,
        options=options,
        assumed=assumed,
        rate=_rate(plan),
        load=None if load is None else float(load),
        sustainable=_sustainable(trace, options, plan, load),
        alone=_alone(trace, plan, load),
        description=describe_plan(trace, plan),
        peak=_peak(trace, plan, load) if options.arrivals == "trace" and load is not None and not instant else None,
    )


def _peak(trace: Trace, plan: Plan, load: Fraction) -> Peak | None:
    """Find the busiest piece of the time, None where there are too few tuples to tell; reads the timestamps once."""
    pieces = min(_PEAK_PIECES, trace.tuples // _PEAK_TUPLES)
    if pieces < 2:
        return None
    first, last = trace_span(trace)
    borders = first + (last - first) * np.arange(pieces + 1) // pieces
    count = np.zeros(pieces, dtype=np.int64)
    for batch in trace.batches(("timestamp",)):
        assert batch.timestamp is not None
        # The last piece has its end, too.
        place = np.searchsorted(batch.timestamp, borders[1:-1], side="left")
        count += np.diff(place, prepend=0, append=len(batch.timestamp))
    busiest = int(np.argmax(count))
    seconds = float(Fraction(last - first, pieces * 1_000_000) / plan.speedup)
    share = Fraction(int(count[busiest]) * pieces, trace.tuples)
    begin, end = int(borders[busiest]), int(borders[busiest + 1])
    return Peak(int(count[busiest]) / seconds, float(load * share), begin, end)


def _refuse(options: ReplayOptions) -> None:
    """Refuse what ends or changes within a run: a segment of the trace has its own beginning and end."""
    changes = {"slowdown_at": options.slowdown_at, "join": options.join, "leave": options.leave, "crash": options.crash}
    for name, value in changes.items():
        if value:
            raise UsageError(
                f"advise is for workers that stay as they are, and {name} changes them", "replay shows what it does"
            )
    if options.arrivals in ("saturate", *SEARCHED):
        raise UsageError(
            f"--arrivals {options.arrivals} has no rate that workers could keep up with",
            "use rate=R or utilization=RHO",
        )
    if options.aggregators is not None and options.aggregate_every is None:
        raise UsageError(
            "aggregators merge what workers send, and nothing says how often that is", "add --aggregate-every W"
        )
    needs_windows = (options.aggregators, options.state_cost, options.memory_limit)
    if options.aggregate_every is not None and needs_windows == (None, None, None):
        raise UsageError(
            "--aggregate-every changes nothing that advise looks at without aggregators or state that costs",
            "add --aggregators A, or leave it out",
        )
    if options.when_full == "drop":
        raise UsageError("advise is for workers that serve every tuple, and when_full drops some", "use block")


def _rate(plan: Plan) -> str | None:
    """Write a share of the capacity as tuples a second."""
    kind = plan.arrivals
    if "utilization" not in kind.name:
        return None
    assert kind.value is not None
    exact = kind.value * plan.capacity * _NS_PER_S
    with localcontext(prec=_DIGITS):
        digits = Decimal(exact.numerator) / Decimal(exact.denominator)
    return f"{'poisson' if kind.name.startswith('poisson') else 'rate'}={digits:f}"


def _sustainable(trace: Trace, options: ReplayOptions, plan: Plan, load: Fraction | None) -> int | None:
    """Find the least number of workers with an offered load of at most 1."""
    if load is None:
        return 1
    rate = load * plan.capacity

    def is_enough(workers: int) -> bool:
        return make_plan(trace, dataclasses.replace(options, workers=workers)).capacity >= rate

    low, high = 0, min(max(1, ceil(load * options.workers)), MOST_WORKERS)
    try:
        while not is_enough(high):
            if high == MOST_WORKERS:
                return None
            low, high = high, min(2 * high, MOST_WORKERS)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
    except StreamgroupError:
        # Speeds or costs are given for this number of workers: only it can be judged.
        return options.workers if load <= 1 else None
    return high


def _alone(trace: Trace, plan: Plan, load: Fraction | None) -> float | None:
    if load is None or trace.p1 is None or plan.costs.constant_ns is None:
        return None
    fastest = min(plan.speeds.initial)
    return float(load * plan.capacity * plan.costs.constant_ns * fastest) * trace.p1
