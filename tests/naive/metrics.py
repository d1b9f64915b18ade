"""Every metric and table that needs no hot-key detector, in integers and fractions; floats at the end."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from math import ceil, floor, sqrt
from typing import Any

from tests.naive.simulate import Record, Run

__all__ = [
    "imbalance",
    "metrics",
    "nearest_rank",
    "peak_to_mean",
    "population_deviation",
    "skew_score",
    "summary",
    "window_numbers",
]

SECOND = 1_000_000_000
MILLISECOND = 1_000_000

DETECTOR_METRICS = (
    "hot_keys_mean",
    "choices_max",
    "choices_mean",
    "hot_precision",
    "hot_recall",
    "hot_detection_delay_tuples",
    "hot_detection_delay_ms",
)

# a kind (share, count, time) and its size: a fraction, a number of tuples, ns
Span = tuple[str, Any]


def as_float(number: Fraction | int | None, unit: int = 1) -> float | None:
    return None if number is None else float(Fraction(number) / unit)


def mean(numbers: Sequence[Fraction | int]) -> Fraction:
    return Fraction(sum(numbers)) / len(numbers)


def ratio(a: Fraction | int, b: Fraction | int) -> Fraction | None:
    return Fraction(a) / Fraction(b) if b else None


def imbalance(loads: Sequence[int]) -> Fraction | None:
    """max_w L_w - mean_w L_w where L_w is the share of worker w; no share of nothing."""
    total = sum(loads)
    return None if total == 0 else (max(loads) - mean(loads)) / total


def peak_to_mean(loads: Sequence[int]) -> Fraction | None:
    return ratio(max(loads), mean(loads))


def population_deviation(numbers: Sequence[Fraction | int]) -> float:
    centre = mean(numbers)
    return sqrt(mean([(x - centre) ** 2 for x in numbers]))


def skew_score(loads: Sequence[int]) -> float:
    """Flink's: mean absolute deviation over mean, in percent, at most 100; 0 when nothing came."""
    centre = mean(loads)
    if centre == 0:
        return 0.0
    deviation = mean([abs(x - centre) for x in loads])
    return float(min(Fraction(100), 100 * deviation / centre))


def nearest_rank(numbers: Iterable[int], quantile: Fraction) -> int:
    ordered = sorted(numbers)
    return ordered[max(ceil(quantile * len(ordered)), 1) - 1]


def measured_records(records: list[Record], warmup: Span) -> list[Record]:
    """What is left after the warm-up."""
    kind, size = warmup
    if kind == "time":
        left = [r for r in records if r.arrival_ns >= size]
    else:
        skip = floor(Fraction(size) * len(records)) if kind == "share" else size
        left = records[skip:]
    if not left:
        raise ValueError("all tuples are warm-up")
    return left


def window_numbers(records: list[Record], window: Span) -> list[int]:
    """The window of each measured tuple; a number that no tuple has is an empty window."""
    kind, size = window
    if kind == "time":
        first = records[0].arrival_ns
        return [(r.arrival_ns - first) // size for r in records]
    length = Fraction(size) * len(records) if kind == "share" else Fraction(size)
    return [floor(i / length) for i in range(len(records))]


def grouped(records: list[Record], label: Callable[[Record], Hashable]) -> dict[Any, list[Record]]:
    groups: dict[Any, list[Record]] = {}
    for r in records:
        groups.setdefault(label(r), []).append(r)
    return groups


def loads_of(records: list[Record], workers: int) -> list[int]:
    counts = Counter(r.worker for r in records)
    return [counts[w] for w in range(workers)]


def busy_of(records: list[Record], workers: int) -> list[int]:
    busy = [0] * workers
    for r in records:
        busy[r.worker] += r.finish_ns - r.start_ns
    return busy


def pairs_of(records: list[Record]) -> int:
    return len({(r.worker, r.key) for r in records})


def latencies_of(records: list[Record]) -> list[int]:
    return [r.finish_ns - r.arrival_ns for r in records]


def wait_ahead(record: Record, run: Run) -> int:
    """How long the tuple waits for those before it, seen at its arrival at the worker."""
    return record.start_ns - (record.arrival_ns + run.options.network_delay_ns)


def longest_queue(run: Run, measured: list[Record]) -> int | None:
    """Waiting tuples right after a measured one came to its worker, itself included if it waits."""
    if not run.constant_cost:
        return None
    first = measured[0].seq
    waiting: list[list[int]] = [[] for _ in range(run.options.workers)]
    longest = 0
    for r in run.records:
        at = r.arrival_ns + run.options.network_delay_ns
        waiting[r.worker] = [start for start in [*waiting[r.worker], r.start_ns] if start > at]
        if r.seq >= first:
            longest = max(longest, len(waiting[r.worker]))
    return longest


def load_metrics(measured: list[Record], windows: dict[int, list[Record]], workers: int) -> dict[str, Any]:
    loads = loads_of(measured, workers)
    busy = busy_of(measured, workers)
    cumulative = []
    so_far: list[Record] = []
    for content in windows.values():
        so_far = so_far + content
        cumulative.append(imbalance(loads_of(so_far, workers)))
    own = [imbalance(loads_of(content, workers)) for content in windows.values()]
    spreads = [population_deviation(loads_of(content, workers)) for content in windows.values()]
    shares = [Fraction(100 * load, len(measured)) for load in loads]
    return {
        "imbalance": as_float(imbalance(loads)),
        "imbalance_mean": as_float(mean(cumulative)),
        "window_imbalance_mean": as_float(mean(own)),
        "window_imbalance_max": as_float(max(own)),
        "peak_to_mean": as_float(peak_to_mean(loads)),
        "load_stddev_percent": population_deviation(shares),
        "window_load_stddev_mean": sum(spreads) / len(spreads),
        "skew_score": skew_score(loads),
        "work_imbalance": as_float(imbalance(busy)),
        "work_peak_to_mean": as_float(peak_to_mean(busy)),
        "idle_workers": loads.count(0),
    }


def state_metrics(run: Run, measured: list[Record], aggregate_every: Span | None) -> dict[str, Any]:
    workers = run.options.workers
    counts = Counter(r.key for r in measured)
    replicas = pairs_of(measured)
    entries = [len({r.key for r in measured if r.worker == w}) for w in range(workers)]
    if aggregate_every is None:
        messages = replicas
    else:
        numbers = window_numbers(measured, aggregate_every)
        messages = len({(n, r.worker, r.key) for n, r in zip(numbers, measured, strict=True)})
    source_entries = run.grouping.state_entries() if hasattr(run.grouping, "state_entries") else None
    choices = getattr(run.grouping, "choices", lambda _: workers)
    return {
        "replicas": replicas,
        "replication_factor": as_float(Fraction(replicas, len(counts))),
        "state_entries_max": max(entries),
        "memory_estimate_pkg": sum(min(f, 2) for f in counts.values()),
        "memory_estimate_sg": sum(min(f, workers) for f in counts.values()),
        "memory_estimate": sum(min(f, choices(key)) for key, f in counts.items()),
        "source_state_entries": source_entries,
        "source_state_bytes": None if source_entries is None else 8 * source_entries,
        "aggregation_messages": messages,
        "control_messages": 0,
        "control_bytes": 0,
    }


def time_metrics(run: Run, measured: list[Record]) -> dict[str, Any]:
    latencies = latencies_of(measured)
    makespan = max(r.finish_ns for r in measured) - measured[0].arrival_ns
    busy = busy_of(measured, run.options.workers)
    work = sum(r.cost_ns for r in measured)
    bound = max(
        work / sum(1 / s for s in run.slowdown),
        max(r.cost_ns for r in measured) * min(run.slowdown),
    )
    use = [ratio(b, makespan) for b in busy] if makespan else None
    by_worker = grouped(measured, lambda r: r.worker).values()
    return {
        "makespan_s": as_float(makespan, SECOND),
        "makespan_vs_lower_bound": as_float(ratio(makespan, bound)),
        "throughput_tps": as_float(ratio(len(measured) * SECOND, makespan)),
        "throughput_limit_tps": as_float(ratio(len(measured) * SECOND, max(busy))),
        "latency_mean_ms": as_float(mean(latencies), MILLISECOND),
        "latency_p50_ms": as_float(nearest_rank(latencies, Fraction(1, 2)), MILLISECOND),
        "latency_p95_ms": as_float(nearest_rank(latencies, Fraction(95, 100)), MILLISECOND),
        "latency_p99_ms": as_float(nearest_rank(latencies, Fraction(99, 100)), MILLISECOND),
        "latency_p999_ms": as_float(nearest_rank(latencies, Fraction(999, 1000)), MILLISECOND),
        "latency_max_ms": as_float(max(latencies), MILLISECOND),
        "latency_worst_worker_mean_ms": as_float(max(mean(latencies_of(g)) for g in by_worker), MILLISECOND),
        "backlog_max_ms": as_float(max(wait_ahead(r, run) for r in measured), MILLISECOND),
        "queue_max": longest_queue(run, measured),
        "utilization_mean": None if use is None else as_float(mean(use)),
        "utilization_max": None if use is None else as_float(max(use)),
        "offered_load": run.offered_load,
        "dropped": 0,
        "redelivered": 0,
        "lost": 0,
    }


def window_rows(run: Run, measured: list[Record], window: Span) -> list[dict[str, Any]]:
    workers = run.options.workers
    origin = measured[0].arrival_ns
    rows = []
    so_far: list[Record] = []
    for number, content in windows_of(measured, window).items():
        so_far = so_far + content
        latencies = latencies_of(content)
        start, finished = content[0].arrival_ns, None
        if window[0] == "time":
            start = origin + number * window[1]
            finished = sum(start <= r.finish_ns < start + window[1] for r in measured)
        rows.append(
            {
                "window": number,
                "start_s": as_float(start, SECOND),
                "tuples": len(content),
                "finished": finished,
                "imbalance": as_float(imbalance(loads_of(so_far, workers))),
                "window_imbalance": as_float(imbalance(loads_of(content, workers))),
                "load_stddev": population_deviation(loads_of(content, workers)),
                "latency_min_ms": as_float(min(latencies), MILLISECOND),
                "latency_mean_ms": as_float(mean(latencies), MILLISECOND),
                "latency_p50_ms": as_float(nearest_rank(latencies, Fraction(1, 2)), MILLISECOND),
                "latency_p95_ms": as_float(nearest_rank(latencies, Fraction(95, 100)), MILLISECOND),
                "latency_p99_ms": as_float(nearest_rank(latencies, Fraction(99, 100)), MILLISECOND),
                "latency_max_ms": as_float(max(latencies), MILLISECOND),
                "replicas": pairs_of(content),
                "hot_keys": None,
                "detector_entries": None,
            }
        )
    return rows


def worker_rows(run: Run, measured: list[Record]) -> list[dict[str, Any]]:
    makespan = max(r.finish_ns for r in measured) - measured[0].arrival_ns
    rows = []
    for worker in range(run.options.workers):
        own = [r for r in measured if r.worker == worker]
        latencies = latencies_of(own)
        busy = sum(r.finish_ns - r.start_ns for r in own)
        p99 = nearest_rank(latencies, Fraction(99, 100)) if own else None
        rows.append(
            {
                "worker": worker,
                "tuples": len(own),
                "head_tuples": None,
                "tail_tuples": None,
                "busy_s": as_float(busy, SECOND),
                "utilization": as_float(ratio(busy, makespan)),
                "keys": len({r.key for r in own}),
                "latency_mean_ms": as_float(mean(latencies) if own else None, MILLISECOND),
                "latency_p99_ms": as_float(p99, MILLISECOND),
                "backlog_max_ms": as_float(max((wait_ahead(r, run) for r in own), default=None), MILLISECOND),
            }
        )
    return rows


def load_rows(run: Run, measured: list[Record], window: Span) -> list[dict[str, Any]]:
    workers = run.options.workers
    rows = []
    for number, content in windows_of(measured, window).items():
        loads, busy = loads_of(content, workers), busy_of(content, workers)
        for worker in range(workers):
            row = {"window": number, "worker": worker, "tuples": loads[worker]}
            rows.append({**row, "busy_s": as_float(busy[worker], SECOND)})
    return rows


def key_rows(measured: list[Record], top_keys: int) -> list[dict[str, Any]]:
    """The most frequent keys; ties by key bytes, the null key first."""
    by_key = grouped(measured, lambda r: r.key)
    order = sorted(by_key, key=lambda key: (-len(by_key[key]), key is not None, key or b""))
    return [
        {
            "key": key,
            "count": len(by_key[key]),
            "share": as_float(Fraction(len(by_key[key]), len(measured))),
            "hot": None,
            "workers": len({r.worker for r in by_key[key]}),
        }
        for key in order[:top_keys]
    ]


def windows_of(measured: list[Record], window: Span) -> dict[int, list[Record]]:
    """The non-empty windows, in order."""
    windows: dict[int, list[Record]] = {}
    for number, r in zip(window_numbers(measured, window), measured, strict=True):
        windows.setdefault(number, []).append(r)
    return windows


def summary(
    run: Run,
    window: Span = ("share", Fraction(1, 100)),
    warmup: Span = ("count", 0),
    aggregate_every: Span | None = None,
) -> dict[str, Any]:
    measured = measured_records(run.records, warmup)
    return {
        **load_metrics(measured, windows_of(measured, window), run.options.workers),
        **state_metrics(run, measured, aggregate_every),
        **time_metrics(run, measured),
        **dict.fromkeys(DETECTOR_METRICS),
        "remapped_replicas": None,
    }


def metrics(
    run: Run,
    window: Span = ("share", Fraction(1, 100)),
    warmup: Span = ("count", 0),
    aggregate_every: Span | None = None,
    top_keys: int = 20,
) -> dict[str, Any]:
    """The summary and the tables of a run: `summary` a dict, the others lists of rows."""
    measured = measured_records(run.records, warmup)
    return {
        "summary": summary(run, window, warmup, aggregate_every),
        "windows": window_rows(run, measured, window),
        "workers": worker_rows(run, measured),
        "loads": load_rows(run, measured, window),
        "keys": key_rows(measured, top_keys),
    }
