"""Every metric and table, in integers and fractions; floats at the end."""

from collections import Counter
from fractions import Fraction
from typing import Any

from tests.naive.metrics import tables
from tests.naive.metrics.aggregation import AGGREGATOR_METRICS
from tests.naive.metrics.hot_keys import Heads, hot_metrics, memory_estimate
from tests.naive.metrics.metric_formulas import (
    as_float,
    imbalance,
    mean,
    mean_of_known,
    nearest_rank,
    peak_to_mean,
    population_deviation,
    ratio,
    skew_score,
)
from tests.naive.metrics.what_is_counted import (
    busy_of,
    cumulative_imbalances,
    finished_of,
    grouped,
    latencies_of,
    loads_of,
    longest_queue,
    longest_wait,
    makespan_of,
    measured_of,
    pairs_of,
    replicas_of,
    use_of,
    wait_ahead,
    window_imbalance,
    window_loads,
    window_numbers,
    windows_of,
)
from tests.naive.replay.keys_held_by_workers import Held
from tests.naive.replay.options import Span
from tests.naive.replay.tuple_records import Record, Run

__all__ = [
    "Span",
    "busy_of",
    "control_metrics",
    "detector_metrics",
    "held_metrics",
    "imbalance",
    "latencies_of",
    "loads_of",
    "lower_bound",
    "metrics",
    "nearest_rank",
    "pairs_of",
    "peak_to_mean",
    "skew_score",
    "stage_metrics",
    "summary",
    "wait_ahead",
    "window_numbers",
    "windows_of",
]

SECOND = 1_000_000_000
MILLISECOND = 1_000_000

SOURCE_METRICS = ("source_utilization_max", "source_wait_ms_mean", "source_wait_ms_p99")
DETECTOR_METRICS = (
    "hot_keys_mean",
    "choices_max",
    "choices_mean",
    "hot_precision",
    "hot_recall",
    "hot_detection_delay_tuples",
    "hot_detection_delay_ms",
)


def load_metrics(run: Run, measured: list[Record], windows: dict[int, list[Record]]) -> dict[str, Any]:
    workers = len(run.lives)
    loads = loads_of(measured, workers)
    busy = busy_of(measured, workers)
    own = [window_imbalance(content, workers) for content in windows.values()]
    spreads = [population_deviation(window_loads(content, workers)) for content in windows.values()]
    total = sum(loads)
    return {
        "imbalance": as_float(imbalance(loads)),
        "imbalance_mean": as_float(mean_of_known(cumulative_imbalances(windows))),
        "window_imbalance_mean": as_float(mean_of_known(own)),
        "window_imbalance_max": as_float(max((x for x in own if x is not None), default=None)),
        "peak_to_mean": as_float(peak_to_mean(loads)),
        "load_stddev_percent": population_deviation([Fraction(100 * load, total) for load in loads]) if total else None,
        "window_load_stddev_mean": sum(spreads) / len(spreads),
        "skew_score": skew_score(loads),
        "work_imbalance": as_float(imbalance(busy)),
        "work_peak_to_mean": as_float(peak_to_mean(busy)),
        "idle_workers": loads.count(0),
    }


def bound_imbalance(run: Run, measured: list[Record], heads: Heads | None) -> Fraction | None:
    """With c workers for each key, one worker has 1/c of the hottest key at least. None where that is not so."""
    changed = len(run.lives) > run.options.workers or any(life.ended_ns is not None for life in run.lives)
    if heads is not None or changed or any(r.status == "dropped" or r.redelivered for r in measured):
        return None
    workers = run.options.workers
    choices = getattr(run.grouping, "choices", lambda _: workers)
    shares = {key: Fraction(count, len(measured)) for key, count in Counter(r.key for r in measured).items()}
    return max([Fraction(0), *(share / choices(key) - Fraction(1, workers) for key, share in shares.items())])


def state_metrics(
    run: Run, measured: list[Record], aggregate_every: Span | None, heads: Heads | None = None
) -> dict[str, Any]:
    workers = len(run.lives)
    counts = Counter(r.key for r in measured)
    replicas = pairs_of(measured)
    entries = Counter(w for w, _ in {(delivery.worker, r.key) for r in measured for delivery in r.deliveries})
    messages = replicas
    if aggregate_every is not None:
        messages = sum(pairs_of(content) for content in windows_of(measured, aggregate_every).values())
    source_entries = run.grouping.state_entries() if hasattr(run.grouping, "state_entries") else None
    choices = getattr(run.grouping, "choices", lambda _: workers)
    estimate = sum(min(f, choices(key)) for key, f in counts.items())
    return {
        "replicas": replicas,
        "replication_factor": as_float(Fraction(replicas, len(counts))),
        "state_entries_max": max(entries.values(), default=0),
        "memory_estimate_pkg": sum(min(f, 2) for f in counts.values()),
        "memory_estimate_sg": sum(min(f, workers) for f in counts.values()),
        "memory_estimate": estimate if heads is None else memory_estimate(run, measured, heads),
        "source_state_entries": source_entries,
        "source_state_bytes": None
        if source_entries is None
        else getattr(run.grouping, "state_entry_bytes", 8) * source_entries,
        "aggregation_messages": messages,
        "control_messages": getattr(run.grouping, "control_messages", 0),
        "control_bytes": getattr(run.grouping, "control_bytes", 0),
        **control_metrics(run, measured),
    }


def control_metrics(run: Run, measured: list[Record]) -> dict[str, Any]:
    """What control servers were given: (messages, service time) of each."""
    servers = run.grouping.control_servers() if hasattr(run.grouping, "control_servers") else []
    if not any(service for _, service in servers):
        return {"control_utilization_max": None, "hot_signal_delay_ms": None}
    busiest = max(messages * service for messages, service in servers)
    delays = run.grouping.signal_delays()
    return {
        "control_utilization_max": as_float(ratio(busiest, makespan_of(measured))),
        "hot_signal_delay_ms": as_float(mean_of_known(delays), MILLISECOND) if delays else None,
    }


def held_metrics(run: Run, measured: list[Record]) -> dict[str, Any]:
    """What workers held as they served, and how much slower that made them."""
    if run.options.state_cost is None and run.options.memory_limit is None:
        return {"held_entries_max": None, "state_slowdown_mean": None}
    entries = [r.entries for r in measured if r.entries is not None]
    held = Held(run.options, len(run.records))
    return {
        "held_entries_max": max(entries, default=0),
        "state_slowdown_mean": as_float(mean_of_known([Fraction(held.factor(n)) for n in entries])),
    }


def detector_metrics(run: Run, measured: list[Record], window: Span) -> dict[str, Any]:
    """What the detectors of all sources hold after the last tuple of a window, the most of it."""
    held = {choice.seq: choice.detector_entries for choice in run.choices}
    ends = [held[content[-1].seq] for content in windows_of(measured, window).values()]
    known = [entries for entries in ends if entries is not None]
    if not known:
        return {"detector_entries": None, "detector_bytes": None}
    size = getattr(run.grouping, "detector_entry_bytes", getattr(run.grouping, "state_entry_bytes", 8))
    fixed = getattr(run.grouping, "detector_fixed_bytes", 0)
    return {"detector_entries": max(known), "detector_bytes": max(known) * size + fixed}


def lower_bound(run: Run, measured: list[Record]) -> Fraction | None:
    """No assignment is faster. None where speeds or workers change, workers differ in costs, or some are dropped."""
    table = run.options.key_cost
    by_worker = table is not None and any(isinstance(row, tuple) for row in table)
    changed = len(run.lives) > run.options.workers or any(life.ended_ns is not None for life in run.lives)
    if (
        run.options.combine
        or not run.options.steady
        or changed
        or by_worker
        or any(r.status != "finished" for r in measured)
    ):
        return None
    costs = [round(r.work_ns) for r in measured]
    return max(Fraction(sum(costs)) / sum(1 / s for s in run.slowdown), max(costs) * min(run.slowdown))


def latency_metrics(latencies: list[int]) -> dict[str, Any]:
    ranks = {
        "p50": Fraction(1, 2),
        "p95": Fraction(95, 100),
        "p99": Fraction(99, 100),
        "p999": Fraction(999, 1000),
    }
    found = {"mean": mean_of_known(latencies), "max": max(latencies, default=None)}
    for name, quantile in ranks.items():
        found[name] = nearest_rank(latencies, quantile) if latencies else None
    return {f"latency_{name}_ms": as_float(ns, MILLISECOND) for name, ns in found.items()}


def source_work(run: Run, measured: list[Record]) -> dict[int, int]:
    """How long each source served measured tuples; nothing where sources take no time."""
    if run.servers is None:
        return {}
    busy = dict.fromkeys(range(run.options.sources), 0)
    for r in measured:
        busy[r.source] += run.servers.services[r.seq]
    return busy


def stage_metrics(run: Run, measured: list[Record], aggregator_busy: int = 0) -> dict[str, Any]:
    """What each stage sustains, and which of them limits the run: sources and aggregators if they take time, workers.

    aggregator_busy: how long the busiest aggregator works.
    """
    finished = finished_of(measured)
    worked = {"sources": (len(measured), max(source_work(run, measured).values(), default=0))}
    worked["workers"] = len(finished), max(busy_of(measured, len(run.lives)))
    worked["aggregators"] = len(finished), aggregator_busy
    found = {name: Fraction(count * SECOND, busy) for name, (count, busy) in worked.items() if busy and count}
    arrivals = [r.arrival_ns for r in measured]
    last, span = max(arrivals), max(arrivals) - measured[0].arrival_ns
    limiting = "none"
    # As fast as 95 % of what the stage sustains, or at one instant, which is faster than all.
    at_once = len(measured) > 1 and span == 0
    for name, sustainable in found.items():
        if sustainable == min(found.values()) and limiting == "none" and len(measured) > 1:
            rate = None if at_once else Fraction((len(measured) - 1) * SECOND, span)
            limiting = name if rate is None or rate * 100 >= 95 * sustainable else "none"
    left = max(0, aggregator_busy - span, *(r.finish_ns - last for r in finished))
    return {
        "bottleneck": limiting,
        "sustainable_tps": as_float(min(found.values(), default=None)),
        "sustainable_tps_sources": as_float(found.get("sources")),
        "sustainable_tps_workers": as_float(found.get("workers")),
        "sustainable_tps_aggregators": as_float(found.get("aggregators")),
        "sustainable_tps_control": None,
        "backlog_end_ms": as_float(left, MILLISECOND),
        "max_rate_tps": None,
        **{f"latency_tree_{name}_ms": None for name in ("mean", "p50", "p95", "p99", "max")},
        "trees": None,
    }


def time_metrics(run: Run, measured: list[Record], queues_known: bool | None) -> dict[str, Any]:
    finished = finished_of(measured)
    makespan = makespan_of(measured)
    use = [share for share in use_of(run, measured) if share is not None]
    worst = max((mean(latencies_of(own)) for own in grouped(finished, lambda r: r.worker).values()), default=None)
    busiest = max(busy_of(measured, len(run.lives)))
    return {
        "makespan_s": as_float(makespan, SECOND),
        "makespan_vs_lower_bound": as_float(ratio(makespan, lower_bound(run, measured))),
        "throughput_tps": as_float(ratio(len(finished) * SECOND, makespan)),
        "throughput_limit_tps": as_float(ratio(len(finished) * SECOND, busiest)),
        **latency_metrics(latencies_of(measured)),
        "service_ms_mean": as_float(ratio(sum(busy_of(measured, len(run.lives))), len(finished)), MILLISECOND),
        "latency_worst_worker_mean_ms": as_float(worst, MILLISECOND),
        "backlog_max_ms": as_float(longest_wait(measured, run), MILLISECOND),
        "queue_max": longest_queue(run, measured, queues_known),
        "utilization_mean": as_float(mean_of_known(use)),
        "utilization_max": as_float(max(use, default=None)),
        "offered_load": run.offered_load,
        "dropped": sum(r.status == "dropped" for r in measured),
        "redelivered": sum(r.redelivered for r in measured),
        "lost": sum(r.status == "lost" for r in measured),
    }


def source_metrics(run: Run, measured: list[Record]) -> dict[str, Any]:
    """How busy the busiest source is within the makespan, and how long tuples are at their source unserved."""
    combined = {"combined": None if run.options.combine is None else sum(r.bears for r in measured)}
    if run.servers is None:
        return {**dict.fromkeys(SOURCE_METRICS), **combined}
    busy = source_work(run, measured)
    waits = [run.servers.waits[r.seq] for r in measured]
    return {
        "source_utilization_max": as_float(ratio(max(busy.values()), makespan_of(measured))),
        "source_wait_ms_mean": as_float(mean(waits), MILLISECOND),
        "source_wait_ms_p99": as_float(nearest_rank(waits, Fraction(99, 100)), MILLISECOND),
        **combined,
    }


def remapped_replicas(run: Run, baseline: Run | None, warmup: Span | None) -> int | None:
    """Replicas on workers that would not hold the key if no worker had come or gone."""
    if baseline is None:
        return None
    return len(replicas_of(measured_of(run, warmup)) - replicas_of(measured_of(baseline, warmup)))


def summary(
    run: Run,
    window: Span = ("share", Fraction(1, 100)),
    warmup: Span | None = None,
    aggregate_every: Span | None = None,
    queues_known: bool | None = None,
    baseline: Run | None = None,
    heads: Heads | None = None,
) -> dict[str, Any]:
    """One row. queues_known: the replay knows queues other than by constant cost (None: if they have a capacity).

    heads: what is to be known of a grouping that finds hot keys; None: it does not.
    """
    measured = measured_of(run, warmup)
    return {
        **load_metrics(run, measured, windows_of(measured, window)),
        "bound_imbalance": as_float(bound_imbalance(run, measured, heads)),
        **state_metrics(run, measured, aggregate_every, heads),
        **held_metrics(run, measured),
        **detector_metrics(run, measured, window),
        **time_metrics(run, measured, queues_known),
        **stage_metrics(run, measured),
        **(dict.fromkeys(DETECTOR_METRICS) if heads is None else hot_metrics(run, measured, window, heads)),
        "remapped_replicas": remapped_replicas(run, baseline, warmup),
        **source_metrics(run, measured),
        **dict.fromkeys(AGGREGATOR_METRICS),
    }


def metrics(
    run: Run, window: Span = ("share", Fraction(1, 100)), warmup: Span | None = None, **more: Any
) -> dict[str, Any]:
    """The summary and the tables of a run: `summary` a dict, the others lists of rows; `more` as in `summary`."""
    top_keys, heads = more.pop("top_keys", 20), more.get("heads")
    measured = measured_of(run, warmup)
    return {
        "summary": summary(run, window, warmup, **more),
        "windows": tables.window_rows(run, measured, window, heads),
        "workers": tables.worker_rows(run, measured, heads),
        "loads": tables.load_rows(run, measured, window),
        "keys": tables.key_rows(run, measured, top_keys, heads),
    }
