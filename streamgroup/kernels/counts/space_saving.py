"""SpaceSaving: the most frequent keys of a stream in a table of fixed size, every update in constant time.

Metwally, Agrawal, El Abbadi, ICDT 2005. The entry that makes room is the one that was updated least recently among
those with the least count. (The papers leave that tie open.)

The sum of all counts is the number of tuples offered; count - error <= true count <= count; error <= tuples /
capacity.

A tuple of a key that has an entry writes that entry and nothing else, which is what most tuples do. For the order of
eviction there is a queue for each of the few lowest counts: an entry that reaches such a count is recorded there, and
its record is void once the entry has a higher count. A count is in no queue while it is above these; when the least
count rises, the entries that have the count which is then the highest of the few are put in order by their last update.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.ordered.top_k import sort_descending

__all__ = [
    "SpaceSaving",
    "capacity_of",
    "cells_taken",
    "count_of",
    "entries_of",
    "entry_at",
    "error_of",
    "forget_source",
    "make_space_saving",
    "offer",
    "places",
    "top_counts",
    "top_estimates",
    "used",
]

I64 = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO, _THREE, _NEXT_PLACE = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_38 = np.uint64(38)
# Counts that have a queue, from the least on: a power of two.
_QUEUES = 4
# Columns of a source's numbers: entries, updates, the least count, how many records of its queue were read, the count
# from which on keys are listed in `top` and how many these are; then the length of each queue.
USED, _UPDATES, _LEVEL, _READ, _LISTED, _TOP = range(6)
_LENGTH = 8
_NEVER = np.int64((1 << 63) - 1)


class SpaceSaving(NamedTuple):
    """The tables of all sources, with room for as many keys each as `top` has columns.

    `slot` int64[sources, 4 x 2^k] is the index, open addressing; a place has four numbers: key + 1 (0: empty), count,
    number of the last update, error. `record` uint32[sources, queues x capacity] are the keys recorded in each queue,
    that of count c at c mod queues. `top` uint32[sources, capacity] begins with the keys of large counts, once they
    were asked for (`top_counts`). `state` int64[sources, 12]: see the columns above. `order` int64[capacity] is room
    to sort in.
    """

    slot: I64
    record: NDArray[np.uint32]
    top: NDArray[np.uint32]
    state: I64
    order: I64


def _places(capacity: int) -> int:
    return 1 << max(2, (2 * capacity - 1).bit_length())


def cells_taken(sources: int, capacity: int) -> int:
    """Count the cells of 8 bytes that tables take: 4 for each place, half of one for each key in a queue or on top."""
    return sources * (4 * _places(capacity) + (_QUEUES + 1) * capacity // 2) + capacity


def make_space_saving(sources: int, capacity: int) -> SpaceSaving:
    """Make empty tables; capacity 1..2^24."""
    state = np.zeros((sources, _LENGTH + _QUEUES), dtype=np.int64)
    state[:, _LEVEL] = 1
    state[:, _LISTED] = _NEVER
    return SpaceSaving(
        slot=np.zeros((sources, 4 * _places(capacity)), dtype=np.int64),
        record=np.zeros((sources, _QUEUES * capacity), dtype=np.uint32),
        top=np.zeros((sources, capacity), dtype=np.uint32),
        state=state,
        order=np.zeros(capacity, dtype=np.int64),
    )


def entries_of(tables: SpaceSaving, source: int) -> dict[int, tuple[int, int]]:
    """Give count and error of each key in a source's table."""
    places = tables.slot[source].reshape(-1, 4)
    return {int(code) - 1: (int(count), int(error)) for code, count, _, error in places if code != 0}


def capacity_of(tables: SpaceSaving) -> int:
    """Give how many keys each table has room for."""
    return int(tables.top.shape[1])


@njit(forceinline=True)
def used(tables: Any, source: Any) -> Any:
    """Give how many keys a source's table holds."""
    return tables.state[np.uint64(source), USED]


@njit
def forget_source(tables: Any, source: Any) -> None:
    """Empty a source's table."""
    for place in range(tables.slot.shape[1]):
        tables.slot[source, place] = 0
    for column in range(tables.state.shape[1]):
        tables.state[source, column] = 0
    tables.state[source, _LEVEL] = 1
    tables.state[source, _LISTED] = _NEVER


@njit(forceinline=True)
def _home(slot: Any, key: Any) -> Any:
    """Give the place where the search for a key begins."""
    return (np.uint64(key) * _GOLDEN) >> _38 & np.uint64(slot.shape[1] - 4)


@njit(forceinline=True)
def _find(slot: Any, row: Any, key: Any) -> Any:
    """Give the place of a key, or the empty one where it would go."""
    mask = np.uint64(slot.shape[1] - 1)
    place, code = _home(slot, key), np.int64(key) + 1
    found = slot[row, place]
    while found != code and found != 0:
        place = (place + _NEXT_PLACE) & mask
        found = slot[row, place]
    return place


@njit(forceinline=True)
def _forget(slot: Any, row: Any, hole: Any) -> None:
    """Empty a place, and move those up that would be cut off from where their search begins."""
    mask = np.uint64(slot.shape[1] - 1)
    place = (hole + _NEXT_PLACE) & mask
    code = slot[row, place]
    while code != 0:
        if (place - _home(slot, code - 1)) & mask >= (place - hole) & mask:
            slot[row, hole] = code
            slot[row, hole | _ONE] = slot[row, place | _ONE]
            slot[row, hole | _TWO] = slot[row, place | _TWO]
            slot[row, hole | _THREE] = slot[row, place | _THREE]
            hole = place
        place = (place + _NEXT_PLACE) & mask
        code = slot[row, place]
    slot[row, hole] = 0
    slot[row, hole | _ONE] = 0


@njit(forceinline=True)
def _reached(tables: Any, row: Any, key: Any, count: Any) -> None:
    """Record that an entry has reached a count: in that count's queue if it has one, and on top."""
    state = tables.state
    if count < state[row, _LEVEL] + _QUEUES:
        queue = count & (_QUEUES - 1)
        length = state[row, np.uint64(_LENGTH + queue)]
        state[row, np.uint64(_LENGTH + queue)] = length + 1
        tables.record[row, np.uint64(queue * tables.top.shape[1] + length)] = key
    if count == state[row, _LISTED]:
        tables.top[row, np.uint64(state[row, _TOP])] = key
        state[row, _TOP] += 1


@njit
def _rise(tables: Any, row: Any) -> None:
    """Raise the least count by one, and fill the queue of the count that is the highest to have one from then on."""
    slot, state, order = tables.slot, tables.state, tables.order
    state[row, _LEVEL] += 1
    state[row, _READ] = 0
    count = state[row, _LEVEL] + _QUEUES - 1
    found = 0
    for number in range(slot.shape[1] >> 2):
        if slot[row, np.uint64(number << 2) | _ONE] == count:
            order[found] = slot[row, np.uint64(number << 2) | _TWO] << 25 | number
            found += 1
    sort_descending(order, found)
    queue = count & (_QUEUES - 1)
    begin = queue * tables.top.shape[1]
    for i in range(found):
        place = np.uint64((order[found - 1 - i] & ((1 << 25) - 1)) << 2)
        tables.record[row, begin + i] = slot[row, place] - 1
    state[row, _LENGTH + queue] = found


@njit(forceinline=True)
def _victim(tables: Any, row: Any) -> Any:
    """Give the place of the entry that makes room, which leaves its queue."""
    slot, state = tables.slot, tables.state
    while True:
        level, at = state[row, _LEVEL], state[row, _READ]
        queue = level & (_QUEUES - 1)
        if at == state[row, np.uint64(_LENGTH + queue)]:
            _rise(tables, row)
        else:
            state[row, _READ] = at + 1
            place = _find(slot, row, tables.record[row, np.uint64(queue * tables.top.shape[1] + at)])
            if slot[row, place | _ONE] == level:
                return place


@njit(forceinline=True)
def _enter(slot: Any, row: Any, place: Any, key: Any, error: Any, update: Any) -> None:
    slot[row, place] = np.int64(key) + 1
    slot[row, place | _ONE] = error + 1
    slot[row, place | _TWO] = update
    slot[row, place | _THREE] = error


@njit(forceinline=True)
def _offer_new(tables: Any, row: Any, place: Any, key: Any, replacement: Any) -> Any:
    """Take up a key that has no entry; `place` is the empty one where it would go."""
    slot, state = tables.slot, tables.state
    error = np.int64(0)
    if state[row, USED] < tables.top.shape[1]:
        state[row, USED] += 1
        _enter(slot, row, place, key, error, state[row, _UPDATES])
    elif replacement:
        hole = _victim(tables, row)
        error = state[row, _LEVEL]
        if error + 1 >= state[row, _LISTED]:
            # What comes or goes belongs on top: who is there is to be found anew.
            state[row, _LISTED] = _NEVER
        # The new key goes in first, where the search for it has ended; taking out the old one keeps it findable.
        _enter(slot, row, place, key, error, state[row, _UPDATES])
        _forget(slot, row, hole)
    else:
        return np.int64(0)
    _reached(tables, row, key, error + 1)
    return error + 1


@njit(forceinline=True)
def offer(tables: Any, source: Any, key: Any, replacement: Any) -> Any:
    """Count a tuple of a key; return the key's count, at least the true one.

    Without `replacement` a key that does not fit into a full table is not taken up, and its count is 0.
    """
    row = np.uint64(source)
    slot, state = tables.slot, tables.state
    update = state[row, _UPDATES] + 1
    state[row, _UPDATES] = update
    place = _find(slot, row, key)
    if slot[row, place] == 0:
        return _offer_new(tables, row, place, key, replacement)
    count = slot[row, place | _ONE] + 1
    slot[row, place | _ONE] = count
    slot[row, place | _TWO] = update
    _reached(tables, row, key, count)
    return count


@njit(forceinline=True)
def count_of(tables: Any, source: Any, key: Any) -> Any:
    """Return a key's count, 0 if it has no entry."""
    row = np.uint64(source)
    place = _find(tables.slot, row, key)
    return tables.slot[row, place | _ONE] if tables.slot[row, place] != 0 else np.int64(0)


@njit(forceinline=True)
def error_of(tables: Any, source: Any, key: Any) -> Any:
    """Give the error of a key's count, 0 if it has no entry."""
    row = np.uint64(source)
    place = _find(tables.slot, row, key)
    return tables.slot[row, place | _THREE] if tables.slot[row, place] != 0 else np.int64(0)


@njit(forceinline=True)
def entry_at(tables: Any, source: Any, number: Any) -> Any:
    """Give key, count and error of the entry at one of `places`; the key is -1 where there is none."""
    row, place = np.uint64(source), np.uint64(number << 2)
    return tables.slot[row, place] - 1, tables.slot[row, place | _ONE], tables.slot[row, place | _THREE]


@njit(forceinline=True)
def places(tables: Any) -> Any:
    """Give how many places an index has."""
    return tables.slot.shape[1] >> 2


@njit
def _list_anew(tables: Any, row: Any, least: Any) -> None:
    """Put all keys on top that have a count of at least `least`."""
    found = 0
    for number in range(places(tables)):
        key, count, _ = entry_at(tables, row, number)
        if count >= least:
            tables.top[row, found] = key
            found += 1
    tables.state[row, _TOP] = found
    tables.state[row, _LISTED] = least


@njit
def top_counts(tables: Any, source: Any, denominator: Any, least: Any, counts: Any) -> Any:
    """Fill `counts` with the counts c for which c x denominator >= least, largest first; return how many there are."""
    row = np.uint64(source)
    lowest = max(1, -(-least // denominator))
    top, state = tables.top, tables.state
    if lowest < state[row, _LISTED]:
        _list_anew(tables, row, lowest)
    found = 0
    for place in range(state[row, _TOP]):
        key = top[row, place]
        count = tables.slot[row, _find(tables.slot, row, key) | _ONE]
        if count >= lowest:
            # In descending order from the last time, but for a few.
            at = found
            while at > 0 and counts[at - 1] < count:
                counts[at] = counts[at - 1]
                top[row, at] = top[row, at - 1]
                at -= 1
            counts[at] = count
            top[row, at] = key
            found += 1
    state[row, _TOP] = found
    state[row, _LISTED] = lowest
    return found


@njit
def top_estimates(tables: Any, source: Any, denominator: Any, least: Any, sign: Any, estimates: Any) -> Any:
    """Fill `estimates` with count + sign x error where that x denominator >= least, largest first; return how many."""
    found = 0
    for number in range(places(tables)):
        key, count, error = entry_at(tables, source, number)
        estimate = count + sign * error
        if key >= 0 and estimate * denominator >= least and estimate > 0:
            place = found
            while place > 0 and estimates[place - 1] < estimate:
                estimates[place] = estimates[place - 1]
                place -= 1
            estimates[place] = estimate
            found += 1
    return found
