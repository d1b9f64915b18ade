"""Periodic busy/idle signals of the workers, and their delay on the way to the sources."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.consistent_grouping.bins import BUSY, IDLE, signal
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["Signals", "exchange", "finished", "hired", "make_signals"]

# Columns of `counters`: whether it is live, tuples sent and finished, last finish; the instant that ends the period
# which the rest is about; work done in it, ns; wait of the tuple that finished last, ns.
LIVE, SENT, DONE, _LAST, _PERIOD, _WORK, _WAIT = range(7)
# Places in `clock`: when there is something to do, the next instant, the first of the rounds on their way, how many.
_DUE, _NEXT, _FIRST, _ROUNDS = range(4)


class Signals(NamedTuple):
    """`counters` int64[n, 7], a row for each worker there ever was; `clock` int64[4]; `due` int64[rounds] and
    `signalled` uint8[rounds, n]: rounds of signals on their way, a ring. Times are ns."""

    counters: NDArray[np.int64]
    clock: NDArray[np.int64]
    due: NDArray[np.int64]
    signalled: NDArray[np.uint8]


def make_signals(live: NDArray[np.int64], period: int, delay: int) -> Signals:
    """Start: no worker was sent a tuple, and the first instant is one period away; both times below 2^62."""
    rounds = delay // period + 2
    clock = np.array([period, period, 0, 0], dtype=np.int64)
    empty = Signals(
        np.zeros((0, 7), dtype=np.int64),
        clock,
        np.zeros(rounds, dtype=np.int64),
        np.zeros((rounds, 0), dtype=np.uint8),
    )
    return hired(empty, live)


def hired(signals: Signals, live: NDArray[np.int64]) -> Signals:
    """Copy everything, with these workers as the live ones; new ones were sent no tuple yet."""
    before = signals.counters.shape[0]
    workers = max(before, int(live[-1]) + 1)
    counters = np.zeros((workers, signals.counters.shape[1]), dtype=np.int64)
    counters[:before] = signals.counters
    counters[:, LIVE] = 0
    counters[live, LIVE] = 1
    signalled = np.zeros((signals.signalled.shape[0], workers), dtype=np.uint8)
    signalled[:, :before] = signals.signalled
    return Signals(counters, signals.clock.copy(), signals.due.copy(), signalled)


@njit(forceinline=True)
def finished(signals: Any, worker: Any, period: Any, arrival: Any, start: Any, finish: Any) -> None:
    """Note that a worker has finished a tuple; all instants before `finish` must have been gone through."""
    counters = signals.counters
    row = np.uint64(worker)
    instant = signals.clock[_NEXT]
    work = finish - max(start, instant - period)
    if counters[row, _PERIOD] == instant:
        work += counters[row, _WORK]
    counters[row, _PERIOD] = instant
    counters[row, _WORK] = work
    counters[row, _WAIT] = start - arrival
    counters[row, _LAST] = finish
    counters[row, DONE] += 1


@njit(forceinline=True)
def _state(row: Any, instant: Any, period: Any, longest: Any, idle: Any) -> Any:
    """Return whether a worker is BUSY, IDLE or neither (0) at an instant."""
    if row[SENT] == 0:
        return IDLE
    work = np.int64(0)
    if row[_PERIOD] == instant:
        if np.float64(row[_WAIT]) > longest:
            return BUSY
        work = row[_WORK]
    if row[SENT] > row[DONE]:
        work += instant - max(instant - period, row[_LAST])
    return IDLE if 1.0 - np.float64(work) / np.float64(period) > idle else 0


@njit
def exchange(state: Any, now: Any) -> None:
    """Let the workers signal if an instant has passed, of several the last one; then hand over bins as signals arrive.

    `state` is that of consistent grouping.
    """
    signals, period = state.signals, state.period
    counters, clock, due, signalled = signals.counters, signals.clock, signals.due, signals.signalled
    if clock[_NEXT] <= now:
        instant = now - now % period
        slot = (clock[_FIRST] + clock[_ROUNDS]) % due.shape[0]
        sent = 0
        for worker in range(counters.shape[0]):
            signalled[slot, worker] = 0
            if counters[worker, LIVE] != 0:
                what = _state(counters[worker], instant, period, state.longest, state.idle)
                signalled[slot, worker] = what
                sent += 1 if what != 0 else 0
        due[slot] = instant + state.delay
        clock[_ROUNDS] += 1
        clock[_NEXT] = instant + period
        state.control_messages[0] += sent * state.tuples.shape[0]
        state.control_bytes[0] += 8 * sent * state.tuples.shape[0]
    while clock[_ROUNDS] > 0 and due[clock[_FIRST]] <= now:
        slot = clock[_FIRST]
        for worker in range(counters.shape[0]):
            # Signals of workers that left meanwhile are dropped.
            if signalled[slot, worker] != 0 and counters[worker, LIVE] != 0:
                signal(state.owners, worker, signalled[slot, worker])
        clock[_FIRST] = (slot + 1) % due.shape[0]
        clock[_ROUNDS] -= 1
    clock[_DUE] = min(clock[_NEXT], due[clock[_FIRST]]) if clock[_ROUNDS] > 0 else clock[_NEXT]
