"""An Outcome made in plain Python from the naive twin's records: what a replay of the same run has to find."""

import bisect
from collections.abc import Iterable
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from streamgroup.kernels.latency_histogram import BUCKETS, lower_bounds
from streamgroup.replay.accounting.outcome import HotKeys, Outcome, TopKey, WindowTable, WorkerTable
from tests.naive.metrics.hot_keys import (
    Heads,
    choices_of_keys,
    hot_of,
    keys_of_head,
    treated_by_window,
    true_by_window,
    waits,
)
from tests.naive.metrics.metrics import Span, busy_of, latencies_of, loads_of, pairs_of, wait_ahead, windows_of
from tests.naive.replay.simulate import Run

__all__ = ["outcome_of"]

BOUNDS = lower_bounds().tolist()


def bucket(ns: int) -> int:
    return bisect.bisect_right(BOUNDS, ns) - 1


def ints(values: Iterable[int]) -> Any:
    return np.array(list(values), dtype=np.int64)


def histogram(latencies: list[int]) -> list[int]:
    counts = [0] * BUCKETS
    for ns in latencies:
        counts[bucket(ns)] += 1
    return counts


def approximate_rank(latencies: list[int], quantile: Fraction) -> float:
    """The middle of the bucket that holds the value of that rank."""
    exact = sorted(latencies)[ceil(quantile * len(latencies)) - 1]
    low = BOUNDS[bucket(exact)]
    high = BOUNDS[bucket(exact) + 1] - 1
    return (low + high) / 2


def window_table(run: Run, window: Span) -> WindowTable:
    records, workers = run.records, run.options.workers
    windows = windows_of(records, window)
    contents = list(windows.values())
    starts, finished = [content[0].arrival_ns for content in contents], None
    if window[0] == "time":
        starts = [records[0].arrival_ns + number * window[1] for number in windows]
        ends = [start + window[1] for start in starts]
        finished = ints(
            sum(start <= r.finish_ns < end for r in records) for start, end in zip(starts, ends, strict=True)
        )
    quantiles = [Fraction(percent, 100) for percent in (5, 25, 50, 75, 95, 99)]
    latencies = [latencies_of(content) for content in contents]
    return WindowTable(
        number=ints(windows),
        start_ns=ints(starts),
        tuples=np.array([loads_of(content, workers) for content in contents], dtype=np.int64),
        busy_ns=np.array([busy_of(content, workers) for content in contents], dtype=np.int64),
        latency_min_ns=ints(min(found) for found in latencies),
        latency_max_ns=ints(max(found) for found in latencies),
        latency_sum_ns=[sum(found) for found in latencies],
        quantile_ns=np.array([[approximate_rank(found, q) for q in quantiles] for found in latencies]),
        pairs=ints(pairs_of(content) for content in contents),
        detector_entries=None,
        finished=finished,
    )


def hot_keys(run: Run, window: Span, heads: Heads) -> HotKeys:
    treated = treated_by_window(run, run.records, window)
    true = true_by_window(run, run.records, window, heads)
    found = waits(run, run.records, window, heads)
    return HotKeys(
        treated=ints(map(len, treated)),
        hot=ints(map(len, true)),
        both=ints(len(one & other) for one, other in zip(treated, true, strict=True)),
        detected=len(found),
        delay_tuples=sum(wait.tuples for wait in found),
        delay_ns=sum(wait.ns for wait in found),
    )


def worker_table(run: Run, heads: Heads | None) -> WorkerTable:
    workers = range(run.options.workers)
    own = [[r for r in run.records if r.worker == worker] for worker in workers]
    return WorkerTable(
        tuples=ints(map(len, own)),
        busy_ns=ints(busy_of(run.records, run.options.workers)),
        wait_max_ns=ints(max((wait_ahead(r, run) for r in records), default=0) for records in own),
        keys=ints(len({r.key for r in records}) for records in own),
        latency_sum_ns=[sum(latencies_of(records)) for records in own],
        histogram=np.array([histogram(latencies_of(records)) for records in own], dtype=np.int64),
        head_tuples=None if heads is None else ints(len(hot_of(run, records)) for records in own),
        true_head_tuples=ints(sum(r.key in keys_of_head(run, heads) for r in records) for records in own),
    )


def top_keys(run: Run, heads: Heads | None) -> list[TopKey]:
    records = run.records
    hot = None if heads is None else {r.key for r in hot_of(run, records)}
    keys = {r.key for r in records}
    found = [
        (sum(r.key == key for r in records), key, len({r.worker for r in records if r.key == key})) for key in keys
    ]
    found.sort(key=lambda entry: (-entry[0], entry[1] is not None, entry[1] or b""))
    return [
        TopKey(key_id, None if key is None else key.decode(), count, workers, None if hot is None else key in hot)
        for key_id, (count, key, workers) in enumerate(found)
    ]


def outcome_of(run: Run, window: Span, heads: Heads | None = None) -> Outcome:
    records, options = run.records, run.options
    latencies = latencies_of(records)
    top = top_keys(run, heads)
    by_text = {
        None if key is None else key.decode(): given for key, given in choices_of_keys(run, records, heads).items()
    }
    hot = [allowed for allowed in (choice.allowed for choice in run.choices) if allowed > 0]
    costs = [r.cost_ns for r in records]
    service = None
    if run.constant_cost:
        service = ints(round(costs[0] * factor) for factor in run.slowdown)
    return Outcome(
        grouping=type(run.grouping).__name__.lower(),
        parameters={},
        workers=options.workers,
        sources=options.sources,
        tuples=len(records),
        keys=len(top),
        count=ints(key.count for key in top),
        first_arrival_ns=records[0].arrival_ns,
        last_arrival_ns=max(r.arrival_ns for r in records),
        last_finish_ns=max(r.finish_ns for r in records),
        base_work_ns=sum(costs),
        longest_cost_ns=max(costs),
        slowdown=run.slowdown,
        service_ns=service,
        offered_load=None if run.offered_load is None else Fraction(run.offered_load),
        window=window_table(run, window),
        worker=worker_table(run, heads),
        latency_min_ns=min(latencies),
        latency_max_ns=max(latencies),
        top_keys=top[:20],
        choices_per_key=run.grouping.choices(None) if heads is None else None,
        key_choices=ints(by_text[key.key] for key in top) if by_text else None,
        hot_keys=None if heads is None else hot_keys(run, window, heads),
        hot_tuples=None if heads is None else len(hot),
        hot_choices_sum=None if heads is None else sum(hot),
        choices_max=None if heads is None else max(hot, default=0),
        source_state_entries=run.grouping.state_entries(),
        state_entry_bytes=8,
        control_messages=0,
        control_bytes=0,
        loop_seconds=0.0,
        total_seconds=0.0,
    )
