"""How long a tuple takes each worker, measured there and reported to all sources in messages (000, section 4.2.1)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings.fish.backlogs import take_mean, take_time, take_times
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["Reports", "finished", "make_reports", "pass_time", "sent", "with_workers"]

# A worker reports first after this many tuples, since a mean of few would say nothing.
_FIRST = 50
REPORT_BYTES = 16
# Of `who`, `due` and `value`.
_BYTES_ON_THE_WAY = 18

# Columns of `tally`, and places in `queue` and in `wake`.
_COUNT, _SUM, _SPOKE = range(3)
_HEAD, _WAITING = range(2)
_NEXT, _TIMER, _ANEW, _AWAITED = range(4)
# In `next_read`: at any time.
_ALWAYS = -1


class Reports(NamedTuple):
    """`tally` int64[N, 3]: tuples that a worker finished since its last report, their time in ns, whether it reported.

    On the way are `who` uint16[N q], `value` float64[N q] and `due` int64[N q], in a circle in the order in which they
    were made, which is that in which they are due; `queue` int64[2] is the place of the first and their number.
    `reported` float64[N] is what arrived last, -1.0 before. `wake` int64[4]: before the first there is nothing to do;
    the second is the next timer, every `interval` ns; the third is 1 when the workers have changed since the last time;
    the fourth counts the workers that may report for the first time, having been sent enough. `quiet` int64[N] is how
    many more tuples a worker is to be sent until then, -1 once it has reported. `next_read` int64[1] is when
    feedback is read next: at the next timer, or at any time while a first report is awaited. `messages` and `octets`
    int64[1] are running totals.
    """

    tally: NDArray[np.int64]
    queue: NDArray[np.int64]
    who: NDArray[np.uint16]
    due: NDArray[np.int64]
    value: NDArray[np.float64]
    reported: NDArray[np.float64]
    wake: NDArray[np.int64]
    quiet: NDArray[np.int64]
    next_read: NDArray[np.int64]
    messages: NDArray[np.int64]
    octets: NDArray[np.int64]
    interval: int
    delay: int
    sources: int


def make_reports(workers: int, sources: int, interval: int, delay: int) -> Reports:
    """Start with workers that have nothing to report. UsageError if too many reports would be on the way at a time."""
    # Made in the last `delay` ns: at most one for each timer, and the first.
    room = delay // interval + 3
    fits(
        -(-workers * room * _BYTES_ON_THE_WAY // 8),
        MOST_CELLS,
        f"{room} reports on the way at a time from each of {workers} workers",
        "raise interval, or lower --control-delay",
    )
    return Reports(
        tally=np.zeros((workers, 3), dtype=np.int64),
        queue=np.zeros(2, dtype=np.int64),
        who=np.zeros(workers * room, dtype=np.uint16),
        due=np.zeros(workers * room, dtype=np.int64),
        value=np.zeros(workers * room),
        reported=np.full(workers, -1.0),
        wake=np.array([interval, interval, 0, 0], dtype=np.int64),
        quiet=np.full(workers, _FIRST, dtype=np.int64),
        next_read=np.full(1, interval, dtype=np.int64),
        messages=np.zeros(1, dtype=np.int64),
        octets=np.zeros(1, dtype=np.int64),
        interval=interval,
        delay=delay,
        sources=sources,
    )


def with_workers(reports: Reports, workers: int) -> Reports:
    """Make room for `workers` ids; the sources look at what they know anew at the next tick."""
    new = max(0, workers - len(reports.reported))
    room = new * (len(reports.due) // len(reports.reported))
    wake, queue = reports.wake.copy(), reports.queue.copy()
    wake[_NEXT], wake[_ANEW] = 0, 1
    first, queue[_HEAD] = queue[_HEAD], 0

    def longer(array: Any, more: int, fill: float = 0) -> Any:
        return np.concatenate([array, np.full((more, *array.shape[1:]), fill, dtype=array.dtype)])

    return reports._replace(
        tally=longer(reports.tally, new),
        queue=queue,
        who=longer(np.roll(reports.who, -first), room),
        due=longer(np.roll(reports.due, -first), room),
        value=longer(np.roll(reports.value, -first), room),
        reported=longer(reports.reported, new, -1.0),
        wake=wake,
        quiet=longer(reports.quiet, new, _FIRST),
    )


@njit(forceinline=True)
def _set_next_read(reports: Any) -> None:
    """Return when the next completion matters."""
    reports.next_read[0] = reports.wake[_TIMER] if reports.wake[_AWAITED] == 0 else _ALWAYS


@njit(forceinline=True)
def sent(reports: Any, worker: Any) -> None:
    """Note that a worker was sent a tuple: only after enough of them it may report for the first time."""
    row = np.uint64(worker)
    left = reports.quiet[row] - 1
    if left >= 0:
        reports.quiet[row] = left
        if left == 0:
            reports.wake[_AWAITED] += 1
            _set_next_read(reports)


@njit
def _report(reports: Any, worker: Any, now: Any) -> None:
    tally, queue = reports.tally, reports.queue
    place = (queue[_HEAD] + queue[_WAITING]) % reports.due.shape[0]
    reports.who[place] = worker
    reports.due[place] = now + reports.delay
    reports.value[place] = np.float64(tally[worker, _SUM]) / np.float64(tally[worker, _COUNT])
    queue[_WAITING] += 1
    tally[worker, _COUNT] = 0
    tally[worker, _SUM] = 0
    tally[worker, _SPOKE] = 1
    if reports.quiet[worker] >= 0:
        reports.wake[_AWAITED] -= np.int64(reports.quiet[worker] == 0)
        reports.quiet[worker] = -1
        _set_next_read(reports)
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
def _deliver(reports: Any, backlogs: Any, now: Any) -> Any:
    """Deliver the reports that are due; return whether any is from a live worker."""
    queue, any_live = reports.queue, False
    while queue[_WAITING] > 0:
        place = queue[_HEAD]
        if reports.due[place] > now:
            break
        if take_time(backlogs, reports.reported, np.int64(reports.who[place]), reports.value[place]):
            any_live = True
        queue[_HEAD] = (place + 1) % reports.due.shape[0]
        queue[_WAITING] -= 1
    return any_live


@njit
def _wake_up(reports: Any, backlogs: Any, now: Any) -> None:
    wake, tally, queue = reports.wake, reports.tally, reports.queue
    any_live = _deliver(reports, backlogs, now)
    if wake[_TIMER] <= now:
        # Of several timers that were missed while nothing happened, the last one counts.
        instant = now - now % reports.interval
        wake[_TIMER] = instant + reports.interval
        for worker in range(tally.shape[0]):
            if tally[worker, _SPOKE] != 0 and tally[worker, _COUNT] > 0:
                _report(reports, worker, instant)
        any_live |= _deliver(reports, backlogs, now)
        _set_next_read(reports)
    wake[_NEXT] = min(wake[_TIMER], reports.due[queue[_HEAD]]) if queue[_WAITING] > 0 else wake[_TIMER]
    if wake[_ANEW] != 0:
        wake[_ANEW] = 0
        take_times(backlogs, reports.reported)
    elif any_live and backlogs.known[0] < backlogs.live.shape[0]:
        take_mean(backlogs, reports.reported)


@njit(forceinline=True)
def pass_time(reports: Any, backlogs: Any, now: Any) -> None:
    """Let timers and messages that are due by `now` happen."""
    if reports.wake[_NEXT] <= now:
        _wake_up(reports, backlogs, now)
