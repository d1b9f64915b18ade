"""The rows of a run's tables."""

from fractions import Fraction
from typing import Any

from tests.naive.metrics.hot_keys import Heads, hot_of, keys_of_head, treated_by_window
from tests.naive.metrics.metric_formulas import as_float, mean_of_known, nearest_rank, population_deviation
from tests.naive.metrics.what_is_counted import (
    busy_of,
    cumulative_imbalances,
    grouped,
    latencies_of,
    loads_of,
    longest_wait,
    pairs_of,
    use_of,
    window_imbalance,
    window_loads,
    windows_of,
)
from tests.naive.replay.options import Span
from tests.naive.replay.tuple_records import Record, Run

__all__ = ["key_rows", "lag_rows", "load_rows", "window_rows", "worker_rows"]

SECOND = 1_000_000_000
MILLISECOND = 1_000_000


def milliseconds(ns: Fraction | int | None) -> float | None:
    return as_float(ns, MILLISECOND)


def rank(latencies: list[int], quantile: Fraction) -> float | None:
    return milliseconds(nearest_rank(latencies, quantile)) if latencies else None


def window_rows(run: Run, measured: list[Record], window: Span, heads: Heads | None = None) -> list[dict[str, Any]]:
    workers = len(run.lives)
    origin = measured[0].arrival_ns
    windows = windows_of(measured, window)
    hot_keys: list[int | None] = [None] * len(windows)
    if heads is not None:
        hot_keys = [len(keys) for keys in treated_by_window(run, measured, window)]
    rows = []
    # The workers that there ever were, and are, before the window.
    before = [r for r in run.records if r.seq < measured[0].seq]
    ever, there = (before[-1].ever, len(before[-1].alive)) if before else (run.options.workers, run.options.workers)
    for (number, content), so_far, hot in zip(windows.items(), cumulative_imbalances(windows), hot_keys, strict=True):
        latencies = latencies_of(content)
        joined = content[-1].ever - ever
        start, finished = content[0].arrival_ns, None
        if window[0] == "time":
            start = origin + number * window[1]
            ends = [r.finish_ns for r in measured if r.finish_ns is not None]
            finished = sum(start <= end < start + window[1] for end in ends)
        rows.append(
            {
                "window": number,
                "start_s": as_float(start, SECOND),
                "tuples": sum(loads_of(content, workers)),
                "finished": finished,
                "imbalance": as_float(so_far),
                "window_imbalance": as_float(window_imbalance(content, workers)),
                "load_stddev": population_deviation(window_loads(content, workers)),
                "latency_min_ms": milliseconds(min(latencies, default=None)),
                "latency_mean_ms": milliseconds(mean_of_known(latencies)),
                "latency_p5_ms": rank(latencies, Fraction(5, 100)),
                "latency_p25_ms": rank(latencies, Fraction(25, 100)),
                "latency_p50_ms": rank(latencies, Fraction(50, 100)),
                "latency_p75_ms": rank(latencies, Fraction(75, 100)),
                "latency_p95_ms": rank(latencies, Fraction(95, 100)),
                "latency_p99_ms": rank(latencies, Fraction(99, 100)),
                "latency_max_ms": milliseconds(max(latencies, default=None)),
                "replicas": pairs_of(content),
                "hot_keys": hot,
                "detector_entries": None,
                "workers_joined": joined,
                "workers_left": there + joined - len(content[-1].alive),
            }
        )
        ever, there = content[-1].ever, len(content[-1].alive)
    return rows


def worker_rows(run: Run, measured: list[Record], heads: Heads | None = None) -> list[dict[str, Any]]:
    loads, busy = loads_of(measured, len(run.lives)), busy_of(measured, len(run.lives))
    hot = keys_of_head(run, heads)
    rows = []
    for worker, use in enumerate(use_of(run, measured)):
        own = [r for r in measured if r.worker == worker]
        latencies = latencies_of(own)
        head = None if heads is None else len(hot_of(run, own))
        true_head = sum(d.worker == worker for r in measured if r.key in hot for d in r.deliveries)
        rows.append(
            {
                "worker": worker,
                "tuples": loads[worker],
                "head_tuples": head,
                "tail_tuples": None if head is None else loads[worker] - head,
                "true_head_tuples": true_head,
                "true_tail_tuples": loads[worker] - true_head,
                "busy_s": as_float(busy[worker], SECOND),
                "utilization": as_float(use),
                "keys": len({r.key for r in measured for delivery in r.deliveries if delivery.worker == worker}),
                "latency_mean_ms": milliseconds(mean_of_known(latencies)),
                "latency_p99_ms": rank(latencies, Fraction(99, 100)),
                "backlog_max_ms": milliseconds(longest_wait(own, run)),
            }
        )
    return rows


def load_rows(run: Run, measured: list[Record], window: Span) -> list[dict[str, Any]]:
    workers = len(run.lives)
    rows = []
    for number, content in windows_of(measured, window).items():
        loads, busy = loads_of(content, workers), busy_of(content, workers)
        for worker in range(workers):
            row = {"window": number, "worker": worker, "tuples": loads[worker]}
            rows.append({**row, "busy_s": as_float(busy[worker], SECOND)})
    return rows


def lag_rows(run: Run, measured: list[Record]) -> list[dict[str, Any]]:
    """What each worker was sent and has not got rid of, at the ends of cells of time of the least power of two of ns,
    2^10 at least, of which 128 hold every arrival and finish."""
    kept = [r for r in measured if r.status != "dropped"]
    moments = [max(r.arrival_ns, r.finish_ns or 0) for r in kept]
    if not moments:
        return []
    width = 1 << 10
    while max(moments) // width >= 128:
        width *= 2
    stays: list[tuple[int, int, int]] = []
    for r in measured:
        sent = r.arrival_ns
        for place, delivery in enumerate(r.deliveries):
            left = r.finish_ns
            if place + 1 < len(r.deliveries) or r.status != "finished":
                left = run.lives[delivery.worker].ended_ns
            assert left is not None
            stays.append((delivery.worker, sent, left))
            sent = left
    rows = []
    for cell in range(max(moments) // width + 1):
        end = (cell + 1) * width
        for worker in range(len(run.lives)):
            come = [left for w, sent, left in stays if w == worker and sent < end]
            rows.append(
                {
                    "time_s": as_float(end, SECOND),
                    "worker": worker,
                    "backlog_tuples": sum(left >= end for left in come),
                    "backlog_s": as_float(max(0, max(come, default=0) - end), SECOND),
                }
            )
    return rows


def key_rows(run: Run, measured: list[Record], top_keys: int, heads: Heads | None = None) -> list[dict[str, Any]]:
    """The most frequent keys; ties by key bytes, the null key first."""
    by_key = grouped(measured, lambda r: r.key)
    order = sorted(by_key, key=lambda key: (-len(by_key[key]), key is not None, key or b""))
    return [
        {
            "key": key,
            "count": len(by_key[key]),
            "share": as_float(Fraction(len(by_key[key]), len(measured))),
            "hot": None if heads is None else bool(hot_of(run, by_key[key])),
            "workers": len({delivery.worker for r in by_key[key] for delivery in r.deliveries}),
        }
        for key in order[:top_keys]
    ]
