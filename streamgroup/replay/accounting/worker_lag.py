"""How far workers are behind over time: from what was counted by arrival and finish, and what crashes took."""

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.account import LAG_CELLS, Lag, Meters
from streamgroup.replay.accounting.outcome import LagTable
from streamgroup.replay.live_workers import Members
from streamgroup.replay.tuple_arrays import DROPPED, LOST, NEVER, Events

__all__ = ["Repeats", "lag_table", "make_room"]

I64 = NDArray[np.int64]


def make_room(lag: Lag, until: int) -> None:
    """Join cells until they hold a moment, as `account` does: it is slow there as long as it is interpreted."""
    half = LAG_CELLS // 2
    while until >> int(lag.shift[0]) >= LAG_CELLS:
        for counts in (lag.sent, lag.left):
            rows = counts.reshape(LAG_CELLS, -1)
            rows[:half] = rows[::2] + rows[1::2]
            rows[half:] = 0
        rows = lag.until.reshape(LAG_CELLS, -1)
        rows[:half] = np.maximum(rows[::2], rows[1::2])
        rows[half:] = 0
        lag.shift[0] += 1
        lag.cell[0] >>= 1


class Repeats:
    """Deliveries that were lost and made again: what counting by the arrival of tuples gets wrong."""

    def __init__(self) -> None:
        # Number of the tuple, the worker that lost it, its arrival, its last worker (-1: dropped there), its finish.
        self._found: list[I64] = []

    def add(self, again: I64, events: Events, offset: int) -> None:
        """Note deliveries: int64[k, 2] of tuple and worker, in their order; `events` begin with tuple `offset`."""
        if len(again):
            place = again[:, 0] - offset
            finish = events.finish[place]
            last = np.where(finish == DROPPED, -1, events.worker[place].astype(np.int64))
            self._found.append(np.column_stack([again, events.arrival[place], last, finish]))

    def apply(self, sent: I64, until: I64, crashed: I64, shift: int) -> None:
        """Move deliveries in `sent` and `until`, int64[cells, n], to when they were made: at once, or at a crash."""
        rows = np.concatenate([np.zeros((0, 5), dtype=np.int64), *self._found]).tolist()
        for at, (tuple_number, worker, arrival, last, finish) in enumerate(rows):
            is_first = at == 0 or rows[at - 1][0] != tuple_number
            cell = (arrival if is_first else int(crashed[rows[at - 1][1]])) >> shift
            _add(sent, cell, worker, 1)
            _raise(until, cell, worker, NEVER)
            if last >= 0 and (at + 1 == len(rows) or rows[at + 1][0] != tuple_number):
                _add(sent, arrival >> shift, last, -1)
                _add(sent, int(crashed[worker]) >> shift, last, 1)
                _raise(until, int(crashed[worker]) >> shift, last, NEVER if finish == LOST else finish)


def _add(counts: I64, cell: int, worker: int, number: int) -> None:
    """Count what happens within the table."""
    if cell < len(counts):
        counts[cell, worker] += number


def _raise(until: I64, cell: int, worker: int, moment: int) -> None:
    """Note until when a worker has what it was sent in a cell, if that is within the table."""
    if cell < len(until):
        until[cell, worker] = max(until[cell, worker], moment)


def lag_table(meters: Meters, repeats: Repeats, members: Members) -> LagTable:
    """Return how far workers are behind at the end of each cell of time up to the last arrival and finish."""
    lag = meters.lag
    sent, left, until = (
        array.reshape(LAG_CELLS, -1)[:, : members.ever].copy() for array in (lag.sent, lag.left, lag.until)
    )
    sent[lag.cell[0]] += (meters.sums.by_part().sum(axis=1) - lag.before)[: members.ever]
    until[lag.cell[0]] = lag.latest[: members.ever]
    used = np.flatnonzero((sent > 0).any(axis=1) | (left > 0).any(axis=1))
    cells = int(used[-1]) + 1 if len(used) else 0
    sent, left, until = sent[:cells], left[:cells], until[:cells]
    shift, crashed, lost = int(lag.shift[0]), members.crashed_at(), meters.sums.lost
    repeats.apply(sent, until, crashed, shift)
    for worker in np.flatnonzero(lost[: members.ever]).tolist():
        _add(left, int(crashed[worker]) >> shift, worker, int(lost[worker]))
    sent, left, until = sent.cumsum(axis=0), left.cumsum(axis=0), np.maximum.accumulate(until, axis=0)
    until = np.where(until == NEVER, crashed, until)
    ends = np.arange(1, cells + 1, dtype=np.int64)[:, None] << shift
    return LagTable(1 << shift, sent - left, np.maximum(until - ends, 0))
