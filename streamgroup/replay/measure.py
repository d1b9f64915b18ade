"""What is measured of tuples that were sent, in the order of the stream: per worker, per window, over the run.

`account` counts one tuple; the fast loop calls it as it goes, and `measure` for the rows of the ordered loop.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.kernels.latencies import BUCKETS, bucket_of, rank_value

__all__ = [
    "BLOCK",
    "BUSY",
    "CHOICES_MAX",
    "COLUMNS",
    "DROPPED",
    "DROPPED_TUPLES",
    "HEAD",
    "HOT_CHOICES",
    "HOT_TUPLES",
    "LAST_FINISH",
    "LATENCY_HIGH",
    "LATENCY_LOW",
    "LAT_MAX",
    "LAT_MIN",
    "LOST",
    "LOST_TUPLES",
    "MAX_TIME_NS",
    "NEVER",
    "NEW_PAIRS",
    "NEXT_SOURCE",
    "OPEN",
    "PAIRS",
    "ROW_ARRIVAL",
    "ROW_COLUMNS",
    "ROW_FINISH",
    "ROW_START",
    "ROW_WHO",
    "SERVED",
    "SOURCE_STATE",
    "STATE",
    "TUPLES",
    "WAIT_MAX",
    "Meters",
    "WindowRows",
    "account",
    "end_window",
    "measure",
    "packed",
]

MAX_TIME_NS = 1 << 62
# Past every time, and with room for one more.
NEVER = (1 << 63) - 2

# Columns of a worker's row in `Meters.window` and `Meters.total`.
TUPLES, BUSY, LATENCY_LOW, LATENCY_HIGH, WAIT_MAX, PAIRS, HEAD, SERVED = range(8)
COLUMNS = 8

# Places in `Meters.state`.
(
    LAT_MIN, LAT_MAX, NEW_PAIRS, NEXT_SOURCE, HOT_TUPLES, HOT_CHOICES, CHOICES_MAX, SOURCE_STATE,
    LOST_TUPLES, DROPPED_TUPLES, LAST_FINISH,
) = range(11)  # fmt: skip
STATE = 11

# Columns of a tuple's row in the ordered loop: key, worker and source in one number (see `packed`), arrival, start and
# finish, or what else became of it.
ROW_WHO, ROW_ARRIVAL, ROW_START, ROW_FINISH = range(4)
ROW_COLUMNS = 4
OPEN, LOST, DROPPED = -1, -2, -3

# Sums of latencies are high x 2^62 + low with 0 <= low < 2^62, so they never overflow.
_CARRY = 1 << 62
# Tuples that are counted together.
BLOCK = 256
_BUCKETS = np.uint64(BUCKETS)


class Meters(NamedTuple):
    """What is measured: running arrays, per window and in total.

    `window`, `total` int64[n, 8] (columns above; a sum of latencies is high x 2^62 + low); `free` int64[n], when each
    worker is done; `window_histogram` int64[BUCKETS]; `worker_histogram` int64[n, BUCKETS]; `state` int64[11] (places
    above): least and largest latency and new pairs of the window; the next source; of the run the hot tuples, the sum
    and maximum of their choices, the largest state of a source, tuples lost and dropped, the last finish (-1: of none);
    `spots` uint64[BLOCK], the tuples of a block by their place in `worker_histogram`.
    """

    window: NDArray[np.int64]
    total: NDArray[np.int64]
    free: NDArray[np.int64]
    window_histogram: NDArray[np.int64]
    worker_histogram: NDArray[np.int64]
    state: NDArray[np.int64]
    spots: NDArray[np.uint64]


class WindowRows(NamedTuple):
    """One row for each window that ended.

    `tuples`, `busy` int64[rows, n]; `latency` int64[rows, 4]: minimum, maximum, sum low, sum high; `quantile`
    float64[rows, 3]: p50, p95, p99 in ns; `pairs`, `served`, `detector` int64[rows].
    """

    tuples: NDArray[np.int64]
    busy: NDArray[np.int64]
    latency: NDArray[np.int64]
    quantile: NDArray[np.float64]
    pairs: NDArray[np.int64]
    served: NDArray[np.int64]
    detector: NDArray[np.int64]


@njit(forceinline=True)
def packed(key: Any, worker: Any, source: Any) -> Any:
    """Pack a key (below 2^32), a worker and a source (below 2^16 each) into one number."""
    return key | (worker << 32) | (source << 48)


@njit(forceinline=True)
def account(window: Any, window_histogram: Any, w: Any, latency: Any) -> Any:
    """Count a tuple that worker `w` (unsigned) served, and its latency; return its place in all workers' histograms."""
    window[w, TUPLES] += 1
    low = window[w, LATENCY_LOW] + latency
    if low >= _CARRY:
        low -= _CARRY
        window[w, LATENCY_HIGH] += 1
    window[w, LATENCY_LOW] = low
    bucket = np.uint64(bucket_of(latency))
    window_histogram[bucket] += 1
    return w * _BUCKETS + bucket


@njit
def end_window(row: Any, meters: Any, pairs: Any, rows: Any, service: Any) -> None:
    """Write the row of the window that ended and start the next one.

    `service` is the one service time of each worker where busy time is tuples x service, else None; then the columns
    BUSY and SERVED were added up.
    """
    window, total, state = meters.window, meters.total, meters.state
    served = np.int64(0)
    low = np.int64(0)
    high = np.int64(0)
    for worker in range(window.shape[0]):
        if service is not None:
            # Equal costs are not added up one by one.
            window[worker, BUSY] = window[worker, TUPLES] * service.service(worker, 0, 0, 0, 0)
            window[worker, SERVED] = window[worker, TUPLES]
        rows.tuples[row, worker] = window[worker, TUPLES]
        rows.busy[row, worker] = window[worker, BUSY]
        served += window[worker, SERVED]
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
        total[worker, SERVED] += window[worker, SERVED]
        for column in range(COLUMNS):
            window[worker, column] = 0
    longest = state[LAT_MAX]
    rows.latency[row, 0] = state[LAT_MIN]
    rows.latency[row, 1] = longest
    rows.latency[row, 2] = low
    rows.latency[row, 3] = high
    rows.served[row] = served
    if served > 0:
        first = bucket_of(state[LAT_MIN])
        last = bucket_of(longest)
        histogram = meters.window_histogram
        rows.quantile[row, 0] = rank_value(histogram, first, (served + 1) // 2)
        rows.quantile[row, 1] = rank_value(histogram, first, (served * 95 + 99) // 100)
        rows.quantile[row, 2] = rank_value(histogram, first, (served * 99 + 99) // 100)
        for bucket in range(first, last + 1):
            histogram[bucket] = 0
    rows.pairs[row] = state[NEW_PAIRS]
    pairs.forget_window()
    state[LAT_MIN] = NEVER
    state[LAT_MAX] = -1
    state[NEW_PAIRS] = 0


@njit(forceinline=True)
def _touch(meters: Any, pairs: Any, key: Any, worker: Any) -> None:
    seen = pairs.touch(key, worker)
    if seen != 0:
        meters.state[NEW_PAIRS] += 1
        meters.window[worker, PAIRS] += seen >> 1


def measure(
    board: Any,
    hot: Any,
    entries: Any,
    begin: Any,
    end: Any,
    ends: Any,
    rows: Any,
    meters: Any,
    pairs: Any,
    again: Any,
    full_at: Any,
) -> Any:
    """Measure the tuples `begin`..`end - 1`, whose rows in `board` are not open; return where it stopped.

    `board` int64[4 capacity] holds the row of tuple i at i mod capacity (a power of two); rows are left open. `hot`
    int64[capacity] (the choices allowed to a hot tuple, else 0) and `entries` int64[capacity] (of the detector) are
    None without a detector. `ends` int64[windows] are the tuples before which windows end. `again` int64[k, 2] are
    deliveries that were lost and made again: tuple and worker, in order of tuples. It stops before `end` when the pairs
    need room; `full_at` int64[2] are the window and the delivery to go on with then.
    """
    window, state = meters.window, meters.state
    window_histogram, worker_histogram = meters.window_histogram, meters.worker_histogram.reshape(-1)
    mask = board.shape[0] // ROW_COLUMNS - 1
    shortest, longest = state[LAT_MIN], state[LAT_MAX]
    last_finish = state[LAST_FINISH]
    ended, repeated = full_at[0], full_at[1]
    i = begin
    while True:
        stop = end
        if ended < ends.shape[0]:
            stop = min(stop, ends[ended])
        while i < stop:
            upto = min(i + BLOCK, stop)
            more = upto - i + again.shape[0] - repeated
            if pairs.is_full(more):
                state[LAT_MIN], state[LAT_MAX], state[LAST_FINISH] = shortest, longest, last_finish
                full_at[0], full_at[1] = ended, repeated
                return i
            for j in range(i, upto):
                row = (j & mask) * ROW_COLUMNS
                finish = board[np.uint64(row + ROW_FINISH)]
                w = np.uint64((board[np.uint64(row + ROW_WHO)] >> 32) & 0xFFFF)
                if finish >= 0:
                    latency = finish - board[np.uint64(row + ROW_ARRIVAL)]
                    worker_histogram[account(window, window_histogram, w, latency)] += 1
                    window[w, SERVED] += 1
                    window[w, BUSY] += finish - board[np.uint64(row + ROW_START)]
                    last_finish = max(last_finish, finish)
                    shortest = min(shortest, latency)
                    longest = max(longest, latency)
                elif finish == LOST:
                    state[LOST_TUPLES] += 1
                    window[w, TUPLES] += 1
                else:
                    state[DROPPED_TUPLES] += 1
                    continue
                if hot is not None:
                    allowed = hot[j & mask]
                    if allowed > 0:
                        window[w, HEAD] += 1
                        state[HOT_TUPLES] += 1
                        state[HOT_CHOICES] += allowed
                        state[CHOICES_MAX] = max(state[CHOICES_MAX], allowed)
            for j in range(i, upto):
                row = (j & mask) * ROW_COLUMNS
                who = board[np.uint64(row + ROW_WHO)]
                while repeated < again.shape[0] and again[repeated, 0] == j:
                    window[again[repeated, 1], TUPLES] += 1
                    _touch(meters, pairs, who & 0xFFFFFFFF, again[repeated, 1])
                    repeated += 1
                if board[np.uint64(row + ROW_FINISH)] != DROPPED:
                    _touch(meters, pairs, who & 0xFFFFFFFF, (who >> 32) & 0xFFFF)
                board[np.uint64(row + ROW_FINISH)] = OPEN
            i = upto
        state[LAT_MIN], state[LAT_MAX], state[LAST_FINISH] = shortest, longest, last_finish
        if ended < ends.shape[0] and ends[ended] == stop:
            if entries is not None and stop > 0:
                rows.detector[ended] = entries[(stop - 1) & mask]
            end_window(ended, meters, pairs, rows, None)
            shortest, longest = state[LAT_MIN], state[LAT_MAX]
            ended += 1
        elif stop == end:
            break
        if stop == end and ended >= ends.shape[0]:
            break
    full_at[0], full_at[1] = ended, repeated
    return i
