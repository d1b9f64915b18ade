"""The dry run of a replay: what would be simulated, and estimates of its memory and time."""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from streamgroup.base.storage.atomic_local_directories import check_replaceable
from streamgroup.base.time_count_or_share import index_of, parse_extent
from streamgroup.cluster.membership import Event
from streamgroup.cluster.state_cost import NO_LIMIT
from streamgroup.cluster.worker_speeds import split_change
from streamgroup.kernels.latency_histogram import BUCKETS
from streamgroup.replay.accounting.key_worker_pairs import MAX_BITS
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.scenario.arrivals_option import SEARCHED
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import Plan, longest_span, make_plan, offered_load
from streamgroup.replay.scenario.typed_keys import typed_keys
from streamgroup.study.rate_search import MOST_TRIALS, TYPICAL_TRIALS, is_searched
from streamgroup.study.read_run import MARKER
from streamgroup.study.replay_run import checked, without_changes
from streamgroup.study.run_cost import BASE_MB, START_S, TUPLES_PER_S, what_slows
from streamgroup.traces.trace import Trace

__all__ = ["describe_plan", "dry_run"]

_LOG_MB = 100
_LOG_BYTES = 17
_MB = 1e6
# Different slowdown factors that are listed.
_MOST_FACTORS = 8


def dry_run(
    trace_path: str | Path,
    options: ReplayOptions,
    output: Path | None = None,
    *,
    log: bool = False,
    overwrite: bool = False,
    baseline: bool = False,
) -> dict[str, Any]:
    """Check all that `run_to_directory` checks, with the same errors, and describe what it would do; write nothing."""
    trace, options = checked(trace_path, options, log=log and output is None)
    if baseline:
        without_changes(options)
    if output is not None:
        check_replaceable(output, overwrite=overwrite, marker=MARKER)
    plan = make_plan(trace, options)
    plan.selection.params.check_keys(lambda kind=options.key_type: typed_keys(trace, kind), options.workers)
    return describe_plan(trace, plan, log=log, baseline=baseline)


def describe_plan(trace: Trace, plan: Plan, *, log: bool = False, baseline: bool = False) -> dict[str, Any]:
    """Return everything by name, in the order to show it: texts, numbers, lists of texts, None for what does not apply.

    Memory is in MB of 10^6 bytes; where it depends on what will happen (pairs of key and worker in a hash table) it is
    an upper bound. Queues are not included, as their lengths are unknown.
    """
    options = plan.options
    ever = options.workers + len(options.join)
    load = offered_load(trace, plan)
    found: dict[str, Any] = {
        "trace": trace.name,
        "tuples": trace.tuples,
        "keys": trace.keys,
        "grouping": plan.selection.text,
        "workers": options.workers,
        "workers_ever": ever,
        "sources": options.sources,
        "source_assignment": options.source_assignment,
        "arrivals": options.arrivals,
        "rate_kept": _limit(plan),
        "arrival_rate_tps": None if load is None else float(load * plan.capacity * 10**9),
        "offered_load": None if load is None else float(load),
        "capacity_tps": None if plan.costs.free_of_charge else float(plan.capacity * 10**9),
        "service": _service(trace, plan),
        "service_distribution": options.service_distribution or "deterministic",
        "source_service": _source_service(plan),
        "combine": _combine(plan),
        "slowdown": _factors(plan.speeds.initial),
        "slowdown_at": [_change(text, trace.tuples) for text in options.slowdown_at] or None,
        "speed_jitter": _jitter(plan),
        "state_cost": _state_cost(plan),
        "queues": _queues(plan),
        "membership": [_event(event, trace.tuples, options.redeliver) for event in plan.events] or None,
        "network_delay_ms": plan.network_delay / 1e6,
        "control_delay_ms": plan.control_delay / 1e6,
        "warmup": _warmup(plan),
        "window": options.window,
        "windows_at_most": _windows(trace, plan),
        "aggregate_every": options.aggregate_every,
        "aggregators": _aggregators(plan),
        "app": None if plan.app is None else plan.app.text,
        "baseline": baseline,
        "log": log,
        "loop": "ordered" if plan.is_ordered else "fast",
        **plan.selection.params.facts(options.workers),
    }
    memory = _memory(trace, plan, ever, found["windows_at_most"], log=log, baseline=baseline)
    found |= {f"memory_{name}_mb": size for name, size in memory.items()}
    found["memory_mb"] = sum(memory.values())
    found["log_on_disk_mb"] = trace.tuples * _LOG_BYTES / _MB if log else None
    speed = min(TUPLES_PER_S[name] for name in what_slows(plan, log=log))
    found["assumed_tuples_per_s"] = speed
    found["trials_at_most"] = MOST_TRIALS if is_searched(options) else None
    found["time_s"] = START_S + trace.tuples * (1 + baseline + TYPICAL_TRIALS * is_searched(options)) / speed
    return found


def _limit(plan: Plan) -> str | None:
    """Say what the rate that is searched keeps."""
    if not is_searched(plan.options):
        return None
    if plan.max_p99_ns is None:
        return "no server has more than 1 s of work left at the last arrival"
    return f"the p99 of latency is at most {_ms(Fraction(plan.max_p99_ns))}"


def _service(trace: Trace, plan: Plan) -> str:
    mean = plan.costs.mean_ns
    if isinstance(mean, list):
        means = ", ".join(_ms(value) for value in (min(mean), max(mean)))
        return f"by key and worker from {plan.options.key_cost}, the workers' means from {means.replace(', ', ' to ')}"
    if plan.costs.by_key is not None:
        return f"by key from {plan.options.key_cost}, mean {_ms(mean)}"
    if plan.costs.constant_ns is None:
        return f"the trace's cost, mean {_ms(mean)}"
    note = " instead of the trace's cost" if trace.has_cost else ""
    return f"{_ms(mean)} for every tuple{note}"


def _source_service(plan: Plan) -> str | None:
    """Describe the time at the sources, and the rate that it allows where sources take tuples round robin."""
    found = plan.source_service
    if found is None:
        return None
    times = found.by_source(plan.options.sources)
    most = int(times.max())
    each = ", ".join(_ms(Fraction(time)) for time in dict.fromkeys(times.tolist()))
    rate = "without a limit" if most == 0 else f"at most {plan.options.sources * 1e9 / most:.6g} tuples/s round robin"
    return f"{each} a tuple, {rate}"


def _combine(plan: Plan) -> str | None:
    rule = plan.combine
    if rule is None:
        return None
    batch = f"{rule.size} tuples" if rule.size else f"every {rule.width_ns / 1e6:g} ms"
    cost = f"{rule.share:g} of the sum" if rule.share else "the largest"
    return f"each source, {batch}; a merged tuple costs {cost} of its originals' costs"


def _ms(ns: Fraction) -> str:
    return f"{float(ns) / 1e6:.6g} ms"


def _factors(slowdown: Iterable[Fraction]) -> str:
    """Write how many workers have each factor, in the order of their ids; of many factors the most frequent."""
    counts = Counter(float(factor) for factor in slowdown)
    some = counts.most_common(_MOST_FACTORS) if len(counts) > _MOST_FACTORS else counts.items()
    more = f" and {len(counts) - _MOST_FACTORS} other factors" if len(counts) > _MOST_FACTORS else ""
    return ", ".join(f"{count} with {factor:g}" for factor, count in some) + more


def _change(text: str, tuples: int) -> str:
    when, factors = split_change(text)
    extent = parse_extent(when, "--slowdown-at")
    index = index_of(extent, tuples)
    start = f"services that start from {extent.ns / 1e9:g} s on" if index is None else _tuple("from", index, tuples)
    return f"{start}: {factors}"


def _tuple(word: str, index: int, tuples: int) -> str:
    return f"{word} tuple {index} ({100 * index / tuples:.4g} %)"


def _jitter(plan: Plan) -> str | None:
    if not plan.speeds.jittered:
        return None
    factors = plan.speeds.jitter
    span = f"{factors.min():.3g} to {factors.max():.3g}"
    return f"a new factor every {plan.speeds.every} tuples, {len(factors)} in all, from {span}"


def _state_cost(plan: Plan) -> list[str] | None:
    if plan.state is None:
        return None
    rate, limit, over = plan.state
    found = [f"a service takes 1 + {float(rate):.6g} x (keys that the worker holds) times as long"] if rate else []
    if limit != NO_LIMIT:
        found.append(f"a service takes {float(over):.6g} times as long on a worker that holds over {limit} keys")
    return found


def _queues(plan: Plan) -> str:
    queues = plan.queues
    pending = f", at most {queues.max_pending} unfinished tuples a source" if queues.max_pending else ""
    if not queues.capacity:
        return f"without a limit{pending}"
    full = "drops what comes" if queues.drops else "holds its sources back"
    return f"{queues.capacity} waiting tuples a worker, a full one {full}{pending}"


def _aggregators(plan: Plan) -> str | None:
    if plan.aggregators is None:
        return None
    count, service, distribution, selection = plan.aggregators
    drawn = "" if distribution is None else f", {(plan.options.aggregator_service or '').partition(':')[2]}"
    full = f", {plan.queues.capacity} waiting for each, a full one holds workers back" if plan.holds_back else ""
    return f"{count} by {selection.text}, {_ms(Fraction(service))} for every partial result{drawn}{full}"


def _event(event: Event, tuples: int, redeliver: bool) -> str:
    when = f"at {(event.time_ns or 0) / 1e9:g} s" if event.index is None else _tuple("before", event.index, tuples)
    if event.kind == "join":
        return f"a worker joins {when}"
    who = "the worker with the highest id" if event.worker is None else f"worker {event.worker}"
    who = "a random worker" if event.random else who
    if event.kind == "leave":
        return f"{who} leaves {when}"
    return f"{who} crashes {when}, its tuples are {'chosen anew' if redeliver else 'lost'}"


def _warmup(plan: Plan) -> str | None:
    if plan.warmup is None or plan.warmup_ns:
        return f"what arrives before {plan.warmup_ns / 1e9:g} s" if plan.warmup_ns else None
    return f"the first {plan.warmup} tuples" if plan.warmup else None


def _windows(trace: Trace, plan: Plan) -> int | None:
    """Bound the number of windows; None for windows in time if the run time is unknown."""
    rule = WindowRule(plan.options.window, trace.tuples - (plan.warmup or 0))
    if rule.width_ns is None:
        return rule.most(0)
    return None if plan.arrivals.name in ("saturate", *SEARCHED) else rule.most(longest_span(trace, plan))


def _memory(trace: Trace, plan: Plan, ever: int, windows: int | None, *, log: bool, baseline: bool) -> dict[str, float]:
    """Estimate what each part takes, in MB."""
    choices = plan.selection.choices_per_key(ever)
    pairs = _pairs(trace, ever, choices)
    costs = [table.nbytes for table in (plan.costs.by_key, plan.costs.by_worker) if table is not None]
    sizes = {
        "pairs": pairs * (1 + (plan.options.aggregate_every is not None) + baseline),
        "histograms": ever * BUCKETS * 8,
        "windows": (windows or 0) * ever * 16,
        "dictionary": trace.keys * 24,
        # A grouping that may choose any worker keeps no table of candidates.
        "candidates": trace.keys * choices * 2 if choices is not None and choices < ever else 0,
        "costs": sum(costs),
        "speeds": plan.speeds.jitter.nbytes if plan.speeds.jittered else 0,
    }
    if plan.state is not None:
        sizes["held"] = ever * (trace.keys >> 3)
    return {"program": BASE_MB + _LOG_MB * log, **{name: size / _MB for name, size in sizes.items()}}


def _pairs(trace: Trace, workers: int, choices: int | None) -> int:
    """Return the bytes of the set of pairs: two bits each, or at most a hash set of all there can be."""
    if trace.keys * workers <= MAX_BITS:
        return 2 * (trace.keys * workers + 7) // 8
    most = int(np.minimum(trace.dictionary().count, workers if choices is None else choices).sum())
    # Two int64 a slot, at most half of the slots in use, a power of two of them.
    return 16 * (1 << (2 * most).bit_length())
