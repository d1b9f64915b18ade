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
    "BEGIN",
    "BUSY",
    "CHOICES_MAX",
    "COLUMNS",
    "DELAY",
    "DONE",
    "DRAIN",
    "END",
    "FULL_PAIRS",
    "FULL_PENDING",
    "HEAD",
    "HOT_CHOICES",
    "HOT_TUPLES",
    "LATENCY_HIGH",
    "LATENCY_LOW",
    "LAT_MAX",
    "LAT_MIN",
    "MAX_TIME_NS",
    "NEVER",
    "NO_WORKER",
    "PAIRS",
    "PLACE",
    "ROW",
    "SOURCES",
    "SOURCE_STATE",
    "TOO_LATE",
    "TUPLES",
    "WAIT_MAX",
    "Log",
    "Meters",
    "WindowRows",
    "run_chunk",
]

MAX_TIME_NS = 1 << 62

# Why the loop came back.
DONE, FULL_PAIRS, FULL_PENDING, TOO_LATE, NO_WORKER = range(5)

# Columns of a worker's row in `Meters.window` and `Meters.total`.
TUPLES, BUSY, LATENCY_LOW, LATENCY_HIGH, WAIT_MAX, PAIRS, HEAD = range(7)
COLUMNS = 8

NEVER = 1 << 62
# Sums of latencies are high x 2^62 + low with 0 <= low < 2^62, so they never overflow.
_CARRY = 1 << 62


class Meters(NamedTuple):
    """What is measured: running arrays, per window and in total.

    `window`, `total` int64[n, 8] (columns above; a sum of latencies is high x 2^62 + low); `free` int64[n], when each
    worker is done; `window_histogram` int64[BUCKETS]; `worker_histogram` int64[n, BUCKETS]; `state` int64[8] (places
    below): least and largest latency and new pairs of the window; the next source; of the run the hot tuples, the sum
    and maximum of their choices, and the largest state of a source.
    """

    window: NDArray[np.int64]
    total: NDArray[np.int64]
    free: NDArray[np.int64]
    window_histogram: NDArray[np.int64]
    worker_histogram: NDArray[np.int64]
    state: NDArray[np.int64]


# Places in `Meters.state`.
LAT_MIN, LAT_MAX, NEW_PAIRS, NEXT_SOURCE, HOT_TUPLES, HOT_CHOICES, CHOICES_MAX, SOURCE_STATE = range(8)


# Places in the `setup` of a call.
BEGIN, END, SOURCES, DELAY, PLACE, ROW, DRAIN = range(7)


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


@njit
def end_window(row: Any, meters: Any, pairs: Any, rows: Any, detector: Any, service: Any, costs: Any) -> None:
    """Write the row of the window that ended and start the next one."""
    window, total, state = meters.window, meters.total, meters.state
    tuples = np.int64(0)
    low = np.int64(0)
    high = np.int64(0)
    for worker in range(window.shape[0]):
        if costs is None:
            # Equal costs are not added up one by one.
            window[worker, BUSY] = window[worker, TUPLES] * service.service(worker, 0, 0, 0, 0)
        rows.tuples[row, worker] = window[worker, TUPLES]
        rows.busy[row, worker] = window[worker, BUSY]
        tuples += window[worker, TUPLES]
        low += window[worker, LATENCY_LOW]
        high += window[worker, LATENCY_HIGH]
        if low >= _CARRY:
            low -= _CARRY
            high += 1
        total[worker, TUPLES] += window[worker, TUPLES]
        total[worker, BUSY] += window[worker, BUSY]
        total[worker, LATENCY_LOW] += window[worker, LATENCY_LOW]
        total[worker, LATENCY_HIGH] += window[worker, LATENCY_HIGH]
        if total[worker, LATENCY_LOW] >= _CARRY:
            total[worker, LATENCY_LOW] -= _CARRY
            total[worker, LATENCY_HIGH] += 1
        if window[worker, WAIT_MAX] > total[worker, WAIT_MAX]:
            total[worker, WAIT_MAX] = window[worker, WAIT_MAX]
        total[worker, PAIRS] += window[worker, PAIRS]
        total[worker, HEAD] += window[worker, HEAD]
        for column in range(COLUMNS):
            window[worker, column] = 0
    longest = state[LAT_MAX]
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
    state[LAT_MIN] = NEVER
    state[LAT_MAX] = -1
    state[NEW_PAIRS] = 0


def run_chunk(
    grouping: Any,
    service: Any,
    meters: Any,
    pairs: Any,
    waiting: Any,
    setup: Any,
    chosen: Any,
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

    `setup` int64[7]: begin (moved on to where it stopped), end, sources, network delay, next window end, its row, and
    1 to let the tuples that are still being served finish. `chosen` int64[B] takes the choices of B tuples: the sources
    choose for B tuples before the workers serve them, which is faster and, without feedback (B = 1), the same.
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
    block = chosen.shape[0]
    workers = np.uint64(free.shape[0])
    while True:
        stop = setup[END]
        if place < ends.shape[0] and ends[place] <= stop:
            stop = ends[place]
        shortest = state[LAT_MIN]
        longest = state[LAT_MAX]
        new_pairs = state[NEW_PAIRS]
        why = DONE
        i = begin
        while i < stop:
            if pairs.is_full(block):
                why = FULL_PAIRS
                break
            if waiting is not None and unfinished.is_full(waiting):
                why = FULL_PENDING
                break
            upto = min(i + block, stop)
            for j in range(i, upto):
                now = arrivals[np.uint64(j)]
                key = np.int64(keys[np.uint64(j)])
                if source_of is not None:
                    source = np.int64(source_of[j])
                if cost_now is not None:
                    cost_now[0] = costs[j]
                if waiting is not None:
                    while unfinished.next_finish(waiting) <= now:
                        at = unfinished.next_finish(waiting)
                        grouping.tick(at - 1)
                        done, what, reached, start, finish = unfinished.pop(waiting)
                        grouping.executed(done, what, reached, start, finish)
                grouping.tick(now)
                worker = np.int64(grouping.choose(source, key, now))
                if np.uint64(worker) >= workers:
                    why = NO_WORKER
                    upto = j
                    break
                grouping.observe(source, key, worker, now)
                chosen[j - i] = worker
                if choices is not None:
                    allowed = choices[0]
                    if allowed > 0:
                        window[worker, HEAD] += 1
                        state[HOT_TUPLES] += 1
                        state[HOT_CHOICES] += allowed
                        state[CHOICES_MAX] = max(state[CHOICES_MAX], allowed)
                if state_entries is not None:
                    state[SOURCE_STATE] = max(state[SOURCE_STATE], state_entries[source])
                if log is not None:
                    log.source[j] = source
                if source_of is None:
                    source += 1
                    if source == sources:
                        source = 0
            if why != DONE:
                i = upto
                break
            for j in range(i, upto):
                now = arrivals[np.uint64(j)]
                w = np.uint64(chosen[j - i])
                reached = now + delay
                idle_at = free[w]
                start = max(idle_at, reached)
                window[w, WAIT_MAX] = max(window[w, WAIT_MAX], idle_at - reached)
                cost = np.int64(0)
                if costs is not None:
                    cost = costs[j]
                duration = service.service(w, key, cost, offset + j, start)
                finish = start + duration
                if finish > MAX_TIME_NS:
                    why = TOO_LATE
                    upto = j
                    break
                free[w] = finish
                latency = finish - now
                window[w, TUPLES] += 1
                if costs is not None:
                    window[w, BUSY] += duration
                low = window[w, LATENCY_LOW] + latency
                if low >= _CARRY:
                    low -= _CARRY
                    window[w, LATENCY_HIGH] += 1
                window[w, LATENCY_LOW] = low
                longest = max(longest, latency)
                shortest = min(shortest, latency)
                bucket = np.uint64(bucket_of(latency))
                window_histogram[bucket] += 1
                worker_histogram[w, bucket] += 1
                if waiting is not None:
                    unfinished.push(waiting, np.int64(w), np.int64(keys[j]), reached, start, finish)
                if log is not None:
                    log.worker[j] = w
                    log.start[j] = start
                    log.finish[j] = finish
            if why != DONE:
                i = upto
                break
            for j in range(i, upto):
                w = np.uint64(chosen[j - i])
                seen = pairs.touch(np.int64(keys[np.uint64(j)]), chosen[j - i])
                if seen != 0:
                    new_pairs += 1
                    window[w, PAIRS] += seen >> 1
            i = upto
        state[LAT_MIN] = shortest
        state[LAT_MAX] = longest
        state[NEW_PAIRS] = new_pairs
        begin = i
        if why != DONE:
            break
        if place < ends.shape[0] and ends[place] == stop:
            end_window(setup[ROW], meters, pairs, rows, detector, service, costs)
            setup[ROW] += 1
            place += 1
        elif stop == setup[END]:
            break
        if stop == setup[END] and place >= ends.shape[0]:
            break
    setup[BEGIN] = begin
    setup[PLACE] = place
    state[NEXT_SOURCE] = source
    if waiting is not None and setup[DRAIN] == 1:
        while unfinished.next_finish(waiting) < NEVER:
            grouping.tick(unfinished.next_finish(waiting) - 1)
            done, what, reached, start, finish = unfinished.pop(waiting)
            grouping.executed(done, what, reached, start, finish)
    return why
