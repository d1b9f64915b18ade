"""Backlogs as a source infers them (000, Algorithm 3): what it sent, less what must have been served by now."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.fish.candidate_workers import place_of, row_of
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = [
    "Backlogs",
    "drain",
    "drain_at_speeds",
    "make_backlogs",
    "send",
    "send_at_speeds",
    "take_mean",
    "take_time",
    "take_times",
]


class Backlogs(NamedTuple):
    """`left` (C in 000) float64[rows, N], tuples that a worker seems to have left, and `since` int64[rows] (t_pri).

    A row for each source, or one for all: the row of a source is `source * apart`. `time_per_tuple` (P) float64[N] is
    what a tuple takes a worker in ns, 1.0 as long as it is unknown (`known` int64[1] is 0), and `cost` float64[rows, N]
    is `left * time_per_tuple`. `floor` float64[rows]: no worker's cost is below it. `live` int64[n]. The backlog is
    mended when more than `interval` ns have passed, by the share 1/`share` of what a worker serves in that time.

    `is_literal` is for Algorithm 3 to the letter: what was sent since the last time, `fresh` (N) float64[rows, N], is
    added once more, and what a worker serves in `interval` is taken off, whatever time has passed. Otherwise `fresh`
    has no workers.
    """

    left: NDArray[np.float64]
    cost: NDArray[np.float64]
    time_per_tuple: NDArray[np.float64]
    floor: NDArray[np.float64]
    since: NDArray[np.int64]
    known: NDArray[np.int64]
    live: NDArray[np.int64]
    apart: int
    interval: int
    share: float
    fresh: NDArray[np.float64]
    is_literal: bool


def make_backlogs(
    rows: int, live: NDArray[np.int64], interval: int, share: float, is_literal: bool = False
) -> Backlogs:
    """Start with nothing sent and nothing known."""
    workers = int(live[-1]) + 1
    return Backlogs(
        left=np.zeros((rows, workers)),
        cost=np.zeros((rows, workers)),
        time_per_tuple=np.ones(workers),
        floor=np.full(rows, -1.0),
        since=np.zeros(rows, dtype=np.int64),
        known=np.zeros(1, dtype=np.int64),
        live=live.astype(np.int64),
        apart=int(rows > 1),
        interval=interval,
        share=share,
        fresh=np.zeros((rows, workers if is_literal else 0)),
        is_literal=is_literal,
    )


@njit(forceinline=True)
def _take(backlogs: Any, worker: Any, time: Any) -> None:
    backlogs.time_per_tuple[worker] = time
    for row in range(backlogs.cost.shape[0]):
        cost = backlogs.left[row, worker] * time
        backlogs.cost[row, worker] = cost
        backlogs.floor[row] = min(backlogs.floor[row], cost)


@njit
def take_mean(backlogs: Any, reported: Any) -> None:
    """Count workers that reported no time (`reported` float64[N], ns, negative) as the mean of the others.

    The sum is taken in the order of ids, since its last bit hangs on the order. Everything is written anew, without
    branches: that is faster than picking those without a report.
    """
    total = 0.0
    for worker in backlogs.live:
        total += reported[worker] if reported[worker] >= 0.0 else 0.0
    mean = total / backlogs.known[0] if backlogs.known[0] > 0 else 1.0
    for worker in backlogs.live:
        backlogs.time_per_tuple[worker] = reported[worker] if reported[worker] >= 0.0 else mean
    time, left, cost = backlogs.time_per_tuple, backlogs.left, backlogs.cost
    for row in range(cost.shape[0]):
        for worker in range(cost.shape[1]):
            cost[row, worker] = left[row, worker] * time[worker]
        backlogs.floor[row] = -1.0


@njit
def take_time(backlogs: Any, reported: Any, worker: Any, time: Any) -> Any:
    """Take the report of one worker and note it in `reported`; return whether it is live.

    The mean of the others is not taken anew: `take_mean` does that while there are any (`known` < n).
    """
    place = np.searchsorted(backlogs.live, worker)
    lives = place < backlogs.live.shape[0] and backlogs.live[place] == worker
    if lives:
        backlogs.known[0] += 1 if reported[worker] < 0.0 else 0
        _take(backlogs, worker, time)
    reported[worker] = time
    return lives


@njit
def take_times(backlogs: Any, reported: Any) -> None:
    """Take the reports of all workers on a tuple's time (`reported` float64[N], ns, negative: nothing)."""
    count = 0
    for worker in backlogs.live:
        if reported[worker] >= 0.0:
            _take(backlogs, worker, reported[worker])
            count += 1
    backlogs.known[0] = count
    if count < backlogs.live.shape[0]:
        take_mean(backlogs, reported)


@njit(forceinline=True)
def _drained(left: Any, passed: Any, time: Any, share: Any) -> Any:
    """What is left after `passed` ns at `time` ns a tuple; one that takes no time has nothing left."""
    pace = time * share
    return max(0.0, left - passed / pace) if pace > 0.0 else 0.0


@njit(forceinline=True)
def _passed(backlogs: Any, row: Any, now: Any) -> Any:
    return np.float64(backlogs.interval if backlogs.is_literal else now - backlogs.since[row])


@njit(forceinline=True)
def _to_drain(backlogs: Any, row: Any, worker: Any) -> Any:
    """Return what a worker had left, with what is fresh once more if that counts; it is no longer fresh."""
    left = backlogs.left[row, worker]
    if backlogs.is_literal:
        left += backlogs.fresh[row, worker]
        backlogs.fresh[row, worker] = 0.0
    return left


@njit
def _drain_row(backlogs: Any, row: Any, now: Any) -> None:
    passed = _passed(backlogs, row, now)
    for worker in backlogs.live:
        time = backlogs.time_per_tuple[worker]
        left = _drained(_to_drain(backlogs, row, worker), passed, time, backlogs.share)
        backlogs.left[row, worker] = left
        backlogs.cost[row, worker] = left * time
    backlogs.since[row] = now
    backlogs.floor[row] = -1.0


@njit(forceinline=True)
def drain(backlogs: Any, source: Any, now: Any) -> None:
    """Take off what workers have served since the last time, if that is long enough ago and any time is known."""
    row = source * backlogs.apart
    if now - backlogs.since[row] > backlogs.interval and backlogs.known[0] > 0:
        _drain_row(backlogs, row, now)


@njit(forceinline=True)
def _cost(cost: Any, lists: Any, row: Any, listed: Any, place: Any) -> Any:
    return cost[row, np.uint64(lists[listed, np.uint64(place)])]


@njit(forceinline=True)
def _cheapest(lists: Any, listed: Any, d: Any, cost: Any, row: Any, floor: Any) -> Any:
    """Return the first of the d workers of a list with the smallest cost; a cost of `floor` ends the search."""
    at, of = np.uint64(row), np.uint64(listed)
    least: Any = np.inf
    found: Any = 0
    whole = d & ~7
    begin: Any = 0
    while begin < whole:
        one = min(_cost(cost, lists, at, of, begin), _cost(cost, lists, at, of, begin + 1))
        two = min(_cost(cost, lists, at, of, begin + 2), _cost(cost, lists, at, of, begin + 3))
        three = min(_cost(cost, lists, at, of, begin + 4), _cost(cost, lists, at, of, begin + 5))
        four = min(_cost(cost, lists, at, of, begin + 6), _cost(cost, lists, at, of, begin + 7))
        one, three = min(one, two), min(three, four)
        low = min(one, three)
        # Of equal ones the first stays.
        found = begin if low < least else found
        least = min(low, least)
        begin += 8
        if least <= floor:
            break
    while begin < d and least > floor:
        value = _cost(cost, lists, at, of, begin)
        found = begin if value < least else found
        least = min(value, least)
        begin += 1
    if found < whole:
        # The first of its eight, without a branch that no processor could predict.
        first = found + 7
        for place in range(found + 6, found - 1, -1):
            first = place if _cost(cost, lists, at, of, place) == least else first
        found = first
    return np.int64(lists[of, np.uint64(found)])


@njit(forceinline=True)
def send(backlogs: Any, shortlists: Any, source: Any, key: Any, d: Any) -> Any:
    """Send a tuple to the cheapest of a key's d workers, of equal ones to the nearest.

    d = 0 stands for the two of a cold key.
    """
    cost = backlogs.cost
    row = np.int64(source * backlogs.apart)
    at = np.uint64(row)
    workers = shortlists.live.shape[0]
    if d > 2:
        width = min(d, workers)
        listed = row_of(shortlists, place_of(shortlists, key), width)
        worker = _cheapest(shortlists.lists, listed, width, cost, row, backlogs.floor[at])
        if d >= workers:
            backlogs.floor[at] = cost[at, np.uint64(worker)]
    else:
        place = np.uint64(place_of(shortlists, key))
        first, second = np.int64(shortlists.nearest[place, 0]), np.int64(shortlists.nearest[place, 1])
        # Without a branch: which one wins is a coin.
        worker = first + np.int64(cost[at, np.uint64(second)] < cost[at, np.uint64(first)]) * (second - first)
    left = backlogs.left[at, np.uint64(worker)] + 1.0
    backlogs.left[at, np.uint64(worker)] = left
    cost[at, np.uint64(worker)] = left * backlogs.time_per_tuple[np.uint64(worker)]
    if backlogs.is_literal:
        backlogs.fresh[at, np.uint64(worker)] += 1.0
    return worker


@njit
def drain_at_speeds(backlogs: Any, source: Any, now: Any, mean: Any, slowdown: Any) -> None:
    """Do as `drain`, where a worker's time is `mean` (ns) times its `slowdown` (float64[N])."""
    row = source * backlogs.apart
    if now - backlogs.since[row] > backlogs.interval:
        passed = _passed(backlogs, row, now)
        for worker in backlogs.live:
            left = _to_drain(backlogs, row, worker)
            backlogs.left[row, worker] = _drained(left, passed, mean * slowdown[worker], backlogs.share)
        backlogs.since[row] = now


@njit
def send_at_speeds(backlogs: Any, shortlists: Any, source: Any, key: Any, d: Any, mean: Any, slowdown: Any) -> Any:
    """Do as `send`, where a worker's time is `mean` (ns) times its `slowdown` (float64[N])."""
    row = source * backlogs.apart
    d = min(max(d, 2), shortlists.live.shape[0])
    listed = row_of(shortlists, place_of(shortlists, key), d)
    worker = np.int64(shortlists.lists[listed, 0])
    least = backlogs.left[row, worker] * (mean * slowdown[worker])
    for j in range(1, d):
        other = np.int64(shortlists.lists[listed, j])
        value = backlogs.left[row, other] * (mean * slowdown[other])
        if value < least:
            worker, least = other, value
    backlogs.left[row, worker] += 1.0
    if backlogs.is_literal:
        backlogs.fresh[row, worker] += 1.0
    return worker
