"""Bins of bounded load that keys probe in an order of their own, and who owns the bins.

See `groupings.consistent_grouping` for the rule.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels import compiled_hash_placement
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["BUSY", "IDLE", "Owners", "bins_of", "find_bin", "give", "leave", "make_owners", "signal", "widened"]

# Columns of `hash`: where a key's probes start, and their step. Columns of `memory`: key, bound, the probe that hit.
_START, _STEP = 0, 1
_KEY, _BOUND, _PROBE = range(3)
# Probes after which the next search of a key goes on where this one ended.
_MANY = 4
# Signals, and the queues that a worker may wait in.
BUSY, IDLE = 1, 2
# Columns of a worker: its bins, the last one it got (-1: none), the queue it waits in, the workers before and after it
# there. Rows below `_FIRST` are the heads of the two queues (by number; row 0 is free), worker w is row w + `_FIRST`.
_BINS, _LAST, _QUEUE, _BEFORE, _AFTER = range(5)
_FIRST = 3


@njit(forceinline=True)
def _least(load: Any, source: Any) -> Any:
    """Return the least loaded bin of all, of equal ones the lowest."""
    best = np.int64(0)
    for place in range(1, load.shape[1]):
        if load[source, place] < load[source, best]:
            best = np.int64(place)
    return best


@njit(forceinline=True)
def find_bin(load: Any, memory: Any, hashes: Any, source: Any, key: Any, bound: Any) -> Any:
    """Return the first bin with a load below `bound` (an integer) of as many probes as bins, else the least loaded.

    `load` int64[sources, bins]; `hashes` uint64[keys, 2]; `memory` int64[sources, 2^k, 3] holds where searches ended.
    The bound only grows, and bins fill up while it is the same: what was full stays so until the bound moves, and a
    key that had to probe many bins goes on from the one it found last.
    """
    row, place = np.uint64(source), np.uint64(key)
    spot = compiled_hash_placement.place(hashes[place, _START] + hashes[place, _STEP], load.shape[1])
    if load[row, spot] < bound:
        return np.int64(spot)
    return _search(load, memory, row, key, bound, hashes[place, _START], hashes[place, _STEP])


@njit
def _search(load: Any, memory: Any, row: Any, key: Any, bound: Any, start: Any, step: Any) -> Any:
    """Do what `find_bin` does from the second probe on."""
    bins = load.shape[1]
    slot = np.uint64(key & (memory.shape[1] - 1))
    probe = np.int64(2)
    if memory[row, slot, _KEY] == key and memory[row, slot, _BOUND] == bound:
        probe = memory[row, slot, _PROBE]
    x = start + np.uint64(probe) * step
    spot = np.uint64(0)
    while probe <= bins:
        spot = compiled_hash_placement.place(x, bins)
        if load[row, spot] < bound:
            break
        probe += 1
        x += step
    if probe > _MANY:
        memory[row, slot, _KEY] = key
        memory[row, slot, _BOUND] = bound
        memory[row, slot, _PROBE] = probe
    return np.int64(spot) if probe <= bins else _least(load, row)


class Owners(NamedTuple):
    """Who owns which bin: `owner` int64[bins]; `below` int64[bins], the bin that the owner got before this one (-1:
    none); `worker` int64[3 + n, 5], see the columns above."""

    owner: NDArray[np.int64]
    below: NDArray[np.int64]
    worker: NDArray[np.int64]


def make_owners(live: NDArray[np.int64], each: int) -> Owners:
    """Assign bins to the live workers, `each` to every one: the first ones to the first, and so on."""
    below = np.arange(-1, len(live) * each - 1)
    below[::each] = -1
    rows = _nobody(int(live[-1]) + 1)
    rows[live + _FIRST, _BINS] = each
    rows[live + _FIRST, _LAST] = np.arange(each - 1, len(live) * each, each)
    for queue in (BUSY, IDLE):
        rows[queue, _BEFORE] = rows[queue, _AFTER] = queue
    return Owners(np.repeat(live, each), below, rows)


def _nobody(workers: int) -> NDArray[np.int64]:
    rows = np.zeros((_FIRST + workers, 5), dtype=np.int64)
    rows[:, _LAST] = -1
    return rows


def widened(owners: Owners, workers: int) -> Owners:
    """Copy everything, with room for workers 0..workers-1 at least."""
    rows = _nobody(max(workers, owners.worker.shape[0] - _FIRST))
    rows[: owners.worker.shape[0]] = owners.worker
    return Owners(owners.owner.copy(), owners.below.copy(), rows)


def bins_of(owners: Owners, worker: int) -> list[int]:
    """List a worker's bins in the order in which it got them."""
    found = []
    place = int(owners.worker[worker + _FIRST, _LAST])
    while place >= 0:
        found.append(place)
        place = int(owners.below[place])
    return found[::-1]


@njit(forceinline=True)
def give(owners: Any, place: Any, worker: Any) -> None:
    """Assign a free bin to a worker."""
    row = worker + _FIRST
    owners.owner[place] = worker
    owners.below[place] = owners.worker[row, _LAST]
    owners.worker[row, _LAST] = place
    owners.worker[row, _BINS] += 1


@njit(forceinline=True)
def _take_out(workers: Any, row: Any) -> None:
    before, after = workers[row, _BEFORE], workers[row, _AFTER]
    workers[before, _AFTER] = after
    workers[after, _BEFORE] = before
    workers[row, _QUEUE] = 0


@njit(forceinline=True)
def _put_in(workers: Any, row: Any, queue: Any) -> None:
    """Put a worker at the end of a queue; it stays where it is if it waits there."""
    if workers[row, _QUEUE] != queue:
        last = workers[queue, _BEFORE]
        workers[last, _AFTER] = row
        workers[row, _BEFORE] = last
        workers[row, _AFTER] = queue
        workers[queue, _BEFORE] = row
        workers[row, _QUEUE] = queue


@njit(forceinline=True)
def _hand_over(owners: Any, giver: Any, taker: Any) -> None:
    """Hand the last bin of a worker's row to another's."""
    place = owners.worker[giver, _LAST]
    owners.worker[giver, _LAST] = owners.below[place]
    owners.worker[giver, _BINS] -= 1
    give(owners, place, taker - _FIRST)


def leave(owners: Owners, worker: int, live: NDArray[np.int64]) -> None:
    """Return the bins of a worker that has left to the live, each to the one with the fewest, ties to the lowest."""
    row = worker + _FIRST
    if owners.worker[row, _QUEUE] != 0:
        call(_take_out, owners.worker, row)
    for place in bins_of(owners, worker):
        call(give, owners, place, int(live[np.argmin(owners.worker[live + _FIRST, _BINS])]))
    owners.worker[row, _LAST], owners.worker[row, _BINS] = -1, 0


@njit(forceinline=True)
def signal(owners: Any, worker: Any, what: Any) -> None:
    """Take in that a worker is BUSY or IDLE: a busy one hands its last bin to an idle one, or one of them waits.

    A worker waits in one queue at most, for what it signalled last, and keeps at least one bin.
    """
    workers = owners.worker
    row = np.int64(worker + _FIRST)
    if workers[row, _QUEUE] == BUSY + IDLE - what:
        _take_out(workers, row)
    if what == BUSY:
        taker = workers[IDLE, _AFTER]
        if taker == IDLE:
            if workers[row, _BINS] > 1:
                _put_in(workers, row, BUSY)
        elif workers[row, _BINS] > 1:
            _hand_over(owners, row, taker)
            _take_out(workers, taker)
        return
    giver = workers[BUSY, _AFTER]
    while giver != BUSY and workers[giver, _BINS] <= 1:
        _take_out(workers, giver)
        giver = workers[BUSY, _AFTER]
    if giver == BUSY:
        _put_in(workers, row, IDLE)
    else:
        _hand_over(owners, giver, row)
        _take_out(workers, giver)
