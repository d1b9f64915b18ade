"""Searches the highest rate of arrivals that the workers keep up with: what `--arrivals max` stands for."""

import dataclasses
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from typing import Any

import pyarrow as pa

from streamgroup.base.arrow_numpy import column
from streamgroup.base.errors import DataError
from streamgroup.metrics import latency
from streamgroup.metrics.stages import bottleneck
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.arrivals_option import SEARCHED
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import make_plan
from streamgroup.traces.trace import Trace

__all__ = ["MOST_TRIALS", "TYPICAL_TRIALS", "RateSearch", "Trial", "at_capacity", "is_searched", "search_rate"]

# The rate found is kept, and one at most this many times as high is not.
_STEP = 1.01
# Work that a server may have left at the last arrival, where no p99 is asked for.
_MOST_BEHIND_MS = 1000.0
# A rate so many times higher or lower than the capacity is not looked for.
_FAR = 1000.0
_MOST_RATE, _LEAST_RATE = 1e9, 1e-8
# Two trials tell where to look; a bracket doubles its width, as a power of _STEP, until it is 1,000 times as wide, and
# is halved as often.
MOST_TRIALS = 2 + 11 + 11
TYPICAL_TRIALS = 8

_KINDS = {"trial": pa.int64(), "rate_tps": pa.float64(), "latency_p99_ms": pa.float64(), "backlog_end_ms": pa.float64(),
          "dropped": pa.int64(), "verdict": pa.string()}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Trial:
    """A replay at one rate: `arrivals` are the option that repeats it.

    `verdict` is `kept`, or why the rate is too high: `p99` (over the limit, or nothing finished), `behind` (a server
    has more work left at the last arrival than it may), `drops` (a full queue dropped tuples).
    """

    arrivals: str
    rate_tps: float
    latency_p99_ms: float | None
    backlog_end_ms: float
    dropped: int
    verdict: str

    @property
    def kept(self) -> bool:
        """Return whether the workers kept up."""
        return self.verdict == "kept"

    def __str__(self) -> str:
        p99 = "none" if self.latency_p99_ms is None else f"{self.latency_p99_ms:.6g} ms"
        return f"{self.rate_tps:.6g} tuples/s: p99 {p99}, {self.backlog_end_ms:.6g} ms behind: {self.verdict}"


@dataclasses.dataclass(frozen=True)
class RateSearch:
    """The highest rate found, in tuples a second, the `options` of the run at that rate, and all trials in order."""

    rate_tps: Fraction
    options: ReplayOptions
    trials: tuple[Trial, ...]

    def record(self) -> dict[str, Any]:
        """Return what `run.json` says of the search: the option that repeats the run, and the trials."""
        trials = [{**vars(trial), "text": str(trial)} for trial in self.trials]
        return {"rate_search": {"arrivals": self.options.arrivals, "trials": trials}}

    def table(self) -> pa.Table:
        """Return a row for each trial."""
        rows = [{"trial": number, **vars(trial)} for number, trial in enumerate(self.trials, 1)]
        return pa.table({name: column([row[name] for row in rows], kind) for name, kind in _KINDS.items()})


def is_searched(options: ReplayOptions) -> bool:
    """Return whether the rate is to be searched."""
    return options.arrivals in SEARCHED


def at_capacity(options: ReplayOptions) -> ReplayOptions:
    """Return options with a rate in place of one that is to be searched; others as they are."""
    if not is_searched(options):
        return options
    kind = "poisson-utilization" if options.arrivals.startswith("poisson") else "utilization"
    return dataclasses.replace(options, arrivals=f"{kind}=1", max_p99=None)


def search_rate(trace: Trace, options: ReplayOptions, *, progress: Callable[[int], None] | None = None) -> RateSearch:
    """Find the highest rate, within 1 %, that keeps the p99 of latency at `options.max_p99` or below.

    Without that, no server may have more than a second of work left at the last arrival. A rate at which a queue drops
    tuples is too high. The first trial is at the workers' capacity; what its busiest server would sustain is the
    second, and a geometric bisection follows: at most MOST_TRIALS replays, each of the whole trace, the same every
    time. Where the verdict is not monotone in the rate, what is found is one border of it. `progress` receives the
    tuples of all trials. UsageError for the options; DataError where no rate is low enough, or none too high: of a
    short trace there is never a second of work.
    """
    plan = make_plan(trace, options)
    limit = _MOST_BEHIND_MS if plan.max_p99_ns is None else plan.max_p99_ns / 1e6
    kind = "poisson" if options.arrivals.startswith("poisson") else "rate"
    trials: list[Trial] = []

    def judge(rate: float) -> Outcome:
        arrivals = f"{kind}={_text(rate)}"
        outcome = replay(trace, dataclasses.replace(options, arrivals=arrivals, max_p99=None), progress=progress)
        trials.append(_judged(arrivals, outcome, limit, by_p99=plan.max_p99_ns is not None))
        return outcome

    capacity = float(plan.capacity * 10**9)
    most, least = (float(_text(rate)) for rate in (min(_FAR * capacity, _MOST_RATE), max(capacity / _FAR, _LEAST_RATE)))
    first = judge(min(max(capacity, least), most))
    low, high = _bracket(trials)
    guess = _guess(trace.tuples, first, limit if plan.max_p99_ns is None else None)
    if guess is None or not (low or least) < guess < (high or most):
        guess = _next(trials[-1], low, high, _STEP)
    step = _STEP
    while high is None or low is None or high > low * _STEP:
        if (trials[-1].kept and low == most) or (not trials[-1].kept and high == least):
            raise _none(trials[-1], by_p99=plan.max_p99_ns is not None)
        judge(min(max(guess, least), most))
        low, high = _bracket(trials)
        guess = _next(trials[-1], low, high, step)
        step *= step
    best = next(trial for trial in trials if trial.rate_tps == low)
    found = dataclasses.replace(options, arrivals=best.arrivals, max_p99=None)
    return RateSearch(Fraction(best.arrivals.partition("=")[2]), found, tuple(trials))


def _judged(arrivals: str, outcome: Outcome, limit: float, *, by_p99: bool) -> Trial:
    rate = float(Fraction(arrivals.partition("=")[2]))
    p99 = latency.measure(outcome)["latency_p99_ms"]
    behind = bottleneck.behind_ms(outcome)
    if outcome.dropped:
        verdict = "drops"
    elif by_p99:
        verdict = "kept" if p99 is not None and p99 <= limit else "p99"
    else:
        verdict = "kept" if behind <= limit else "behind"
    return Trial(arrivals, rate, p99, behind, outcome.dropped, verdict)


def _bracket(trials: list[Trial]) -> tuple[float | None, float | None]:
    """Return the highest rate that was kept and the lowest that was not, None while there is none."""
    return (
        max((trial.rate_tps for trial in trials if trial.kept), default=None),
        min((trial.rate_tps for trial in trials if not trial.kept), default=None),
    )


def _guess(tuples: int, outcome: Outcome, behind_ms: float | None) -> float | None:
    """Return the rate at which the busiest server of a run has so much work left at the end; or, for None, none."""
    sustainable = bottleneck.measure(outcome)["sustainable_tps"]
    if not isinstance(sustainable, float):
        return None
    seconds = tuples / sustainable - (behind_ms or 0.0) / 1000
    return tuples / seconds if seconds > 0 else None


def _next(last: Trial, low: float | None, high: float | None, step: float) -> float:
    """Return the rate to try next: a step past the border that the last trial moved, or the middle of both."""
    if last.kept:
        assert low is not None
        return low * step if high is None else min(low * step, sqrt(low * high))
    assert high is not None
    return high / step if low is None else max(high / step, sqrt(low * high))


def _text(rate: float) -> str:
    """Write a rate with six digits, so that it can be given to --arrivals."""
    return format(Decimal(f"{rate:.5e}").normalize(), "f")


def _none(trial: Trial, *, by_p99: bool) -> DataError:
    """Report that the rates that were looked at are all kept, or all too high; `trial` is the last."""
    if trial.kept:
        return DataError(
            f"--arrivals max: {trial}, which is no less than 1,000 times what the workers can serve: the trace is too "
            "short to tell a rate that is too high",
            "use a longer trace" if by_p99 else "use a longer trace, or --max-p99",
        )
    return DataError(
        f"--arrivals max: no rate is low enough: {trial}, where the workers are nearly always idle",
        "raise --max-p99" if by_p99 else "give --max-p99: a single service leaves more than a second of work",
    )
