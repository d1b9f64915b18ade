"""Warnings on the figures of a run."""

import numpy as np

from streamgroup.cluster.worker_speeds import repetition, split_change
from streamgroup.metrics.stages import bottleneck
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.typed_keys import typed_keys
from streamgroup.traces.trace import Trace

__all__ = ["warnings_of"]

_KEYS_PER_WORKER = 10
_US_PER_S = 1_000_000
# From this share above what the busiest server sustains on, a rate that was found depends on the length of the trace.
_SHORT = 0.05
# With fewer, the 99th percentile by nearest rank is the largest.
_ENOUGH = 100


def warnings_of(trace: Trace, options: ReplayOptions, outcome: Outcome) -> list[str]:
    """Return caveats on the figures of a run, one line each."""
    params = select(options.grouping).params
    doubts = params.doubts(options.workers, options.sources, trace.keys)
    doubts += params.doubts_of_keys(lambda kind=options.key_type: typed_keys(trace, kind))
    return [
        *_of_load(options, outcome), *_of_slowdown(options), *_of_delivery(outcome),
        *_of_trace(trace, options, outcome), *doubts,
    ]  # fmt: skip


def _of_slowdown(options: ReplayOptions) -> list[str]:
    """A list for one of three workers makes a third of all slow, and `14:2` just one."""
    given = {} if options.slowdown is None else {"--slowdown ": options.slowdown}
    for text in options.slowdown_at:
        when, factors = split_change(text)
        given[f"--slowdown-at {when}="] = factors
    found = {what: repetition(factors, options.workers) for what, factors in given.items()}
    return [f"{what}{line}" for what, line in found.items() if line is not None]


def _of_load(options: ReplayOptions, outcome: Outcome) -> list[str]:
    found = []
    load = outcome.offered_load
    if load is not None and not 0.01 <= load <= 1:
        what = "the workers cannot keep up and queues only grow" if load > 1 else "the workers are nearly always idle"
        found.append(
            f"offered load is {float(100 * load):.3g} %: {what}, so latencies say little; "
            "try --arrivals utilization=0.8"
        )
    if outcome.max_rate_tps is not None and (sustainable := bottleneck.measure(outcome)["sustainable_tps"]) is not None:
        above = float(outcome.max_rate_tps) / float(sustainable) - 1
        if above > _SHORT:
            found.append(
                f"the rate found is {100 * above:.3g} % above what the busiest server sustains: the trace is so short "
                "that it ends before the backlog is too long; a longer one gives a lower rate"
            )
    if options.arrivals == "saturate":
        found.append("latency counts from emission: under saturate a source holds a tuple back until it may send it")
        pending = outcome.sources * options.max_pending
        if pending < outcome.workers:
            found.append(
                f"{outcome.sources} sources with --max-pending {options.max_pending} keep at most {pending} of "
                f"{outcome.workers} workers busy; raise --max-pending"
            )
    return found


def _of_delivery(outcome: Outcome) -> list[str]:
    """Nothing is lost silently."""
    found, of = [], f"of {outcome.measured} tuples"
    if outcome.dropped:
        found.append(f"{outcome.dropped} {of} were dropped, as the queue of their worker was full")
    if outcome.lost:
        found.append(f"{outcome.lost} {of} were lost in a crash; --redeliver sends them again")
    finished = outcome.measured - outcome.dropped - outcome.lost
    if finished == 0:
        found.append("no tuple finished, so there is no latency and no throughput")
    elif finished < _ENOUGH:
        found.append(f"p99 of {finished} tuples is no more than the maximum latency; percentiles of so few say little")
    return found


def _of_trace(trace: Trace, options: ReplayOptions, outcome: Outcome) -> list[str]:
    found = []
    if outcome.keys < _KEYS_PER_WORKER * outcome.workers:
        found.append(
            f"{outcome.keys} distinct keys for {outcome.workers} workers: with fewer than {_KEYS_PER_WORKER} keys a "
            "worker, some workers may get nothing whatever the grouping of keys"
        )
    if options.arrivals == "trace" and not options.spread_ties and _whole_seconds_with_ties(trace):
        found.append(
            "the trace's times are whole seconds, so its tuples arrive in bursts; --spread-ties spreads them out"
        )
    return found


def _whole_seconds_with_ties(trace: Trace) -> bool:
    """Judge by the first batch whether times are whole seconds and some are equal."""
    batch = next(trace.batches(("timestamp",), decoders=0), None)
    if batch is None or batch.timestamp is None:
        return False
    times = batch.timestamp
    return not np.any(times % _US_PER_S) and bool(np.any(times[1:] == times[:-1]))
