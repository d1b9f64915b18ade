"""Cooperation: at the end of a slide the sources' rows are merged, and the table goes back to all of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.dalton.q_value_rows import HELD, KEY, NEW, UNTIL, row_of, take_row
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.counts.sent_in_sliding_window import CURRENT, PAIRS, SLIDE, sent_in
from streamgroup.kernels.int_map import ABSENT, get, make_int_map, put

__all__ = ["NEVER", "Table", "exchange", "make_table", "note_slide", "table_with"]

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

NEVER = np.int64(1 << 62)
_KEY_BYTES, _VALUE_BYTES = 16, 8
# Places of `clock`: when there is something to do, the end of the last slide with tuples, when the table arrives, and
# how many keys it has.
DUE, _END, _ARRIVAL, _SIZE = range(4)
# Columns of `row`: the key, the last slide in which it is hot, and its tuples.
_TUPLES = 2


class Table(NamedTuple):
    """What was merged last: `value` float64[keys, N], `row` int64[keys, 3], `place` maps a key to its row; `clock`
    int64[4] as above, in ns."""

    value: F64
    row: I64
    place: I64
    clock: I64


def make_table(keys: int, workers: int, slide: int) -> Table:
    """Make an empty table for so many keys and worker ids; the first slide ends at `slide`, NEVER to merge nothing."""
    clock = np.array([slide, slide, NEVER, 0], dtype=np.int64)
    return Table(np.full((keys, workers), NEW), np.zeros((keys, 3), dtype=np.int64), make_int_map(keys), clock)


def table_with(table: Table, keys: int, workers: int, joined: I64) -> Table:
    """Return a copy with room for so many keys and worker ids; those that joined are not tried."""
    wider = make_table(keys, workers, 0)
    size = int(table.clock[_SIZE])
    wider.value[:size, : table.value.shape[1]] = table.value[:size]
    wider.value[:, joined] = NEW
    wider.row[:size] = table.row[:size]
    return wider._replace(clock=table.clock.copy())


@njit(forceinline=True)
def note_slide(table: Any, end: Any) -> None:
    """Note that a source has begun a slide that ends then."""
    clock = table.clock
    clock[_END] = max(clock[_END], end) if clock[_END] != NEVER else end
    clock[DUE] = min(clock[_END], clock[_ARRIVAL])


@njit
def exchange(state: Any, now: Any) -> None:
    """Merge if the slide has ended, and deliver the table if it has arrived. `state` is that of Dalton."""
    clock = state.table.clock
    if clock[_ARRIVAL] <= now:
        _deliver(state)
    if clock[_END] <= now:
        clock[_ARRIVAL] = clock[_END] + 2 * state.delay
        _merge(state, clock[_END] // state.windows.slide - 1)
        clock[_END] = NEVER
        if clock[_ARRIVAL] <= now:
            _deliver(state)
    clock[DUE] = min(clock[_END], clock[_ARRIVAL])


@njit
def _merge(state: Any, slide: Any) -> None:
    """Take the reports of all sources that sent something in a slide into the table."""
    table, rows, windows = state.table, state.rows, state.windows
    live, sources = windows.live, rows.row.shape[0]
    bytes_of_row = _KEY_BYTES + _VALUE_BYTES * live.shape[0]
    for slot in range(table.place.shape[0]):
        table.place[slot, 0] = 0
    size, reports = np.int64(0), np.int64(0)
    for source in range(sources):
        if windows.clock[source, SLIDE] != slide or windows.clock[source, CURRENT] == 0:
            continue
        reports += 1
        for number in range(rows.row.shape[1]):
            key = rows.row[source, number, KEY]
            if key < 0 or rows.row[source, number, UNTIL] <= slide:
                continue
            tuples = sent_in(windows, source, key, slide)
            if tuples == 0:
                continue
            state.control_bytes[0] += bytes_of_row
            one = get(table.place, key)
            if one == ABSENT:
                one = size
                size += 1
                put(table.place, key, one)
                table.row[one, KEY] = key
                table.row[one, UNTIL] = -1
                table.row[one, _TUPLES] = 0
                for place in range(live.shape[0]):
                    table.value[one, live[place]] = 0.0
            table.row[one, UNTIL] = max(table.row[one, UNTIL], rows.row[source, number, UNTIL])
            table.row[one, _TUPLES] += tuples
            for place in range(live.shape[0]):
                worker = live[place]
                table.value[one, worker] += np.float64(tuples) * rows.value[source, number, worker]
    for one in range(size):
        for place in range(live.shape[0]):
            table.value[one, live[place]] = table.value[one, live[place]] / np.float64(table.row[one, _TUPLES])
    table.clock[_SIZE] = size
    if reports > 0:
        state.control_messages[0] += reports + sources
        state.control_bytes[0] += sources * size * bytes_of_row


@njit
def _deliver(state: Any) -> None:
    """Let all sources take the table over."""
    table, rows, windows = state.table, state.rows, state.windows
    live = windows.live
    for source in range(rows.row.shape[0]):
        for one in range(table.clock[_SIZE]):
            key = table.row[one, KEY]
            number = row_of(rows, source, key)
            if number == ABSENT:
                number = take_row(rows, source, key)
            if number != ABSENT:
                rows.row[source, number, UNTIL] = max(rows.row[source, number, UNTIL], table.row[one, UNTIL])
                for place in range(live.shape[0]):
                    rows.value[source, number, live[place]] = table.value[one, live[place]]
        entries = (1 + rows.state[source, HELD]) * live.shape[0]
        state.state_entries[source] = entries + windows.clock[source, PAIRS]
    table.clock[_ARRIVAL] = NEVER
