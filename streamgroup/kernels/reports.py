"""How long a tuple takes each worker, measured there and told to all sources in messages (000, section 4.2.1)."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.base.budget import MOST_CELLS, fits
from streamgroup.kernels.backlogs import take_times

__all__ = ["Reports", "finished", "make_reports", "pass_time", "with_workers"]

# A worker reports first after this many tuples, since a mean of few would say nothing.
_FIRST = 50
REPORT_BYTES = 16

# Columns of `tally`, of `queue`, and places in `wake`.
_COUNT, _SUM, _SPOKE = range(3)
_HEAD, _WAITING = range(2)
_NEXT, _TIMER = range(2)


class Reports(NamedTuple):
    """`tally` int64[N, 3]: tuples that a worker finished since its last report, their time in ns, whether it reported.

    On the way are `queue` int64[N, 2] (first, number), `due` int64[N, q] and `value` float64[N, q], in a circle;
    `told` float64[N] is what arrived last, -1.0 before. `wake` int64[2]: before the first there is nothing to do; the
    second is the next timer, every `interval` ns. `messages` and `octets` int64[1] are running totals.
    """

    tally: NDArray[np.int64]
    queue: NDArray[np.int64]
    due: NDArray[np.int64]
    value: NDArray[np.float64]
    told: NDArray[np.float64]
    wake: NDArray[np.int64]
    messages: NDArray[np.int64]
    octets: NDArray[np.int64]
    interval: int
    delay: int
    sources: int


def make_reports(workers: int, sources: int, interval: int, delay: int) -> Reports:
    """Start with workers that have nothing to tell. UsageError if too many reports would be on the way at a time."""
    # Made in the last `delay` ns: at most one for each timer, and the first.
    room = delay // interval + 3
    fits(
        2 * workers * room,
        MOST_CELLS,
        f"{room} reports on the way at a time from each of {workers} workers",
        "raise interval, or lower --control-delay",
    )
    return Reports(
        tally=np.zeros((workers, 3), dtype=np.int64),
        queue=np.zeros((workers, 2), dtype=np.int64),
        due=np.zeros((workers, room), dtype=np.int64),
        value=np.zeros((workers, room)),
        told=np.full(workers, -1.0),
        wake=np.full(2, interval, dtype=np.int64),
        messages=np.zeros(1, dtype=np.int64),
        octets=np.zeros(1, dtype=np.int64),
        interval=interval,
        delay=delay,
        sources=sources,
    )


def with_workers(reports: Reports, workers: int) -> Reports:
    """Make room for `workers` ids; the sources look at what they know anew at the next tick."""
    new = max(0, workers - len(reports.told))
    wake = reports.wake.copy()
    wake[_NEXT] = 0

    def longer(array: Any, fill: float = 0) -> Any:
        more = np.full((new, *array.shape[1:]), fill, dtype=array.dtype)
        return np.ascontiguousarray(np.concatenate([array, more]))

    return reports._replace(
        tally=longer(reports.tally),
        queue=longer(reports.queue),
        due=longer(reports.due),
        value=longer(reports.value),
        told=longer(reports.told, -1.0),
        wake=wake,
    )


@njit
def _report(reports: Any, worker: Any, now: Any) -> None:
    tally, queue = reports.tally, reports.queue
    place = (queue[worker, _HEAD] + queue[worker, _WAITING]) % reports.due.shape[1]
    reports.due[worker, place] = now + reports.delay
    reports.value[worker, place] = np.float64(tally[worker, _SUM]) / np.float64(tally[worker, _COUNT])
    queue[worker, _WAITING] += 1
    tally[worker, _COUNT] = 0
    tally[worker, _SUM] = 0
    tally[worker, _SPOKE] = 1
    reports.messages[0] += reports.sources
    reports.octets[0] += reports.sources * REPORT_BYTES
    reports.wake[_NEXT] = min(reports.wake[_NEXT], now + reports.delay)


@njit(forceinline=True)
def finished(reports: Any, worker: Any, took: Any, now: Any) -> None:
    """Note a tuple that a worker finished at `now` and that took it `took` ns; the 50th makes it report."""
    tally, row = reports.tally, np.uint64(worker)
    count = tally[row, _COUNT] + 1
    tally[row, _COUNT] = count
    tally[row, _SUM] += took
    if count == _FIRST and tally[row, _SPOKE] == 0:
        _report(reports, worker, now)


@njit
def _deliver(reports: Any, now: Any) -> Any:
    """Let what is due arrive; give when the next is due."""
    queue, room = reports.queue, reports.due.shape[1]
    following = np.int64(1) << 62
    for worker in range(queue.shape[0]):
        while queue[worker, _WAITING] > 0:
            place = queue[worker, _HEAD]
            if reports.due[worker, place] > now:
                following = min(following, reports.due[worker, place])
                break
            reports.told[worker] = reports.value[worker, place]
            queue[worker, _HEAD] = (place + 1) % room
            queue[worker, _WAITING] -= 1
    return following


@njit
def _wake_up(reports: Any, backlogs: Any, now: Any) -> None:
    wake, tally = reports.wake, reports.tally
    following = _deliver(reports, now)
    if wake[_TIMER] <= now:
        # Of several timers that were missed while nothing happened, the last one counts.
        instant = now - now % reports.interval
        wake[_TIMER] = instant + reports.interval
        for worker in range(tally.shape[0]):
            if tally[worker, _SPOKE] != 0 and tally[worker, _COUNT] > 0:
                _report(reports, worker, instant)
        following = _deliver(reports, now)
    wake[_NEXT] = min(wake[_TIMER], following)
    take_times(backlogs, reports.told)


@njit(forceinline=True)
def pass_time(reports: Any, backlogs: Any, now: Any) -> None:
    """Let timers and messages that are due by `now` happen."""
    if reports.wake[_NEXT] <= now:
        _wake_up(reports, backlogs, now)
