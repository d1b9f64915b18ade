"""How far workers are behind over time: from what was counted by arrival and finish, and what crashes took."""

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.account import LAG_CELLS, Lag, Meters
from streamgroup.replay.accounting.outcome import LagTable
from streamgroup.replay.live_workers import Members
from streamgroup.replay.tuple_arrays import DROPPED, Events

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
        lag.shift[0] += 1
        lag.cell[0] >>= 1


class Repeats:
    """Deliveries that were lost and made again: what counting by the arrival of tuples gets wrong."""

    def __init__(self) -> None:
        # Number of the tuple, the worker that lost it, its arrival, its last worker (-1: dropped there).
        self._found: list[I64] = []

    def add(self, again: I64, events: Events, offset: int) -> None:
        """Note deliveries: int64[k, 2] of tuple and worker, in their order; `events` begin with tuple `offset`."""
        if len(again):
            place = again[:, 0] - offset
            last = np.where(events.finish[place] == DROPPED, -1, events.worker[place].astype(np.int64))
            self._found.append(np.column_stack([again, events.arrival[place], last]))

    def apply(self, sent: I64, crashed: I64, shift: int) -> None:
        """Move deliveries in `sent`, int64[cells, n], to when they were made: at once, or when a worker crashed."""
        rows = np.concatenate([np.zeros((0, 4), dtype=np.int64), *self._found]).tolist()
        for at, (tuple_number, worker, arrival, last) in enumerate(rows):
            is_first = at == 0 or rows[at - 1][0] != tuple_number
            _add(sent, (arrival if is_first else int(crashed[rows[at - 1][1]])) >> shift, worker, 1)
            if last >= 0 and (at + 1 == len(rows) or rows[at + 1][0] != tuple_number):
                _add(sent, arrival >> shift, last, -1)
                _add(sent, int(crashed[worker]) >> shift, last, 1)


def _add(counts: I64, cell: int, worker: int, number: int) -> None:
    """Count what happens within the table."""
    if cell < len(counts):
        counts[cell, worker] += number


def lag_table(meters: Meters, repeats: Repeats, members: Members) -> LagTable:
    """Return how far workers are behind at the end of each cell of time up to the last arrival and finish."""
    sent, left = (array.reshape(LAG_CELLS, -1)[:, : members.ever] for array in (meters.lag.sent, meters.lag.left))
    sent = sent.copy()
    sent[meters.lag.cell[0]] += (meters.sums.by_part().sum(axis=1) - meters.lag.before)[: members.ever]
    used = np.flatnonzero((sent > 0).any(axis=1) | (left > 0).any(axis=1))
    cells = int(used[-1]) + 1 if len(used) else 0
    sent, left = sent[:cells], left[:cells].copy()
    shift, crashed, lost = int(meters.lag.shift[0]), members.crashed_at(), meters.sums.lost
    repeats.apply(sent, crashed, shift)
    for worker in np.flatnonzero(lost[: members.ever]).tolist():
        _add(left, int(crashed[worker]) >> shift, worker, int(lost[worker]))
    sent, left = sent.cumsum(axis=0), left.cumsum(axis=0)
    behind = np.zeros(sent.shape)
    for worker in range(sent.shape[1]):
        behind[:, worker] = _behind(sent[:, worker], left[:, worker])
    return LagTable(1 << shift, sent - left, behind * (1 << shift))


def _behind(sent: I64, left: I64) -> NDArray[np.float64]:
    """Return how many cells after the end of each as many have left as were sent by then, NaN if that never comes.

    Both are int64[cells], from the beginning. Within a cell they leave at equal distances.
    """
    cells = np.arange(len(sent))
    found = np.zeros(len(sent))
    waits = np.flatnonzero(sent > left)
    place = np.searchsorted(left, sent[waits])
    known = place < len(left)
    found[waits[~known]] = np.nan
    waits, place = waits[known], place[known]
    part = (sent[waits] - left[place - 1]) / (left[place] - left[place - 1])
    found[waits] = place - cells[waits] - 1 + part
    return found
