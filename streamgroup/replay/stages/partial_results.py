"""The partial results of a run: one for each window, worker and key of which the worker finished a tuple."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import register_jitable
from streamgroup.replay.accounting.key_worker_pairs import place_of
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.simulation.optional_array_elements import put
from streamgroup.replay.tuple_arrays import NEVER

__all__ = ["PartialResults", "Partials", "window_ends"]

I64 = NDArray[np.int64]
_FIRST_ROWS = 1 << 10


class Tuples(NamedTuple):
    """Tuples in the order of the stream: key uint32, worker int32, finish int64 (negative: none)."""

    key: NDArray[np.uint32]
    worker: NDArray[np.int32]
    finish: I64


class Rows(NamedTuple):
    """Partial results in the order in which they began: int64[rows] each.

    `code` is worker x keys + key + 1, `place` where it is in the table, `window` the place of its window in the list of
    windows, `leaves` when it leaves its worker, ns.
    """

    code: I64
    place: I64
    window: I64
    leaves: I64


class Partials(NamedTuple):
    """Partial results of windows that have ended: p of them, in the order of window, worker and key id.

    `row` int64[p] is where each began among the rows of this batch, `window` int64[p] the number of its window and
    `ends` int64[p] when that ends, ns; `worker`, `key`, `leaves` int64[p]. No later one leaves before `horizon`.
    `by_result` int64[p] are their places in the order of window, key id and worker, and `first` bool[p] says in this
    order which is the first of its window and key.
    """

    row: I64
    window: I64
    ends: I64
    worker: I64
    key: I64
    leaves: I64
    horizon: int
    by_result: I64
    first: NDArray[np.bool_]


@register_jitable(forceinline=True)
def _columns(slot: Any) -> int:
    """Return how many numbers the table has for a place."""
    return 1 if slot is None else 2


def collect(events: Any, ends: Any, keys: Any, slot: Any, table: Any, rows: Any, last: Any, done: Any) -> Any:
    """Find the partial result that each tuple belongs to; return whether it stopped for want of room.

    `events` are `Tuples`. Windows end before the places `ends`. `slot` int64[tuples], if any, takes the row of each,
    -1 for one that no worker finished. `table` int64[2 places] are the pairs of worker and key of the open window, by
    open addressing: at 2p the code, 0 where p is free, at 2p + 1 the row. Without `slot` it is int64[places], the codes
    alone. `last` int64[workers] is each worker's last finish in the open window, -1 for none. `done` int64[4]: the
    place, windows ended, the first row of the open window, and the rows.
    """
    i, ended, first, found = done[0], done[1], done[2], done[3]
    size = events.key.shape[0]
    each = _columns(slot)
    mask = table.shape[0] // each - 1
    full = False
    next_end = ends[ended] if ended < ends.shape[0] else np.int64(NEVER)
    while True:
        while next_end == i:
            for row in range(first, found):
                table[each * rows.place[row]] = 0
                rows.leaves[row] = last[(rows.code[row] - 1) // keys]
            for row in range(first, found):
                last[(rows.code[row] - 1) // keys] = -1
            ended += 1
            first = found
            next_end = ends[ended] if ended < ends.shape[0] else np.int64(NEVER)
        if i == size:
            break
        if found == rows.code.shape[0] or 2 * (found - first + 1) > mask:
            full = True
            break
        finish = events.finish[i]
        its: Any = np.int64(-1)
        if finish >= 0:
            at = np.int64(events.worker[i])
            code = at * keys + np.int64(events.key[i]) + 1
            place = place_of(code, mask)
            while table[each * place] != 0 and table[each * place] != code:
                place = (place + 1) & mask
            if table[each * place] == 0:
                table[each * place] = code
                if slot is not None:
                    table[2 * place + 1] = found
                rows.code[found] = code
                rows.place[found] = place
                rows.window[found] = ended
                found += 1
            if slot is not None:
                its = table[2 * place + 1]
            last[at] = max(last[at], finish)
        put(slot, i, its)
        i += 1
    done[0], done[1], done[2], done[3] = i, ended, first, found
    return full


def enter(table: Any, slot: Any, rows: Any, first: Any, found: Any) -> None:
    """Enter the rows of the open window into an empty table; `slot` as for `collect`."""
    each = _columns(slot)
    mask = table.shape[0] // each - 1
    for row in range(first, found):
        place = place_of(rows.code[row], mask)
        while table[each * place] != 0:
            place = (place + 1) & mask
        table[each * place] = rows.code[row]
        if slot is not None:
            table[2 * place + 1] = row
        rows.place[row] = place


def window_ends(rule: WindowRule, first_arrival: int, numbers: I64, last_arrivals: I64) -> I64:
    """Return when windows end: those of time at its end, others with their last tuple."""
    width = rule.width_ns
    if width is None:
        return last_arrivals
    # A window that ends after the end of the clock ends with it.
    room = (NEVER - first_arrival) // width
    return first_arrival + np.minimum(numbers + 1, room) * np.int64(width)


class PartialResults:
    """Finds the partial results of measured tuples, window by window; `function` gives `collect` as it runs.

    `rule` says where windows end. With `slots` it also tells the row of each tuple.
    """

    def __init__(self, function: Callable[..., Any], rule: WindowRule, keys: int, workers: int, *, slots: bool) -> None:
        self._collect, self._enter = function(collect), function(enter)
        self._rule, self._keys, self._slots = rule, keys, slots
        self._each = 2 if slots else 1
        self._table = np.zeros(self._each * 2 * _FIRST_ROWS, dtype=np.int64)
        self._rows = Rows(*(np.zeros(_FIRST_ROWS, dtype=np.int64) for _ in range(4)))
        self._last = np.full(workers, -1, dtype=np.int64)
        # Rows of windows that ended in this batch, and all rows.
        self._closed, self._open = 0, 0
        # Of the window that is open: its number (None before the first tuple), and when its last tuple arrived.
        self._number: int | None = None
        self._arrived = 0
        self._first_arrival = 0

    def add(
        self, offset: int, arrival: I64, key: NDArray[Any], worker: NDArray[Any], finish: I64
    ) -> tuple[I64 | None, Partials | None]:
        """Add measured tuples from number `offset` of them on; return their rows and the windows that ended.

        `finish` is negative for a tuple that none finished. Rows of the open window are the first ones of the next
        batch.
        """
        if self._number is None:
            self._first_arrival = int(arrival[0])
        place, number = self._rule.begins(offset, arrival - self._first_arrival)
        begins = place if self._number is not None else place[1:]
        numbers = number if self._number is None else np.concatenate([[self._number], number])
        if self._number == int(number[0]):
            begins, numbers = begins[1:], numbers[1:]
        ended = self._ends(numbers[: len(begins)], np.where(begins > 0, arrival[begins - 1], self._arrived))
        self._number, self._arrived = int(number[-1]), int(arrival[-1])
        slot = np.zeros(len(key), dtype=np.int64) if self._slots else None
        self._run(Tuples(key.view(), worker.view(), finish.view()), begins, slot)
        return slot, self._taken(numbers, ended, int(arrival[begins[-1]])) if len(begins) else None

    def finish(self) -> Partials | None:
        """End the last window; None if there was no tuple."""
        if self._number is None:
            return None
        none = Tuples(np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64))
        self._run(none, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64) if self._slots else None)
        numbers = np.array([self._number])
        return self._taken(numbers, self._ends(numbers, np.array([self._arrived])), NEVER)

    def _ends(self, numbers: I64, last_arrivals: I64) -> I64:
        return window_ends(self._rule, self._first_arrival, numbers, last_arrivals)

    def _run(self, events: Tuples, ends: I64, slot: I64 | None) -> None:
        done = np.array([0, 0, 0, self._open])
        ends = ends.astype(np.int64)
        for array in (*events, ends):
            array.flags.writeable = False
        while self._collect(events, ends, self._keys, slot, self._table, self._rows, self._last, done):
            first, found = int(done[2]), int(done[3])
            if found == len(self._rows.code):
                self._rows = Rows(*(np.concatenate([column, np.zeros_like(column)]) for column in self._rows))
            if 2 * self._each * (found - first + 1) >= len(self._table):
                self._table = np.zeros(2 * len(self._table), dtype=np.int64)
                self._enter(self._table, slot, self._rows, first, found)
        self._closed, self._open = int(done[2]), int(done[3])

    def _taken(self, numbers: I64, ends: I64, horizon: int) -> Partials:
        """Take the rows of windows that ended; those of the open one move to the front."""
        first, found = self._closed, self._open
        workers = len(self._last)
        window, (worker, key) = self._rows.window[:first], np.divmod(self._rows.code[:first] - 1, self._keys)
        by_result = _sorted(window, key * workers + worker, workers * self._keys)
        begins = np.ones(first, dtype=bool)
        begins[1:] = np.diff(window[by_result]) | np.diff(key[by_result]) != 0
        # Of one window and worker they are in the order of their keys already.
        by_worker = _stably_sorted((window * workers + worker)[by_result])
        order = by_result[by_worker]
        by_result[by_worker] = np.arange(first)
        window = window[order]
        taken = Partials(
            order, numbers[window], ends[window], worker[order], key[order], self._rows.leaves[order], horizon,
            by_result, begins,
        )  # fmt: skip
        for column in self._rows:
            column[: found - first] = column[first:found]
        self._rows.window[: found - first] = 0
        if self._slots:
            self._table[2 * self._rows.place[: found - first] + 1] -= first
        self._open = found - first
        return taken


def _sorted(window: I64, code: I64, codes: int) -> I64:
    """Return the order of window and code; there are `codes` different codes, and no two rows are equal."""
    if not len(window):
        return window
    if (int(window[-1]) + 1) * codes < 1 << 62:
        return np.argsort(window * codes + code)
    return np.lexsort((code, window))


def _stably_sorted(values: I64) -> I64:
    """Return the order of values, equal ones as they are: of small ones by counting, as numpy does for 16 bits."""
    if len(values) and values.max() < 1 << 16:
        return np.argsort(values.astype(np.uint16), kind="stable")
    return np.argsort(values, kind="stable")
