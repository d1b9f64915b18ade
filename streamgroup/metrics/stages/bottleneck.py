"""The stages that a tuple passes: what rate each sustains, and which of them limits the run."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from streamgroup.metrics.exact_ratios import NS_PER_MS, NS_PER_S, integers
from streamgroup.metrics.metric_names import Metric
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["STAGES", "Stage", "behind_ms", "bottleneck", "measure", "sustainable_tps"]

# In the order in which a tuple passes them; control servers get messages on the side. Of equal stages the first limits.
STAGES = ("sources", "workers", "aggregators", "control")
_NONE = "none"
# From this share of the rate that a stage sustains on, it limits the run.
_LIMITING = Fraction(95, 100)


class Stage(NamedTuple):
    """One stage of a run: its `name` in STAGES and the busy time of each of its servers, in ns.

    `tuples` is how many tuples of the stream that work was for, whatever it served (partial results, signals), and
    `behind_ns` the most work that one of its servers had left at the last arrival.
    """

    name: str
    busy_ns: Sequence[int]
    tuples: int
    behind_ns: int = 0


def _stages(outcome: Outcome) -> Iterator[Stage]:
    """Yield the stages that the run has.

    What the sources have left is in what the workers have, which finish those tuples after it; control servers keep no
    record of it.
    """
    served = sum(integers(outcome.worker.served))
    if (sources := outcome.source_servers) is not None:
        yield Stage("sources", integers(sources.busy), int(sources.histogram.sum()))
    last = outcome.last_finish_ns
    behind = 0 if last is None else max(last - outcome.last_arrival_ns, 0)
    yield Stage("workers", integers(outcome.worker.busy_ns), served, behind)
    if (merged := outcome.aggregation) is not None:
        # The last flush comes after the last arrival, however fast they are: only what they could not do in the time of
        # the arrivals counts.
        behind = max(0, max(integers(merged.busy_ns)) - (outcome.last_arrival_ns - outcome.first_arrival_ns))
        yield Stage("aggregators", integers(merged.busy_ns), served, behind)
    if outcome.control_work_ns is not None:
        yield Stage("control", [outcome.control_work_ns], served)


def measure(outcome: Outcome) -> dict[str, Metric]:
    """Return what each stage sustains in tuples a second, what they sustain together, and what limits the run.

    None for a stage that the run has not, or that took no time.
    """
    stages = list(_stages(outcome))
    rates = {stage.name: sustainable_tps(stage) for stage in stages}
    known = [rate for rate in rates.values() if rate is not None]
    return {
        "bottleneck": bottleneck(stages, _rate(outcome)),
        "sustainable_tps": float(min(known)) if known else None,
        **{f"sustainable_tps_{name}": None if (rate := rates.get(name)) is None else float(rate) for name in STAGES},
        "backlog_end_ms": behind_ms(outcome),
        "max_rate_tps": None if outcome.max_rate_tps is None else float(outcome.max_rate_tps),
    }


def behind_ms(outcome: Outcome) -> float:
    """Return the most work that a server of any stage had left at the last arrival."""
    return max(stage.behind_ns for stage in _stages(outcome)) / NS_PER_MS


def sustainable_tps(stage: Stage) -> Fraction | None:
    """Return the rate at which the busiest server of a stage would have no idle time; None if it took no time."""
    busiest = max(stage.busy_ns, default=0)
    return Fraction(stage.tuples * NS_PER_S, busiest) if busiest and stage.tuples else None


def bottleneck(stages: Sequence[Stage], rate_tps: Fraction | None) -> str:
    """Name the stage that sustains the least, if the tuples come at 95 % of that rate or more; else "none".

    `rate_tps` None means that they come all at once.
    """
    found = [(rate, STAGES.index(stage.name)) for stage in stages if (rate := sustainable_tps(stage)) is not None]
    if not found:
        return _NONE
    least, place = min(found)
    return STAGES[place] if rate_tps is None or rate_tps >= _LIMITING * least else _NONE


def _rate(outcome: Outcome) -> Fraction | None:
    """Return the arrival rate of the measured tuples, None where they arrive at one instant; one alone has none: 0."""
    span = outcome.last_arrival_ns - outcome.first_arrival_ns
    if outcome.measured < 2:
        return Fraction(0)
    return Fraction((outcome.measured - 1) * NS_PER_S, span) if span else None
