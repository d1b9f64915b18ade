"""The partial results that workers gather, and those that they have to send: one for each window, worker and key.

A window is closed when its last tuple has been accepted by a worker. What a worker gathered in it leaves then, or when
the worker finishes its last tuple of the window, if that is later.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.replay.accounting.key_worker_pairs import place_of
from streamgroup.replay.simulation.event_state import grown_rows
from streamgroup.replay.tuple_arrays import Records, make_records

__all__ = [
    "ACTS",
    "SENDS",
    "STARTS",
    "Gathering",
    "enter_all",
    "finished",
    "free_part",
    "free_row",
    "grown_pools",
    "grown_tuples",
    "grown_windows",
    "is_accepted",
    "join",
    "make_gathering",
    "pop_active",
    "push_active",
    "turn_to_next_active",
]

I64 = NDArray[np.int64]

# What a worker is about to do: send partial results; the same, and start its next tuple if it has sent all; or the
# same, and finish tuples.
SENDS, STARTS, ACTS = 1, 2, 3

# A window: how many of its tuples no worker has accepted, when the latest accepted one arrived, its parts (one for each
# worker that got a tuple of it), how many of these are not sent, and its number.
_WINDOW = ("unaccepted", "ends", "first_part", "unsent", "number")
# A part: worker, window, how many of its tuples are unfinished, its rows, the worker's parts of the windows before and
# after, and the next part of the same window. `earlier` also links free places.
_PART = ("worker", "window", "unfinished", "rows", "first_row", "earlier", "later", "sibling")
# A row is a partial result: its key and part; `following` in its part, in what its worker has to send, in what an
# aggregator accepted and has not started, or among the free places; `start` is when the aggregator starts.
_ROW = ("key", "part", "following", "start")
# An unfinished tuple: its window (-1: none, it is not measured), and its part once a worker accepted it.
_OF_TUPLE = ("window", "part")
# A worker: its part of the latest window, the rows that it has to send, the aggregator chosen for the first of them
# (-1: none), the tuple it serves, what it is about to do (0: nothing) and who follows it there. `blocked` is the row
# that waits for a full aggregator since `blocked_since`, `next_waiter` the worker that waits there after this one.
_SENDER = (
    "latest_part", "first_row", "last_row", "aggregator", "serving", "active", "next_active", "blocked",
    "blocked_since", "next_waiter",
)  # fmt: skip
# Numbers that change: free places, and how many rows are free (parts are never more than rows); the workers that are
# about to do something; partial results for which an aggregator was chosen, rows of the log, and the tuple at which
# something went wrong.
_MARKS = ("first_free_row", "free_rows", "first_free_part", "first_active", "last_active", "chosen", "logged", "fault")


class Gathering(NamedTuple):
    """What workers gathered and have to send, as records of int64 (fields above).

    `tuples` [capacity] go with the unfinished tuples of the state, `window_of` int64[capacity] with the stream: the
    window of tuple i, -1 for one that is not measured. `windows` has window w at w mod its length; they are numbered in
    the order of the stream. `table` int64[4 x rows] finds the rows of parts that have not left, by open addressing: at
    2p the part x `keys` + the key + 1, 0 where p is free, at 2p + 1 the row.
    """

    keys: int
    tuples: Records
    window_of: I64
    windows: Records
    parts: Records
    rows: Records
    table: I64
    senders: Records
    marks: Records


def make_gathering(keys: int, workers: int, tuples: int, rows: int) -> Gathering:
    """Make an empty state, with places for so many unfinished tuples and `rows` partial results, a power of two."""
    marks, parts, pool = make_records(_MARKS, 1), make_records(_PART, rows), make_records(_ROW, rows)
    parts.earlier[:-1] = pool.following[:-1] = np.arange(1, rows)
    marks.first_free_row = marks.first_free_part = marks.chosen = marks.logged = 0
    marks.free_rows = rows
    senders = make_records(_SENDER, workers)
    senders.active = 0
    return Gathering(
        keys, make_records(_OF_TUPLE, tuples), np.full(1, -1, dtype=np.int64), make_records(_WINDOW, 2), parts, pool,
        np.zeros(4 * rows, dtype=np.int64), senders, marks,
    )  # fmt: skip


def grown_pools(gathering: Gathering) -> tuple[Gathering, I64]:
    """Make room for twice as many parts and rows; return also the old table, whose rows are to be entered again."""
    old, marks = len(gathering.rows), gathering.marks
    parts, rows = make_records(_PART, 2 * old), make_records(_ROW, 2 * old)
    parts[:old], rows[:old] = gathering.parts, gathering.rows
    parts.earlier[old:-1] = rows.following[old:-1] = np.arange(old + 1, 2 * old)
    # What is left of the old places comes after the new ones.
    parts.earlier[-1], rows.following[-1] = marks.first_free_part[0], marks.first_free_row[0]
    marks.first_free_part = marks.first_free_row = old
    marks.free_rows += old
    table = np.zeros(8 * old, dtype=np.int64)
    return gathering._replace(parts=parts, rows=rows, table=table), gathering.table


def grown_tuples(gathering: Gathering, size: int) -> Gathering:
    """Make room for `size` unfinished tuples."""
    tuples = make_records(_OF_TUPLE, size)
    tuples[: len(gathering.tuples)] = gathering.tuples
    return gathering._replace(tuples=tuples)


def grown_windows(windows: Records, first: int, end: int) -> Records:
    """Make room for twice as many windows; first..end-1 are kept."""
    return grown_rows(windows, first, end).view(np.recarray)


@njit
def enter_all(old: Any, table: Any) -> None:
    """Enter the rows of a table into a larger one, which is empty."""
    mask = (table.shape[0] >> 1) - 1
    for place in range(old.shape[0] >> 1):
        if old[2 * place] != 0:
            to = place_of(old[2 * place], mask)
            while table[2 * to] != 0:
                to = (to + 1) & mask
            table[2 * to] = old[2 * place]
            table[2 * to + 1] = old[2 * place + 1]


@njit
def _sorted_list(first: Any, following: Any, rank: Any) -> Any:
    """Sort a list that `following` links by rank, which differs; return its first item. Merges runs, from bottom up."""
    width = 1
    while True:
        merges = 0
        head, tail, left = np.int64(-1), np.int64(-1), first
        while left >= 0:
            merges += 1
            right = left
            lefts, rights = 0, width
            while lefts < width and right >= 0:
                right = following[right]
                lefts += 1
            while lefts > 0 or (rights > 0 and right >= 0):
                if lefts > 0 and (rights == 0 or right < 0 or rank[left] < rank[right]):
                    item = left
                    left = following[left]
                    lefts -= 1
                else:
                    item = right
                    right = following[right]
                    rights -= 1
                if tail < 0:
                    head = item
                else:
                    following[tail] = item
                tail = item
            left = right
        if tail >= 0:
            following[tail] = -1
        first = head
        if merges <= 1:
            return first
        width *= 2


@njit
def _part_of(gathering: Any, worker: Any, window: Any) -> Any:
    """Find a worker's part of a window, or begin it."""
    parts, windows, senders, marks = gathering.parts, gathering.windows, gathering.senders, gathering.marks
    later, part = np.int64(-1), senders[worker].latest_part
    while part >= 0 and parts[part].window > window:
        later = part
        part = parts[part].earlier
    if part >= 0 and parts[part].window == window:
        return part
    earlier = part
    part = marks[0].first_free_part
    marks[0].first_free_part = parts[part].earlier
    parts[part].worker = worker
    parts[part].window = window
    parts[part].unfinished = 0
    parts[part].rows = 0
    parts[part].first_row = -1
    parts[part].earlier = earlier
    parts[part].later = later
    if earlier >= 0:
        parts[earlier].later = part
    if later >= 0:
        parts[later].earlier = part
    else:
        senders[worker].latest_part = part
    place = window & (windows.shape[0] - 1)
    parts[part].sibling = windows[place].first_part
    windows[place].first_part = part
    windows[place].unsent += 1
    return part


@njit
def join(gathering: Any, worker: Any, taken: Any, key: Any) -> None:
    """Note that a worker accepted a tuple: it will have a partial result of the tuple's window and key."""
    if gathering.tuples[taken].window < 0:
        return
    parts, rows, table, marks = gathering.parts, gathering.rows, gathering.table, gathering.marks
    part = _part_of(gathering, worker, gathering.tuples[taken].window)
    gathering.tuples[taken].part = part
    parts[part].unfinished += 1
    mask = (table.shape[0] >> 1) - 1
    code = part * gathering.keys + key + 1
    place = place_of(code, mask)
    while table[2 * place] != 0:
        if table[2 * place] == code:
            return
        place = (place + 1) & mask
    row = marks[0].first_free_row
    marks[0].first_free_row = rows[row].following
    marks[0].free_rows -= 1
    table[2 * place] = code
    table[2 * place + 1] = row
    rows[row].key = key
    rows[row].part = part
    rows[row].following = parts[part].first_row
    parts[part].first_row = row
    parts[part].rows += 1


@njit
def _forget(table: Any, code: Any) -> None:
    """Take a row out of the table; those behind it move up."""
    mask = (table.shape[0] >> 1) - 1
    hole = place_of(code, mask)
    while table[2 * hole] != code:
        hole = (hole + 1) & mask
    place = (hole + 1) & mask
    while table[2 * place] != 0:
        home = place_of(table[2 * place], mask)
        if ((place - home) & mask) >= ((place - hole) & mask):
            table[2 * hole] = table[2 * place]
            table[2 * hole + 1] = table[2 * place + 1]
            hole = place
        place = (place + 1) & mask
    table[2 * hole] = 0


@njit
def _depart(gathering: Any, part: Any) -> None:
    """Let the partial results of a part leave: its worker has to send them, in the order of key ids."""
    parts, rows, senders = gathering.parts, gathering.rows, gathering.senders
    worker = parts[part].worker
    row = _sorted_list(parts[part].first_row, rows.following, rows.key)
    if senders[worker].first_row < 0:
        senders[worker].first_row = row
    else:
        rows[senders[worker].last_row].following = row
    while row >= 0:
        _forget(gathering.table, part * gathering.keys + rows[row].key + 1)
        senders[worker].last_row = row
        row = rows[row].following
    earlier, later = parts[part].earlier, parts[part].later
    if earlier >= 0:
        parts[earlier].later = later
    if later >= 0:
        parts[later].earlier = earlier
    else:
        senders[worker].latest_part = earlier


@njit
def is_accepted(gathering: Any, taken: Any, arrival: Any) -> None:
    """Note that a worker accepted a tuple; if it is the last of its window, what is complete leaves, by worker."""
    window = gathering.tuples[taken].window
    if window < 0:
        return
    windows, parts = gathering.windows, gathering.parts
    place = window & (windows.shape[0] - 1)
    windows[place].ends = max(windows[place].ends, arrival)
    windows[place].unaccepted -= 1
    if windows[place].unaccepted > 0:
        return
    part = _sorted_list(windows[place].first_part, parts.sibling, parts.worker)
    windows[place].first_part = part
    while part >= 0:
        following = parts[part].sibling
        if parts[part].unfinished == 0:
            _depart(gathering, part)
            if gathering.senders[parts[part].worker].blocked < 0:
                push_active(gathering, parts[part].worker, SENDS)
        part = following


@njit
def finished(gathering: Any, taken: Any) -> None:
    """Note that a worker finished a tuple; if it was its last one of a closed window, its partial results leave."""
    window = gathering.tuples[taken].window
    if window < 0:
        return
    part = gathering.tuples[taken].part
    gathering.parts[part].unfinished -= 1
    closed = gathering.windows[window & (gathering.windows.shape[0] - 1)].unaccepted == 0
    if closed and gathering.parts[part].unfinished == 0:
        _depart(gathering, part)


@njit
def free_row(gathering: Any, row: Any) -> None:
    """Free the place of a row."""
    marks = gathering.marks
    gathering.rows[row].following = marks[0].first_free_row
    marks[0].first_free_row = row
    marks[0].free_rows += 1


@njit
def free_part(gathering: Any, part: Any) -> None:
    """Free the place of a part, all of which was sent."""
    parts, marks = gathering.parts, gathering.marks
    gathering.windows[parts[part].window & (gathering.windows.shape[0] - 1)].unsent -= 1
    parts[part].earlier = marks[0].first_free_part
    marks[0].first_free_part = part


@njit
def push_active(gathering: Any, worker: Any, what: Any) -> None:
    """Put a worker behind those that are about to do something."""
    senders, marks = gathering.senders, gathering.marks
    senders[worker].active = what
    senders[worker].next_active = -1
    if marks[0].first_active < 0:
        marks[0].first_active = worker
    else:
        senders[marks[0].last_active].next_active = worker
    marks[0].last_active = worker


@njit
def pop_active(gathering: Any) -> None:
    """Take the first of those that are about to do something away: it has done it."""
    senders, marks = gathering.senders, gathering.marks
    worker = marks[0].first_active
    marks[0].first_active = senders[worker].next_active
    senders[worker].active = 0


@njit
def turn_to_next_active(gathering: Any) -> Any:
    """Let the others that are about to do something go first; return whether there are any."""
    worker = gathering.marks[0].first_active
    if gathering.senders[worker].next_active < 0:
        return False
    what = gathering.senders[worker].active
    pop_active(gathering)
    push_active(gathering, worker, what)
    return True
