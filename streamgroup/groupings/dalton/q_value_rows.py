"""The rows of Q-values that each source keeps for its hot keys, and what it learns from a tuple."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiled_random_draws import draw_below
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.counts.sent_in_sliding_window import TOTAL, holders, holds
from streamgroup.kernels.int_map import ABSENT, get, make_int_map, put, remove

__all__ = [
    "FULL",
    "HELD",
    "KEY",
    "NEW",
    "UNTIL",
    "Rows",
    "exploit",
    "explore",
    "learn",
    "make_rows",
    "row_of",
    "take_row",
    "throw_out",
    "with_capacity",
]

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

# The Q-value of a worker that was not tried: below any reward.
NEW = -2.0
# Columns of a row: its key (-1: free), the last slide in which it is hot, whether it is full.
KEY, UNTIL, FULL = range(3)
# Columns of a source: rows in use, full ones, and the number of holders at which a key is full.
HELD, FULL_ONES, SPLIT = range(3)


class Rows(NamedTuple):
    """`value` float64[sources, capacity, N] are the Q-values, `row` int64[sources, capacity, 3] and `state` int64[
    sources, 3] as above; `place` maps key * sources + source to the number of its row."""

    value: F64
    row: I64
    state: I64
    place: I64


def make_rows(sources: int, capacity: int, workers: int, split: int) -> Rows:
    """Make free rows for worker ids below `workers`."""
    row = np.zeros((sources, capacity, 3), dtype=np.int64)
    row[:, :, KEY] = -1
    state = np.zeros((sources, 3), dtype=np.int64)
    state[:, SPLIT] = split
    return Rows(np.full((sources, capacity, workers), NEW), row, state, make_int_map(sources * capacity))


def with_capacity(rows: Rows, capacity: int, workers: int, joined: I64) -> Rows:
    """Return a copy with at least so many rows of a source, and worker ids; those that joined are not tried."""
    sources, before, ids = rows.value.shape
    wider = make_rows(sources, max(before, capacity), max(ids, workers), 0)
    wider.value[:, :before, :ids] = rows.value
    wider.value[:, :, joined] = NEW
    wider.row[:, :before] = rows.row
    place = rows.place.copy() if wider.value.shape[1] == before else _places(rows, wider)
    return wider._replace(state=rows.state.copy(), place=place)


def _places(rows: Rows, wider: Rows) -> I64:
    """Return the map of the same rows in the larger table."""
    found = wider.place.copy()
    for source, number in np.argwhere(rows.row[:, :, KEY] >= 0).tolist():
        call(put, found, int(rows.row[source, number, KEY]) * len(rows.row) + source, number)
    return found


@njit(forceinline=True)
def row_of(rows: Any, source: Any, key: Any) -> Any:
    """Return the number of the key's row, -1 if it has none."""
    return get(rows.place, key * rows.row.shape[0] + source)


@njit
def take_row(rows: Any, source: Any, key: Any) -> Any:
    """Give a key that has no row the lowest free one, untried; return its number, -1 if none is free."""
    row, value = rows.row, rows.value
    for number in range(row.shape[1]):
        if row[source, number, KEY] < 0:
            row[source, number, KEY] = key
            row[source, number, UNTIL] = -1
            row[source, number, FULL] = 0
            for worker in range(value.shape[2]):
                value[source, number, worker] = NEW
            rows.state[source, HELD] += 1
            put(rows.place, key * row.shape[0] + source, number)
            return np.int64(number)
    return ABSENT


@njit
def throw_out(rows: Any, source: Any, slide: Any) -> None:
    """Free the rows of keys that are not hot in a slide."""
    row = rows.row
    if rows.state[source, HELD] == 0:
        return
    for number in range(row.shape[1]):
        if row[source, number, KEY] >= 0 and row[source, number, UNTIL] < slide:
            remove(rows.place, row[source, number, KEY] * row.shape[0] + source)
            rows.state[source, HELD] -= 1
            rows.state[source, FULL_ONES] -= row[source, number, FULL]
            row[source, number, KEY] = -1


@njit
def exploit(rows: Any, source: Any, number: Any, live: Any, first: Any) -> Any:
    """Return the live worker with the largest Q-value; of equal ones `first`, else the lowest id."""
    value = rows.value
    best, most = first, value[source, number, first]
    for place in range(live.shape[0]):
        worker = live[place]
        if value[source, number, worker] > most:
            best, most = worker, value[source, number, worker]
    return best


@njit
def explore(rows: Any, windows: Any, source: Any, number: Any, one: Any, stream: Any, index: Any) -> Any:
    """Draw one of the live workers; if the row's key is full, one of those that hold it, by ascending id."""
    live = windows.live
    if rows.row[source, number, FULL] != 0:
        held = holders(windows, source, one)
        if held > 0:
            left = draw_below(stream, index, held)
            for place in range(live.shape[0]):
                if holds(windows, source, one, live[place]):
                    if left == 0:
                        return live[place]
                    left -= 1
        rows.row[source, number, FULL] = 0
        rows.state[source, FULL_ONES] -= 1
    return live[draw_below(stream, index, live.shape[0])]


@njit
def learn(rows: Any, windows: Any, source: Any, number: Any, one: Any, worker: Any, weights: Any, most: Any) -> None:
    """Move the worker's Q-value towards the reward, and see whether the key is full.

    `weights` float64[4]: of the load, of the replicas, of what was learned before, and of the reward.
    """
    workers = windows.live.shape[0]
    held = holders(windows, source, one)
    load = np.float64(windows.tuples[source, worker])
    mean = windows.clock[source, TOTAL] / workers
    excess = (load - mean) / max(load, mean)
    reward = -(weights[0] * excess + weights[1] * (held / workers))
    value = rows.value
    value[source, number, worker] = value[source, number, worker] * weights[2] + weights[3] * reward
    row, state = rows.row, rows.state
    if held >= state[source, SPLIT] and row[source, number, FULL] == 0:
        row[source, number, FULL] = 1
        state[source, FULL_ONES] += 1
    if 10 * state[source, FULL_ONES] >= 7 * state[source, HELD] and state[source, SPLIT] < most:
        state[source, SPLIT] += 1
        state[source, FULL_ONES] = 0
        for other in range(row.shape[1]):
            row[source, other, FULL] = 0
