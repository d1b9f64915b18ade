"""The per-tuple loop, written once, in plain Python that numba compiles; it knows no algorithm.

`run_chunk` is never called as it stands in a compiled run: `compile.py` makes a copy of it under a name of its own for
each grouping. Arguments that are None are compiled away. The interpreted loop gives the same results.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay import heard as unfinished
from streamgroup.replay.measure import (
    BUSY,
    CHOICES_MAX,
    HEAD,
    HOT_CHOICES,
    HOT_TUPLES,
    LAST_FINISH,
    LAT_MAX,
    LAT_MIN,
    LOST_TUPLES,
    MAX_TIME_NS,
    NEW_PAIRS,
    NEXT_SOURCE,
    PAIRS,
    SERVED,
    SOURCE_STATE,
    TUPLES,
    WAIT_MAX,
    account,
    end_window,
)

__all__ = [
    "BEGIN",
    "DELAY",
    "DONE",
    "END",
    "FULL_HEARD",
    "FULL_PAIRS",
    "FULL_STATE",
    "NO_WORKER",
    "OFFSET",
    "PLACE",
    "ROW",
    "SETUP",
    "SOURCES",
    "TOO_LATE",
    "UNTIL",
    "Log",
    "run_chunk",
]

# Why the loop came back.
DONE, FULL_PAIRS, FULL_HEARD, FULL_STATE, TOO_LATE, NO_WORKER = range(6)

# Places in the `setup` of a call.
BEGIN, END, OFFSET, SOURCES, DELAY, PLACE, ROW, UNTIL = range(8)
SETUP = 8


class Log(NamedTuple):
    """The assignment log of a chunk: `source` int32, `worker` int32, `start` int64, `finish` int64."""

    source: NDArray[np.int32]
    worker: NDArray[np.int32]
    start: NDArray[np.int64]
    finish: NDArray[np.int64]


def run_chunk(
    grouping: Any,
    service: Any,
    meters: Any,
    pairs: Any,
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
    told: Any,
    state_entries: Any,
    detector: Any,
    cost_now: Any,
    speed_now: Any,
    alive: Any,
    dies: Any,
    equal: Any,
    waiting: Any,
    room: Any,
    heeds: Any,
) -> Any:
    """Send tuples `setup[BEGIN]`..`setup[END] - 1` of the chunk through the grouping; return why it stopped.

    `setup` int64[8]: begin (moved on to where it stopped), end, number of the chunk's first tuple, sources, network
    delay, next window end, its row, and until when to hear of finished tuples before the first one. `chosen` int64[B]
    takes the choices of B tuples: the sources choose for B tuples before the workers serve them, which is faster and,
    where the grouping neither sees the workers nor hears of them at any time, the same (else B = 1). `alive` uint8[n]
    says which workers may be chosen, None where all may; `dies` int64[n] when each worker crashes: what would finish
    later is lost (None: none does). `equal` is the service where all tuples cost the same on a worker, else None;
    `waiting` are the tuples that have not finished, None unless the grouping hears of them, `heeds` int64[1] until when
    it does not look at what it heard, None if it may at any time. `cost_now` and `speed_now` take what it sees of the
    tuple. `room` int64[1] is for how many more tuples its state has room, None if
    that never grows. `told` int32[chunk] takes how many workers a tuple treated as hot may go to, else 0.
    """
    begin = setup[BEGIN]
    offset = setup[OFFSET]
    sources = setup[SOURCES]
    delay = setup[DELAY]
    place = setup[PLACE]
    free = meters.free
    window = meters.window
    state = meters.state
    window_histogram = meters.window_histogram
    worker_histogram = meters.worker_histogram.reshape(-1)
    spots = meters.spots
    source = state[NEXT_SOURCE]
    block = chosen.shape[0]
    workers = np.uint64(free.shape[0])
    # A grouping may tell any number; more than there ever are would mean nothing.
    most = free.shape[0]
    if waiting is not None:
        unfinished.hear(waiting, heeds, grouping, setup[UNTIL])
    while True:
        stop = setup[END]
        if place < ends.shape[0] and ends[place] <= stop:
            stop = ends[place]
        shortest = state[LAT_MIN]
        longest = state[LAT_MAX]
        new_pairs = state[NEW_PAIRS]
        hot_tuples, hot_choices, choices_max = state[HOT_TUPLES], state[HOT_CHOICES], state[CHOICES_MAX]
        why = DONE
        i = begin
        while i < stop:
            if pairs.is_full(block):
                why = FULL_PAIRS
                break
            if room is not None and room[0] < block:
                why = FULL_STATE
                break
            upto = min(i + block, stop)
            for j in range(i, upto):
                now = arrivals[np.uint64(j)]
                key = np.int64(keys[np.uint64(j)])
                if source_of is not None:
                    source = np.int64(source_of[j])
                if waiting is not None:
                    if heeds is not None and j > i and heeds[0] <= now:
                        # First the workers serve those before it, so that all is known that finishes by now.
                        upto = j
                        break
                    full = j == i and unfinished.is_full(waiting, block)
                    if full or heeds is None or heeds[0] <= now:
                        unfinished.hear(waiting, heeds, grouping, now)
                    if full and unfinished.is_crowded(waiting, block):
                        why = FULL_HEARD
                        upto = j
                        break
                if cost_now is not None:
                    cost_now[0] = costs[j]
                if speed_now is not None:
                    service.look(key, offset + j, now, speed_now)
                grouping.tick(now)
                worker = np.int64(grouping.choose(source, key, now))
                if np.uint64(worker) >= workers or (alive is not None and alive[np.uint64(worker)] == 0):
                    why = NO_WORKER
                    upto = j
                    break
                grouping.observe(source, key, worker, now)
                chosen[j - i] = worker
                if choices is not None:
                    told[j] = max(0, min(choices[0], most))
                if state_entries is not None:
                    state[SOURCE_STATE] = max(state[SOURCE_STATE], state_entries[source])
                if log is not None:
                    log.source[j] = source
                if source_of is None:
                    source += 1
                    if source == sources:
                        source = 0
            if choices is not None:
                for j in range(i, upto):
                    allowed = np.int64(told[np.uint64(j)])
                    hot = np.int64(allowed > 0)
                    window[np.uint64(chosen[j - i]), HEAD] += hot
                    hot_tuples += hot
                    hot_choices += allowed
                    choices_max = max(choices_max, allowed)
            if why != DONE:
                i = upto
                break
            served = 0
            for j in range(i, upto):
                now = arrivals[np.uint64(j)]
                w = np.uint64(chosen[j - i])
                reached = now + delay
                idle_at = free[w]
                start = max(idle_at, reached)
                if costs is None:
                    duration = service.service(w, np.int64(keys[np.uint64(j)]), 0, offset + j, start)
                else:
                    duration = service.service(w, np.int64(keys[np.uint64(j)]), costs[j], offset + j, start)
                finish = start + duration
                if finish > MAX_TIME_NS:
                    why = TOO_LATE
                    upto = j
                    break
                free[w] = finish
                if dies is not None:
                    if finish > dies[w]:
                        window[w, TUPLES] += 1
                        state[LOST_TUPLES] += 1
                        if log is not None:
                            log.worker[j] = w
                            log.start[j] = -1
                            log.finish[j] = -1
                        continue
                    state[LAST_FINISH] = max(state[LAST_FINISH], finish)
                window[w, WAIT_MAX] = max(window[w, WAIT_MAX], idle_at - reached)
                latency = finish - now
                spots[np.uint64(served)] = account(window, window_histogram, w, latency)
                served += 1
                if equal is None:
                    window[w, BUSY] += duration
                    window[w, SERVED] += 1
                longest = max(longest, latency)
                shortest = min(shortest, latency)
                if waiting is not None:
                    unfinished.push(waiting, heeds, np.int64(w), np.int64(keys[np.uint64(j)]), reached, start, finish)
                if log is not None:
                    log.worker[j] = w
                    log.start[j] = start
                    log.finish[j] = finish
            # By themselves, so that the processor waits for many at once: they are spread over more than a cache.
            for one in range(served):
                worker_histogram[spots[np.uint64(one)]] += 1
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
        state[HOT_TUPLES], state[HOT_CHOICES], state[CHOICES_MAX] = hot_tuples, hot_choices, choices_max
        begin = i
        if why != DONE:
            break
        if place < ends.shape[0] and ends[place] == stop:
            if detector is not None:
                rows.detector[setup[ROW]] = detector[0]
            end_window(setup[ROW], meters, pairs, rows, equal)
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
