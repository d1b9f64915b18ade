"""What is measured of tuples, in the order of the stream: per worker, per window, over the run.

It is compiled once for all groupings, and for both kinds of simulation.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit, register_jitable
from streamgroup.kernels.latency_histogram import BUCKETS, bucket_of
from streamgroup.replay.accounting.window_rows import CARRY, end_window
from streamgroup.replay.simulation.optional_array_elements import get
from streamgroup.replay.simulation.serve import serve_block
from streamgroup.replay.tuple_arrays import DROPPED, LOST, NEVER, Span

__all__ = [
    "BLOCK",
    "LAG_CELLS",
    "Lag",
    "Meters",
    "Progress",
    "Serving",
    "WorkerSums",
    "account",
    "account_hot",
    "make_meters",
    "widen",
]

I64 = NDArray[np.int64]

# Tuples that are accounted together.
BLOCK = 256
# Cells of time in which lag is counted, and the length of the shortest as a power of two, in ns.
LAG_CELLS = 128
_LEAST_SHIFT = 10
_BUCKETS = np.uint64(BUCKETS)


class WorkerSums(NamedTuple):
    """Sums of the run by worker, int64[n] each but `parts` int64[2n]: tuples of the tail of the keys that were sent to
    each worker, then those of the head, of all of which a crash took `lost`.

    `busy` is its service time where that differs between tuples, `low` and `high` the sum of latencies (high x 2^62 +
    low), `keys` the keys that it got for the first time.
    """

    parts: I64
    lost: I64
    busy: I64
    low: I64
    high: I64
    keys: I64

    def by_part(self) -> I64:
        """Return the tuples of tail and head: int64[n, 2]."""
        return self.parts.reshape(-1, 2)


class Lag(NamedTuple):
    """What came to workers and what left them in equal cells of time, each 2^shift ns long, as many as hold the run.

    `sent` and `left` int64[LAG_CELLS n] count by cell and then by worker: tuples by their arrival, lost ones among
    them, and by their finish. `until` int64[LAG_CELLS n] is the last finish of the tuples that arrived up to the end
    of a cell in which any arrived, NEVER if one of them was lost. `shift` int64[1]. Tuples come in the order of their
    arrival: `sent` lacks those of the cell at hand, `cell` int64[1], which are what the sums have more than `before`
    int64[n], and `until` is `latest` int64[n] there. Deliveries that were made again are in neither.
    """

    sent: I64
    left: I64
    until: I64
    shift: I64
    cell: I64
    before: I64
    latest: I64


class Meters(NamedTuple):
    """What is measured: `sums` by worker, `lag` by worker and time; of the window at hand the least and the largest
    latency, int64[1] each.

    Of the run, int64[1] each: `pairs` of key and worker that are new in their window, `dropped` tuples, `last_finish`
    (-1: none). `heads` uint8 is as `detected_and_true_hot_keys.heads` gives it: which keys are hot in truth.
    `window_histogram` int64[BUCKETS] and `worker_histogram` int64[n BUCKETS] count latencies.

    `held` int64[5] is of what workers hold where state costs: the limit of entries, the most that a tuple found, of
    tuples that found more than the limit the number and the sum of entries, and that sum of all.

    `bucket` and `place` uint64[BLOCK] are scratch space: buckets of a block's tuples, and places of those served in
    `worker_histogram`; `unseen` int64[BLOCK] its tuples whose pair is new in the sums.
    """

    sums: WorkerSums
    lag: Lag
    latency_min: I64
    latency_max: I64
    pairs: I64
    dropped: I64
    last_finish: I64
    heads: NDArray[np.uint8]
    window_histogram: I64
    worker_histogram: I64
    place: NDArray[np.uint64]
    unseen: I64
    held: I64


class Serving(NamedTuple):
    """What serves tuples that are accounted at once: the workers, the chunk, and where starts and finishes go.

    With `by_block` 1 these columns are one of BLOCK tuples, and each block takes the place of the one before, so that
    they stay in the cache; with 0 they hold all tuples of the chunk.
    """

    workers: Any
    chunk: Any
    served: Any
    by_block: int


class Progress(NamedTuple):
    """How far accounting got: places `begin`..`end - 1` of the events are left, of which the first is tuple `offset`.

    `row` is the next window to end, `redelivery` the next delivery that was made again; `late` is 1 if the tuple at
    `begin` finishes past the end of the clock.
    """

    offset: int
    begin: int
    end: int
    row: int
    redelivery: int
    late: int


def make_meters(workers: int, heads: NDArray[np.uint8] | None = None) -> Meters:
    """Make meters of `workers` workers that have measured nothing; without `heads` no key is hot in truth."""

    def filled(size: int, value: int = 0) -> I64:
        return np.full(size, value, dtype=np.int64)

    return Meters(
        WorkerSums(filled(2 * workers), *(filled(workers) for _ in WorkerSums._fields[1:])),
        Lag(
            sent=filled(LAG_CELLS * workers),
            left=filled(LAG_CELLS * workers),
            until=filled(LAG_CELLS * workers),
            shift=filled(1, _LEAST_SHIFT),
            cell=filled(1),
            before=filled(workers),
            latest=filled(workers),
        ),
        latency_min=filled(1, NEVER),
        latency_max=filled(1, -1),
        pairs=filled(1),
        dropped=filled(1),
        last_finish=filled(1, -1),
        heads=np.zeros(1, dtype=np.uint8) if heads is None else heads,
        window_histogram=filled(BUCKETS),
        worker_histogram=filled(workers * BUCKETS),
        place=np.zeros(BLOCK, dtype=np.uint64),
        unseen=filled(BLOCK),
        held=filled(5),
    )


@njit(forceinline=True)
def _is_head(heads: Any, key: Any) -> Any:
    # Without a branch, and where ids go by frequency on a few bytes, which stay in the cache.
    last = heads.shape[0] - 1
    return heads[np.uint64(min(key, last))]


@njit(forceinline=True)
def _touch(meters: Any, pairs: Any, key: Any, worker: Any) -> None:
    new = pairs.touch(key, worker)
    if new != 0:
        meters.pairs[0] += 1
        meters.sums.keys[worker] += new >> 1


@njit
def widen(lag: Any, until: Any) -> None:
    """Join two cells at a time until all hold a moment."""
    workers = lag.sent.shape[0] // LAG_CELLS
    half = LAG_CELLS // 2
    while until >> lag.shift[0] >= LAG_CELLS:
        for cell in range(half):
            for worker in range(workers):
                to, first = cell * workers + worker, 2 * cell * workers + worker
                lag.sent[to] = lag.sent[first] + lag.sent[first + workers]
                lag.left[to] = lag.left[first] + lag.left[first + workers]
                lag.until[to] = max(lag.until[first], lag.until[first + workers])
        for place in range(half * workers, LAG_CELLS * workers):
            lag.sent[place] = 0
            lag.left[place] = 0
            lag.until[place] = 0
        lag.shift[0] += 1
        lag.cell[0] >>= 1


@njit
def _end_cell(lag: Any, parts: Any, cell: Any) -> None:
    """Count what was sent in the cell at hand, and go on to another."""
    workers = lag.before.shape[0]
    first = lag.cell[0] * workers
    for worker in range(workers):
        tuples = parts[2 * worker] + parts[2 * worker + 1]
        lag.sent[first + worker] += tuples - lag.before[worker]
        lag.before[worker] = tuples
        lag.until[first + worker] = lag.latest[worker]
    lag.cell[0] = cell


@njit
def _in_one_cell(arrival: Any, lag: Any, parts: Any, begin: Any, end: Any) -> Any:
    """Return the end of the tuples from `begin` on, before `end`, that arrive in one cell; it becomes that at hand."""
    if arrival[end - 1] >> lag.shift[0] >= LAG_CELLS:
        widen(lag, arrival[end - 1])
    shift = lag.shift[0]
    cell = arrival[begin] >> shift
    if cell != lag.cell[0]:
        _end_cell(lag, parts, cell)
    if arrival[end - 1] >> shift == cell:
        return end
    place = begin + 1
    while arrival[place] >> shift == cell:
        place += 1
    return place


@njit(forceinline=True)
def _add_busy(start: Any, at: Any, finish: Any, busy: Any, worker: Any) -> None:
    if start is not None:
        busy[worker] += finish - start[at]


@njit(forceinline=True)
def _add_held(held: Any, at: Any, sums: Any) -> None:
    if held is not None:
        entries = held[at]
        over = np.int64(entries > sums[0])
        sums[1] = max(sums[1], entries)
        sums[2] += over
        sums[3] += over * entries
        sums[4] += entries


@njit(forceinline=True)
def _account_latencies(events: Any, meters: Any, begin: Any, end: Any, base: Any) -> None:
    """Account the latencies and service times of a block of tuples."""
    sums = meters.sums
    least, largest, last = meters.latency_min[0], meters.latency_max[0], meters.last_finish[0]
    lag, shift = meters.lag, meters.lag.shift[0]
    workers = sums.lost.shape[0]
    served = 0
    for place in range(begin, end):
        i = np.uint64(place)
        at = np.uint64(place - base)
        worker, finish = np.uint64(events.worker[i]), events.finish[at]
        part = np.uint64(2) * worker + np.uint64(_is_head(meters.heads, np.int64(events.key[i])))
        if finish < 0:
            if finish == LOST:
                sums.parts[part] += 1
                sums.lost[worker] += 1
                lag.latest[worker] = NEVER
            else:
                meters.dropped[0] += 1
            continue
        latency = finish - events.arrival[i]
        if finish >> shift >= LAG_CELLS:
            widen(lag, finish)
            shift = lag.shift[0]
        lag.left[np.uint64((finish >> shift) * workers) + worker] += 1
        lag.latest[worker] = max(lag.latest[worker], finish)
        sums.parts[part] += 1
        low = sums.low[worker] + latency
        if low >= CARRY:
            low -= CARRY
            sums.high[worker] += 1
        sums.low[worker] = low
        _add_busy(events.start, at, finish, sums.busy, worker)
        _add_held(events.held, at, meters.held)
        least, largest, last = min(least, latency), max(largest, latency), max(last, finish)
        bucket = np.uint64(bucket_of(latency))
        meters.window_histogram[bucket] += 1
        meters.place[np.uint64(served)] = worker * _BUCKETS + bucket
        served += 1
    # By themselves, so that the processor waits for many at once: they are spread over more than a cache.
    for place in range(served):
        meters.worker_histogram[meters.place[np.uint64(place)]] += 1
    meters.latency_min[0], meters.latency_max[0], meters.last_finish[0] = least, largest, last


@njit(forceinline=True)
def _account_pairs(events: Any, meters: Any, pairs: Any, begin: Any, end: Any, base: Any) -> None:
    """Account which workers got which keys."""
    count: Any = 0
    for place in range(begin, end):
        i = np.uint64(place)
        meters.unseen[np.uint64(count)] = place
        count += 1 - np.int64(pairs.is_touched(np.int64(events.key[i]), np.int64(events.worker[i])))
    for unseen in range(count):
        i = np.uint64(meters.unseen[unseen])
        if events.finish[np.uint64(meters.unseen[unseen] - base)] != DROPPED:
            _touch(meters, pairs, np.int64(events.key[i]), np.int64(events.worker[i]))


@register_jitable(forceinline=True)
def _serve(serving: Any, events: Any, begin: Any, end: Any) -> Any:
    if serving is not None:
        base = begin * serving.by_block
        return serve_block(serving.workers, serving.chunk, events.worker, serving.served, Span(begin, end), base)
    return end


@register_jitable(forceinline=True)
def _base(serving: Any, begin: Any) -> Any:
    """Return the place of the tuple whose start and finish come first in their columns."""
    if serving is not None:
        return begin * serving.by_block
    return 0


def account(events: Any, serving: Any, meters: Any, pairs: Any, again: Any, rows: Any, progress: Any) -> Any:
    """Account events, none of them open, and end windows; return the progress, short of the end if pairs need room.

    With `serving` the workers serve each block of tuples first, so that it goes through the caches once; then it is
    also short of the end if a tuple finishes past the end of the clock, and says so by a `late` of 1.

    Events have a `start` where tuples differ in service time. `again` int64[k, 2] are deliveries that were lost and
    made again: number of the tuple and worker, in order of tuples.
    """
    offset, begin, end = progress.offset, progress.begin, progress.end
    row, redelivery = progress.row, progress.redelivery
    while True:
        stop = end
        if row < rows.ends.shape[0]:
            stop = min(stop, rows.ends[row] - offset)
        while begin < stop:
            upto = min(begin + BLOCK, stop)
            is_again = False
            if redelivery < again.shape[0]:
                # A tuple that was sent again is a block of its own: what it does to lag is not at its arrival.
                place = again[redelivery, 0] - offset
                is_again = place == begin
                upto = begin + 1 if is_again else min(upto, place)
            latest = meters.lag.latest[events.worker[begin]]
            upto = _in_one_cell(events.arrival, meters.lag, meters.sums.parts, begin, upto)
            if pairs.is_full(upto - begin + again.shape[0] - redelivery):
                return Progress(offset, begin, end, row, redelivery, 0)
            served = _serve(serving, events, begin, upto)
            if served < upto:
                return Progress(offset, served, end, row, redelivery, 1)
            while redelivery < again.shape[0] and again[redelivery, 0] < offset + upto:
                worker = again[redelivery, 1]
                key = np.int64(events.key[again[redelivery, 0] - offset])
                meters.sums.parts[2 * worker + np.int64(_is_head(meters.heads, key))] += 1
                meters.sums.lost[worker] += 1
                # Sent by the arrival of tuples: those sent again are moved later.
                meters.lag.before[worker] += 1
                _touch(meters, pairs, key, worker)
                redelivery += 1
            base = _base(serving, begin)
            _account_latencies(events, meters, begin, upto, base)
            if is_again:
                meters.lag.latest[events.worker[begin]] = latest
            _account_pairs(events, meters, pairs, begin, upto, base)
            begin = upto
        if row < rows.ends.shape[0] and rows.ends[row] - offset == stop:
            least, largest = meters.latency_min[0], meters.latency_max[0]
            end_window(row, rows, meters.sums, meters.window_histogram, least, largest, events.start is None)
            rows.pairs[row] = meters.pairs[0]
            meters.latency_min[0], meters.latency_max[0] = NEVER, -1
            pairs.forget_window()
            row += 1
        else:
            break
    return Progress(offset, begin, end, row, redelivery, 0)


def account_hot(worker: Any, hot: Any, finish: Any, tuples: Any, choices: Any) -> None:
    """Account tuples treated as hot: `tuples` int64[n] by worker; `choices` int64[2], the sum and the maximum of the
    workers allowed to them. Those that were dropped are left out; `finish` is None where none was.
    """
    total, most = choices[0], choices[1]
    for place in range(hot.shape[0]):
        i = np.uint64(place)
        allowed = np.int64(hot[i])
        if get(finish, i, 0) != DROPPED:
            # Without a branch on what no processor can predict.
            tuples[np.uint64(worker[i])] += np.int64(allowed > 0)
            total += allowed
            most = max(most, allowed)
    choices[0], choices[1] = total, most
