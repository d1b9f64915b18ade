"""The spaces of Dynamic Key Grouping (003, section 4.1), Baby, Teenage and Old: frequent keys are promoted.

A key that is new at a source is a Baby. From time to time the most frequent Babies are promoted to Teenage and the
most frequent Teenagers to Old, two spaces of fixed size; the other Babies are forgotten.

The items of all sources are rows of one pool, found by (source, key) through one map: items are as many as are there,
not as many as there are keys. Items are numbered from 1; 0 is none.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.ordered.top_k import in_order, keep_best

__all__ = [
    "BABIES",
    "CHECKED",
    "COUNT",
    "OLD",
    "USED",
    "Spaces",
    "add_baby",
    "grow_old",
    "item_of",
    "larger_spaces",
    "make_spaces",
    "promote",
    "rooms",
    "space_of",
]

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_32 = np.uint64(32)
# Columns of an item; of what is looked at when it moves (NEXT links the Babies of a source, and the free items).
COUNT, CHECKED, _LABEL, _BORN = range(4)
KEY, NEXT = range(2)
# Columns of a source.
FIRST_BABY, BABIES, TEENAGERS, OLD_ONES = range(4)
# Places of the pool's own numbers.
USED, FREE, EVER, BORN_LAST = range(4)
BABY, TEENAGE, OLD = 1, 2, 3


class Spaces(NamedTuple):
    """The spaces of all sources.

    `slot` uint32[2^k, 2]: key and item, open addressing, item 0 where empty. What every tuple looks at lies together:
    `item` int64[capacity + 1, 4]: count, time of the last check (-1: never), source * 4 + space, number in order of
    creation. `life` int64[capacity + 1, 2]: key, next. `source` int64[sources, 4]: the first
    of its Babies, and how many are in each space; `teenage` int64[sources, 40 %] and `old` int64[sources, 10 %] of the
    expected keys: items in order, head first; `pool` int64[4]: items used, first free one, ever used, last number
    given. `rows` int64[expected, 3] and `queue` int64[2, expected] are for sorting and promoting.
    """

    slot: U32
    item: I64
    life: I64
    source: I64
    teenage: I64
    old: I64
    pool: I64
    rows: I64
    queue: I64


def _slots(capacity: int) -> U32:
    """Make empty slots for `capacity` items, at least twice as many."""
    return np.zeros((1 << (2 * capacity - 1).bit_length(), 2), dtype=np.uint32)


def make_spaces(sources: int, expected_keys: int, capacity: int) -> Spaces:
    """Make empty spaces for `expected_keys` (at least 10) keys a source, and room for `capacity` items in all."""
    return Spaces(
        slot=_slots(capacity),
        item=np.zeros((capacity + 1, 4), dtype=np.int64),
        life=np.zeros((capacity + 1, 2), dtype=np.int64),
        source=np.zeros((sources, 4), dtype=np.int64),
        teenage=np.zeros((sources, expected_keys * 2 // 5), dtype=np.int64),
        old=np.zeros((sources, expected_keys // 10), dtype=np.int64),
        pool=np.zeros(4, dtype=np.int64),
        rows=np.zeros((expected_keys, 3), dtype=np.int64),
        queue=np.zeros((2, expected_keys), dtype=np.int64),
    )


def larger_spaces(spaces: Spaces) -> Spaces:
    """Double the room for items."""
    capacity = 2 * (spaces.item.shape[0] - 1)
    slot = _slots(capacity)
    call(_copy_slots, spaces.slot, spaces.item, slot)
    more = capacity + 1 - spaces.item.shape[0]
    return spaces._replace(
        slot=slot,
        item=np.concatenate([spaces.item, np.zeros((more, 4), dtype=np.int64)]),
        life=np.concatenate([spaces.life, np.zeros((more, 2), dtype=np.int64)]),
    )


@njit(forceinline=True)
def _home(slot: Any, source: Any, key: Any) -> Any:
    """Return the place where the search for a key of a source begins: a multiplicative hash (Knuth, vol. 3, 6.4)."""
    return np.int64(((np.uint64(key) + (np.uint64(source) << _32)) * _GOLDEN) >> _32) & (slot.shape[0] - 1)


@njit(forceinline=True)
def _find(slot: Any, item: Any, source: Any, key: Any) -> Any:
    """Return the place of a key of a source, or the empty one where it would go."""
    mask = slot.shape[0] - 1
    place = _home(slot, source, key)
    while True:
        one = np.uint64(slot[np.uint64(place), 1])
        if one == 0 or (slot[np.uint64(place), 0] == key and item[one, _LABEL] >> 2 == source):
            return np.uint64(place)
        place = (place + 1) & mask


@njit
def _copy_slots(slot: Any, item: Any, larger: Any) -> None:
    for place in range(slot.shape[0]):
        one = slot[place, 1]
        if one != 0:
            empty = _find(larger, item, item[one, _LABEL] >> 2, slot[place, 0])
            larger[empty, 0] = slot[place, 0]
            larger[empty, 1] = one


@njit
def _forget(spaces: Any, one: Any) -> None:
    """Return an item to the pool, and move the places up that would be cut off from where their search begins."""
    slot, item = spaces.slot, spaces.item
    mask = slot.shape[0] - 1
    hole = np.int64(_find(slot, item, item[one, _LABEL] >> 2, spaces.life[one, KEY]))
    place = hole
    while True:
        place = (place + 1) & mask
        if slot[place, 1] == 0:
            break
        home = _home(slot, item[slot[place, 1], _LABEL] >> 2, slot[place, 0])
        if ((place - home) & mask) >= ((place - hole) & mask):
            slot[hole, 0] = slot[place, 0]
            slot[hole, 1] = slot[place, 1]
            hole = place
    slot[hole, 1] = 0
    spaces.life[one, NEXT] = spaces.pool[FREE]
    spaces.pool[FREE] = one
    spaces.pool[USED] -= 1


@njit(forceinline=True)
def item_of(spaces: Any, source: Any, key: Any) -> Any:
    """Return the item of a key at a source, 0 if it has none."""
    return np.uint64(spaces.slot[_find(spaces.slot, spaces.item, source, key), 1])


@njit(forceinline=True)
def space_of(spaces: Any, one: Any) -> Any:
    """Return the space that an item is in."""
    return spaces.item[one, _LABEL] & 3


@njit(forceinline=True)
def rooms(spaces: Any, widths: Any, more_widths: Any) -> Any:
    """Return for how many more items, and more entries in a map of widths that has more_widths[0], there is room."""
    return spaces.item.shape[0] - 1 - spaces.pool[USED], widths.shape[0] // 2 - more_widths[0]


@njit
def add_baby(spaces: Any, source: Any, key: Any) -> None:
    """Make a Baby of a key that has no item, seen once; the pool must have room."""
    item, life, pool = spaces.item, spaces.life, spaces.pool
    one = pool[FREE]
    if one != 0:
        pool[FREE] = life[one, NEXT]
    else:
        pool[EVER] += 1
        one = pool[EVER]
    pool[USED] += 1
    pool[BORN_LAST] += 1
    place = _find(spaces.slot, spaces.item, source, key)
    spaces.slot[place, 0] = key
    spaces.slot[place, 1] = one
    item[one, COUNT] = 1
    item[one, CHECKED] = -1
    spaces.item[one, _LABEL] = source * 4 + BABY
    life[one, KEY] = key
    item[one, _BORN] = pool[BORN_LAST]
    life[one, NEXT] = spaces.source[source, FIRST_BABY]
    spaces.source[source, FIRST_BABY] = one
    spaces.source[source, BABIES] += 1


@njit
def promote(item: Any, queue: Any, leaving: Any, staying: Any, capacity: Any, is_literal: Any) -> Any:
    """Promote to the next space (003 algorithm 3); return how many items went over and how many came back.

    queue[0, :leaving] are the items of the source space from its head, queue[1, :staying] those of the destination from
    its last. First free places of the destination are filled, then heads of the source are swapped for last ones of
    the destination that have a lower count, at most `capacity` times. What goes over is put at the head of the
    destination, what comes back at the end of the source: both are appended to the other row. So with o over and b
    back, queue[0, o:leaving + b] is the source after that, and queue[1, b:staying + o] the destination.

    To the letter nothing is filled, equals are swapped, and at most as many as the destination has at the start.
    """
    over, back = np.int64(0), np.int64(0)
    while not is_literal and staying + over < capacity and over < leaving:
        queue[1, staying + over] = queue[0, over]
        over += 1
    swaps = staying if is_literal else capacity
    while back < swaps and over < leaving + back and back < staying + over:
        head, last = queue[0, over], queue[1, back]
        more = item[head, COUNT] - item[last, COUNT]
        if more < 0 or (more == 0 and not is_literal):
            break
        queue[1, staying + over] = head
        queue[0, leaving + back] = last
        over += 1
        back += 1
    return over, back


@njit
def _sorted_into(item: Any, rows: Any, queue: Any, row: Any, ordered: Any, size: Any) -> None:
    """Sort a space by count, descending and stable, into a row of the queue: from the head (row 0) or the last (1)."""
    for place in range(size):
        keep_best(rows, place, size, item[ordered[place], COUNT], place, ordered[place])
    in_order(rows, size)
    for place in range(size):
        queue[row, size - 1 - place if row == 1 else place] = rows[place, 2]


@njit
def _taken_over(item: Any, queue: Any, back: Any, end: Any, ordered: Any, space: Any) -> None:
    """Write queue[1, back:end], a destination from its last, as a space."""
    for place in range(back, end):
        one = queue[1, place]
        item[one, _LABEL] = item[one, _LABEL] & ~np.int64(3) | space
        ordered[end - 1 - place] = one


@njit
def _babies_grow_up(spaces: Any, source: Any, keep: Any, is_literal: Any, by_age: Any) -> None:
    """Forget all Babies but the `keep` most frequent (ties: first seen), or `by_age` oldest, and promote to Teenage."""
    item, life, queue, rows = spaces.item, spaces.life, spaces.queue, spaces.rows
    numbers, teenage = spaces.source[source], spaces.teenage[source]
    one, size = numbers[FIRST_BABY], np.int64(0)
    while one != 0:
        following = life[one, NEXT]
        weight = -item[one, _BORN] if by_age else item[one, COUNT]
        loser = keep_best(rows, size, keep, weight, item[one, _BORN], one)
        if loser < 0:
            size += 1
        else:
            _forget(spaces, loser)
        one = following
    if by_age:
        # Those who stay are promoted by count all the same.
        for place in range(size):
            queue[0, place] = rows[place, 2]
        for place in range(size):
            one = queue[0, place]
            keep_best(rows, place, size, item[one, COUNT], item[one, _BORN], one)
    in_order(rows, size)
    for place in range(size):
        queue[0, place] = rows[place, 2]
    staying = numbers[TEENAGERS]
    _sorted_into(item, rows, queue, 1, teenage, staying)
    over, back = promote(item, queue, size, staying, teenage.shape[0], is_literal)
    _taken_over(item, queue, back, staying + over, teenage, TEENAGE)
    numbers[TEENAGERS] = staying + over - back
    numbers[BABIES] = size + back - over
    numbers[FIRST_BABY] = 0
    for place in range(over, size + back):
        one = queue[0, place]
        item[one, _LABEL] = item[one, _LABEL] & ~np.int64(3) | BABY
        life[one, NEXT] = numbers[FIRST_BABY]
        numbers[FIRST_BABY] = one


@njit
def _teenagers_grow_old(spaces: Any, source: Any, is_literal: Any) -> None:
    """Promote from Teenage to Old."""
    item, queue, rows = spaces.item, spaces.queue, spaces.rows
    numbers, teenage, old = spaces.source[source], spaces.teenage[source], spaces.old[source]
    leaving, staying = numbers[TEENAGERS], numbers[OLD_ONES]
    _sorted_into(item, rows, queue, 0, teenage, leaving)
    _sorted_into(item, rows, queue, 1, old, staying)
    over, back = promote(item, queue, leaving, staying, old.shape[0], is_literal)
    _taken_over(item, queue, back, staying + over, old, OLD)
    for place in range(over, leaving + back):
        one = queue[0, place]
        item[one, _LABEL] = item[one, _LABEL] & ~np.int64(3) | TEENAGE
        teenage[place - over] = one
    numbers[OLD_ONES] = staying + over - back
    numbers[TEENAGERS] = leaving + back - over


@njit
def grow_old(spaces: Any, source: Any, keep: Any, to_old: Any, is_literal: Any, by_age: Any) -> Any:
    """Run the timer of a source: Babies to Teenage and, if `to_old`, Teenage to Old; return how many were forgotten.

    `is_literal`: see `promote`. Babies that stay are the `keep` most frequent, or, `by_age`, those first seen.
    """
    before = spaces.pool[USED]
    _babies_grow_up(spaces, source, keep, is_literal, by_age)
    if to_old:
        _teenagers_grow_old(spaces, source, is_literal)
    return before - spaces.pool[USED]
