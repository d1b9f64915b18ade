"""The per-tuple loop, written once, in plain Python that numba compiles; it knows no algorithm.

`run_chunk` is never called as it stands in a compiled run: `compile.py` makes a copy of it under a name of its own for
each grouping. Arguments that are None are compiled away. The interpreted loop gives the same results.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.kernels.latencies import bucket_of, rank_value
from streamgroup.replay import pending as unfinished

__all__ = [
    "BUSY",
    "DONE",
    "FULL_PAIRS",
    "FULL_PENDING",
    "LATENCY_HIGH",
    "LATENCY_LOW",
    "LATENCY_MAX",
    "MAX_TIME_NS",
    "PAIRS",
    "TOO_LATE",
    "TUPLES",
    "WAIT_MAX",
    "HEAD",
    "Chunk",
    "Log",
    "Meters",
    "Reports",
    "WindowRows",
    "run_chunk",
]

MAX_TIME_NS = 1 << 62

# Why the loop came back.
DONE, FULL_PAIRS, FULL_PENDING, TOO_LATE = 0, 1, 2, 3

# Columns of a worker's row in `Meters.window` and `Meters.total`.
TUPLES, BUSY, LATENCY_LOW, LATENCY_HIGH, LATENCY_MAX, WAIT_MAX, PAIRS, HEAD = range(8)
COLUMNS = 8

_NEVER = 1 << 62
_LOW_MASK = (1 << 32) - 1


class Chunk(NamedTuple):
    """The tuples of one call, all arrays read-only and of one length (or None).

    `arrival` int64 ns since the first arrival; `key` uint32; `cost` int64 ns or None (the same for all); `source`
    int32 or None (dealt in turn); `ends` int64: the places in this chunk where a window ends, ascending.
    """

    arrival: NDArray[np.int64]
    key: NDArray[np.uint32]
    cost: NDArray[np.int64] | None
    source: NDArray[np.int32] | None
    ends: NDArray[np.int64]


class Meters(NamedTuple):
    """What is measured: running arrays, per window and in total.

    `window`, `total` int64[n, 8] (columns above; latency sums are split at 2^32); `free` int64[n], when each worker
    is done; `window_histogram` int64[BUCKETS]; `worker_histogram` int64[n, BUCKETS]; `state` int64[8]: latency
    minimum of the window, pairs new in the window, next source, hot tuples, sum and maximum of their choices, largest
    state of a source, and a spare.
    """

    window: NDArray[np.int64]
    total: NDArray[np.int64]
    free: NDArray[np.int64]
    window_histogram: NDArray[np.int64]
    worker_histogram: NDArray[np.int64]
    state: NDArray[np.int64]


# Places in `Meters.state`.
LAT_MIN, NEW_PAIRS, NEXT_SOURCE, HOT_TUPLES, HOT_CHOICES, CHOICES_MAX, SOURCE_STATE = range(7)


# Places in the `setup` of a call.
BEGIN, END, SOURCES, DELAY, PLACE, ROW = range(6)


class WindowRows(NamedTuple):
    """One row for each window that ended in the chunk.

    `tuples`, `busy` int64[rows, n]; `latency` int64[rows, 4]: minimum, maximum, sum low, sum high; `quantile`
    float64[rows, 3]: p50, p95, p99 in ns; `pairs` int64[rows]; `detector` int64[rows].
    """

    tuples: NDArray[np.int64]
    busy: NDArray[np.int64]
    latency: NDArray[np.int64]
    quantile: NDArray[np.float64]
    pairs: NDArray[np.int64]
    detector: NDArray[np.int64]


class Log(NamedTuple):
    """The assignment log of a chunk: `source` int32, `worker` int32, `start` int64, `finish` int64."""

    source: NDArray[np.int32]
    worker: NDArray[np.int32]
    start: NDArray[np.int64]
    finish: NDArray[np.int64]


class Reports(NamedTuple):
    """What the grouping reports, the arrays that its state declares; None for those that it does not have."""

    choices: NDArray[np.int64] | None
    state_entries: NDArray[np.int64] | None
    detector_entries: NDArray[np.int64] | None
    cost: NDArray[np.int64] | None


@njit  # type: ignore[untyped-decorator]
def end_window(row: Any, meters: Any, pairs: Any, rows: Any, detector: Any) -> None:
    """Write the row of the window that ended and start the next one."""
    window, total, state = meters.window, meters.total, meters.state
    tuples = np.int64(0)
    low = np.int64(0)
    high = np.int64(0)
    longest = np.int64(-1)
    for worker in range(window.shape[0]):
        rows.tuples[row, worker] = window[worker, TUPLES]
        rows.busy[row, worker] = window[worker, BUSY]
        tuples += window[worker, TUPLES]
        low += window[worker, LATENCY_LOW] & _LOW_MASK
        high += window[worker, LATENCY_HIGH] + (window[worker, LATENCY_LOW] >> 32)
        if window[worker, LATENCY_MAX] > longest:
            longest = window[worker, LATENCY_MAX]
        total[worker, TUPLES] += window[worker, TUPLES]
        total[worker, BUSY] += window[worker, BUSY]
        total[worker, LATENCY_LOW] += window[worker, LATENCY_LOW] & _LOW_MASK
        total[worker, LATENCY_HIGH] += window[worker, LATENCY_HIGH] + (window[worker, LATENCY_LOW] >> 32) + (total[worker, LATENCY_LOW] >> 32)
        total[worker, LATENCY_LOW] &= _LOW_MASK
        for column in range(LATENCY_MAX, WAIT_MAX + 1):
            if window[worker, column] > total[worker, column]:
                total[worker, column] = window[worker, column]
        for column in range(PAIRS, HEAD + 1):
            total[worker, column] += window[worker, column]
        for column in range(COLUMNS):
            window[worker, column] = 0
    rows.latency[row, 0] = state[LAT_MIN]
    rows.latency[row, 1] = longest
    rows.latency[row, 2] = low
    rows.latency[row, 3] = high
    first = bucket_of(state[LAT_MIN])
    last = bucket_of(longest)
    histogram = meters.window_histogram
    rows.quantile[row, 0] = rank_value(histogram, first, (tuples + 1) // 2)
    rows.quantile[row, 1] = rank_value(histogram, first, (tuples * 95 + 99) // 100)
    rows.quantile[row, 2] = rank_value(histogram, first, (tuples * 99 + 99) // 100)
    for bucket in range(first, last + 1):
        histogram[bucket] = 0
    rows.pairs[row] = state[NEW_PAIRS]
    if detector is not None:
        rows.detector[row] = detector[0]
    pairs.forget_window()
    state[LAT_MIN] = _NEVER
    state[NEW_PAIRS] = 0


def run_chunk(
    grouping: Any,
    service: Any,
    meters: Any,
    pairs: Any,
    waiting: Any,
    setup: Any,
    arrivals: Any,
    keys: Any,
    costs: Any,
    source_of: Any,
    ends: Any,
    rows: Any,
    log: Any,
    choices: Any,
    state_entries: Any,
    detector: Any,
    cost_now: Any,
) -> Any:
    """Send tuples `setup[BEGIN]`..`setup[END] - 1` of the chunk through the grouping; return why it stopped.

    `setup` int64[6]: begin (moved on to where it stopped), end, sources, network delay, next window end and row.
    """
    begin = setup[BEGIN]
    sources = setup[SOURCES]
    delay = setup[DELAY]
    place = setup[PLACE]
    free = meters.free
    window = meters.window
    state = meters.state
    window_histogram = meters.window_histogram
    worker_histogram = meters.worker_histogram
    source = state[NEXT_SOURCE]
    while True:
        stop = setup[END]
        if place < ends.shape[0] and ends[place] <= stop:
            stop = ends[place]
        shortest = state[LAT_MIN]
        new_pairs = state[NEW_PAIRS]
        why = DONE
        i = begin
        while i < stop:
            if pairs.is_full():
                why = FULL_PAIRS
                break
            if waiting is not None and unfinished.is_full(waiting):
                why = FULL_PENDING
                break
            now = arrivals[i]
            key = np.int64(keys[i])
            if source_of is not None:
                source = np.int64(source_of[i])
            cost = np.int64(0)
            if costs is not None:
                cost = costs[i]
            if cost_now is not None:
                cost_now[0] = cost
            if waiting is not None:
                while unfinished.next_finish(waiting) <= now:
                    at = unfinished.next_finish(waiting)
                    grouping.tick(at - 1)
                    w, k, a, s, f = unfinished.pop(waiting)
                    grouping.executed(w, k, a, s, f)
            grouping.tick(now)
            worker = np.int64(grouping.choose(source, key, now))
            grouping.observe(source, key, worker, now)
            reached = now + delay
            start = free[worker]
            wait = start - reached
            if wait > window[worker, WAIT_MAX]:
                window[worker, WAIT_MAX] = wait
            if start < reached:
                start = reached
            duration = service.service(worker, cost)
            finish = start + duration
            if finish > _NEVER:
                why = TOO_LATE
                break
            free[worker] = finish
            latency = finish - now
            window[worker, TUPLES] += 1
            window[worker, BUSY] += duration
            window[worker, LATENCY_LOW] += latency & _LOW_MASK
            window[worker, LATENCY_HIGH] += latency >> 32
            if latency > window[worker, LATENCY_MAX]:
                window[worker, LATENCY_MAX] = latency
            if latency < shortest:
                shortest = latency
            bucket = bucket_of(latency)
            window_histogram[bucket] += 1
            worker_histogram[worker, bucket] += 1
            seen = pairs.touch(key, worker)
            new_pairs += seen & 1
            window[worker, PAIRS] += seen >> 1
            if choices is not None:
                allowed = choices[0]
                if allowed > 0:
                    window[worker, HEAD] += 1
                    state[HOT_TUPLES] += 1
                    state[HOT_CHOICES] += allowed
                    if allowed > state[CHOICES_MAX]:
                        state[CHOICES_MAX] = allowed
            if state_entries is not None:
                if state_entries[source] > state[SOURCE_STATE]:
                    state[SOURCE_STATE] = state_entries[source]
            if waiting is not None:
                unfinished.push(waiting, worker, key, reached, start, finish)
            if log is not None:
                log.source[i] = source
                log.worker[i] = worker
                log.start[i] = start
                log.finish[i] = finish
            if source_of is None:
                source += 1
                if source == sources:
                    source = 0
            i += 1
        state[LAT_MIN] = shortest
        state[NEW_PAIRS] = new_pairs
        begin = i
        if why != DONE:
            break
        if place < ends.shape[0] and ends[place] == stop:
            end_window(setup[ROW], meters, pairs, rows, detector)
            setup[ROW] += 1
            place += 1
        elif stop == setup[END]:
            break
        if stop == setup[END] and place >= ends.shape[0]:
            break
    setup[BEGIN] = begin
    setup[PLACE] = place
    state[NEXT_SOURCE] = source
    return why
