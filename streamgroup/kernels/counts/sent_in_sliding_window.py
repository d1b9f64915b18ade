"""What each source sent in a sliding window: tuples and distinct keys of each worker, and where each key was sent.

Time is cut into slides. A source in slide i sees slides i - W + 1 to i; it moves its window when it chooses. For each
key that a source sent there is a record, and for each worker that it sent the key to an entry with the slide of the
last tuple. So a key leaves the window without being looked at: the number of pairs whose last tuple is in a slide is
subtracted when the slide leaves. Records and entries that left are removed when the room is used up.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.int_map import ABSENT, enlarged, get, make_int_map, put

__all__ = [
    "CURRENT",
    "HOT_UNTIL",
    "PAIRS",
    "PREVIOUS",
    "SLIDE",
    "TOTAL",
    "KeyWindows",
    "advance",
    "count",
    "grown",
    "holders",
    "holds",
    "make_key_windows",
    "record_of",
    "send",
    "sent_in",
    "with_counts",
]

I64 = NDArray[np.int64]

_RECORDS = 1 << 12
# Columns of a source's clock: its slide and the end of it; tuples in the window to live workers, tuples in this slide
# and in the one before; pairs in the window.
SLIDE, _END, TOTAL, CURRENT, PREVIOUS, PAIRS = range(6)
# Columns of a record: its first entry (-1: none), tuples in a slide, that slide, and the last slide in which it is hot.
_FIRST, _COUNT, _COUNTED, HOT_UNTIL = range(4)
# Columns of an entry: the worker, the slide of the last tuple, the key's next entry (-1: none).
WORKER, _LAST, _NEXT = range(3)
# Places of `used`.
_RECORD, _ENTRY = range(2)


class KeyWindows(NamedTuple):
    """The windows of all sources; N is the largest worker id ever live, plus 1, W the number of slides.

    `clock` int64[sources, 6] (see the columns above). `tuples` and `distinct` int64[sources, N]: of each worker in the
    window; `slide_tuples` and `slide_distinct` int64[sources, W, N]: of them, those whose (last) tuple is in slide i,
    at i mod W; `slide_pairs` int64[sources, W] are the pairs of all workers. `records` maps key * sources + source to
    a row of `record` int64[*, 4]; `entry` int64[*, 3]; `used` int64[2] rows of both. `live` int64[n] are the live
    workers, `is_live` int64[N]. `slide` is in ns. `room` int64[1]: tuples for which there is room, each with a new
    record and a new entry.
    """

    clock: I64
    tuples: I64
    distinct: I64
    slide_tuples: I64
    slide_distinct: I64
    slide_pairs: I64
    records: I64
    record: I64
    entry: I64
    used: I64
    live: I64
    is_live: I64
    room: I64
    slide: int


def _flags(live: I64, size: int) -> I64:
    flags = np.zeros(size, dtype=np.int64)
    flags[live] = 1
    return flags


def make_key_windows(sources: int, live: I64, slides: int, slide: int) -> KeyWindows:
    """Make empty windows of `slides` slides of `slide` ns, for live workers `live`, ascending."""
    workers = int(live[-1]) + 1
    clock = np.zeros((sources, 6), dtype=np.int64)
    clock[:, _END] = slide
    by_worker = np.zeros((sources, workers), dtype=np.int64)
    by_slide = np.zeros((sources, slides, workers), dtype=np.int64)
    return KeyWindows(
        clock=clock,
        tuples=by_worker,
        distinct=by_worker.copy(),
        slide_tuples=by_slide,
        slide_distinct=by_slide.copy(),
        slide_pairs=np.zeros((sources, slides), dtype=np.int64),
        records=make_int_map(_RECORDS),
        record=np.zeros((_RECORDS, 4), dtype=np.int64),
        entry=np.zeros((_RECORDS, 3), dtype=np.int64),
        used=np.zeros(2, dtype=np.int64),
        live=live.copy(),
        is_live=_flags(live, workers),
        room=np.full(1, _RECORDS, dtype=np.int64),
        slide=slide,
    )


def grown(windows: KeyWindows, what: str) -> KeyWindows:
    """Return the windows without what has left them, at least half of the records and of the entries free.

    Where more is in use, or nothing has left, there are twice as many; UsageError that names `what` if they would be
    too large.
    """
    kept = windows._replace(
        records=np.zeros_like(windows.records),
        record=np.zeros_like(windows.record),
        entry=np.zeros_like(windows.entry),
        used=np.zeros_like(windows.used),
    )
    call(_copy_current, windows, kept)
    sizes = np.array([len(kept.record), len(kept.entry)])
    is_short = (2 * kept.used > sizes) | (kept.used == windows.used)
    records, entries = (int(size) for size in np.where(is_short, 2 * sizes, sizes))
    # A record, at most four times two for its place in the map, and an entry.
    fits(12 * records + 3 * entries, MOST_CELLS, f"{what}: the keys of a window", "lower window, or use fewer sources")
    return kept._replace(
        records=kept.records if records == len(kept.record) else enlarged(kept.records, records),
        record=np.pad(kept.record, ((0, records - len(kept.record)), (0, 0))),
        entry=np.pad(kept.entry, ((0, entries - len(kept.entry)), (0, 0))),
        room=np.array([min(records - kept.used[_RECORD], entries - kept.used[_ENTRY])], dtype=np.int64),
    )


@njit
def _copy_current(windows: Any, kept: Any) -> None:
    """Copy the entries that are in the window of their source, and the records that have any or whose key is hot."""
    sources, slides = windows.clock.shape[0], windows.slide_tuples.shape[1]
    for slot in range(windows.records.shape[0]):
        if windows.records[slot, 0] == 0:
            continue
        code, one = windows.records[slot, 0] - 1, windows.records[slot, 1]
        slide = windows.clock[code % sources, SLIDE]
        first, found = np.int64(-1), windows.record[one, _FIRST]
        while found >= 0:
            if windows.entry[found, _LAST] > slide - slides:
                copy = kept.used[_ENTRY]
                kept.used[_ENTRY] = copy + 1
                kept.entry[copy, WORKER] = windows.entry[found, WORKER]
                kept.entry[copy, _LAST] = windows.entry[found, _LAST]
                kept.entry[copy, _NEXT] = first
                first = copy
            found = windows.entry[found, _NEXT]
        if first >= 0 or windows.record[one, HOT_UNTIL] >= slide:
            copy = kept.used[_RECORD]
            kept.used[_RECORD] = copy + 1
            for column in range(windows.record.shape[1]):
                kept.record[copy, column] = windows.record[one, column]
            kept.record[copy, _FIRST] = first
            put(kept.records, code, copy)


def with_counts(windows: KeyWindows, live: I64, joined: I64, tuples: I64, distinct: I64) -> KeyWindows:
    """Return a copy for other live workers, with these counts of the window; those of `joined` are in the last slide.

    `tuples` and `distinct` int64[sources, N] are as before for all others.
    """
    sources, slides, before = windows.slide_tuples.shape
    size = tuples.shape[1]
    rows, now = np.arange(sources)[:, np.newaxis], (windows.clock[:, SLIDE] % slides)[:, np.newaxis]
    by_slide = []
    for counts, old in ((tuples, windows.slide_tuples), (distinct, windows.slide_distinct)):
        wider = np.zeros((sources, slides, size), dtype=np.int64)
        wider[:, :, :before] = old
        wider[rows, now, joined] = counts[:, joined]
        by_slide.append(wider)
    clock = windows.clock.copy()
    clock[:, TOTAL] = tuples[:, live].sum(axis=1)
    return KeyWindows(
        clock=clock,
        tuples=tuples,
        distinct=distinct,
        slide_tuples=by_slide[0],
        slide_distinct=by_slide[1],
        slide_pairs=windows.slide_pairs.copy(),
        records=windows.records.copy(),
        record=windows.record.copy(),
        entry=windows.entry.copy(),
        used=windows.used.copy(),
        live=live.copy(),
        is_live=_flags(live, size),
        room=windows.room.copy(),
        slide=windows.slide,
    )


@njit(forceinline=True)
def advance(windows: Any, source: Any, now: Any) -> Any:
    """Move a source's window on to `now`; return 1 if a new slide began, else 0."""
    if now < windows.clock[np.uint64(source), _END]:
        return np.int64(0)
    _move(windows, source, now // windows.slide)
    return np.int64(1)


@njit
def _move(windows: Any, source: Any, slide: Any) -> None:
    clock, tuples, distinct = windows.clock, windows.tuples, windows.distinct
    before, slides, workers = clock[source, SLIDE], windows.slide_tuples.shape[1], tuples.shape[1]
    for one in range(before + 1, min(slide, before + slides) + 1):
        slot = one % slides
        for worker in range(workers):
            tuples[source, worker] -= windows.slide_tuples[source, slot, worker]
            distinct[source, worker] -= windows.slide_distinct[source, slot, worker]
            windows.slide_tuples[source, slot, worker] = 0
            windows.slide_distinct[source, slot, worker] = 0
        clock[source, PAIRS] -= windows.slide_pairs[source, slot]
        windows.slide_pairs[source, slot] = 0
    total = np.int64(0)
    for place in range(windows.live.shape[0]):
        total += tuples[source, windows.live[place]]
    clock[source, TOTAL] = total
    clock[source, PREVIOUS] = clock[source, CURRENT] if slide == before + 1 else 0
    clock[source, CURRENT] = 0
    clock[source, SLIDE] = slide
    clock[source, _END] = (slide + 1) * windows.slide


@njit(forceinline=True)
def record_of(windows: Any, source: Any, key: Any) -> Any:
    """Return the record of a key of a source, a new one if it has none."""
    found = get(windows.records, key * windows.clock.shape[0] + source)
    return _new_record(windows, source, key) if found == ABSENT else found


@njit
def _new_record(windows: Any, source: Any, key: Any) -> Any:
    one = windows.used[_RECORD]
    windows.used[_RECORD] = one + 1
    put(windows.records, key * windows.clock.shape[0] + source, one)
    windows.record[one, _FIRST] = -1
    windows.record[one, _COUNT] = 0
    windows.record[one, _COUNTED] = -1
    windows.record[one, HOT_UNTIL] = -1
    _update_room(windows)
    return one


@njit(forceinline=True)
def _update_room(windows: Any) -> None:
    records = windows.record.shape[0] - windows.used[_RECORD]
    windows.room[0] = min(records, windows.entry.shape[0] - windows.used[_ENTRY])


@njit(forceinline=True)
def count(windows: Any, source: Any, one: Any) -> Any:
    """Count a tuple of a record's key in the source's slide; return how many there are."""
    record = windows.record
    slide = windows.clock[np.uint64(source), SLIDE]
    tuples = record[one, _COUNT] + 1 if record[one, _COUNTED] == slide else np.int64(1)
    record[one, _COUNT] = tuples
    record[one, _COUNTED] = slide
    windows.clock[np.uint64(source), CURRENT] += 1
    return tuples


@njit
def sent_in(windows: Any, source: Any, key: Any, slide: Any) -> Any:
    """Return how many tuples of a key a source sent in a slide, its last one with any."""
    one = get(windows.records, key * windows.clock.shape[0] + source)
    if one == ABSENT or windows.record[one, _COUNTED] != slide:
        return np.int64(0)
    return windows.record[one, _COUNT]


@njit(forceinline=True)
def _entry_of(windows: Any, one: Any, worker: Any) -> Any:
    """Return the entry of a record for a worker, -1 if there is none."""
    entry = windows.entry
    found = windows.record[one, _FIRST]
    while found >= 0 and entry[found, WORKER] != worker:
        found = entry[found, _NEXT]
    return found


@njit(forceinline=True)
def holds(windows: Any, source: Any, one: Any, worker: Any) -> Any:
    """Return whether the source sent the record's key to a worker in its window."""
    found = _entry_of(windows, one, worker)
    oldest = windows.clock[np.uint64(source), SLIDE] - windows.slide_tuples.shape[1] + 1
    return found >= 0 and windows.entry[found, _LAST] >= oldest


@njit
def holders(windows: Any, source: Any, one: Any) -> Any:
    """Return to how many live workers the source sent the record's key in its window."""
    entry, number = windows.entry, np.int64(0)
    oldest = windows.clock[source, SLIDE] - windows.slide_tuples.shape[1] + 1
    found = windows.record[one, _FIRST]
    while found >= 0:
        if entry[found, _LAST] >= oldest:
            number += windows.is_live[entry[found, WORKER]]
        found = entry[found, _NEXT]
    return number


@njit
def send(windows: Any, source: Any, one: Any, worker: Any) -> None:
    """Count a tuple of a record's key that goes to a worker."""
    clock, entry = windows.clock, windows.entry
    slides, slide = windows.slide_tuples.shape[1], clock[source, SLIDE]
    slot = slide % slides
    windows.tuples[source, worker] += 1
    windows.slide_tuples[source, slot, worker] += 1
    clock[source, TOTAL] += 1
    found = _entry_of(windows, one, worker)
    if found < 0:
        found = windows.used[_ENTRY]
        windows.used[_ENTRY] = found + 1
        entry[found, WORKER] = worker
        entry[found, _LAST] = slide - slides
        entry[found, _NEXT] = windows.record[one, _FIRST]
        windows.record[one, _FIRST] = found
        _update_room(windows)
    last = entry[found, _LAST]
    if last == slide:
        return
    if last > slide - slides:
        windows.slide_distinct[source, last % slides, worker] -= 1
        windows.slide_pairs[source, last % slides] -= 1
    else:
        windows.distinct[source, worker] += 1
        clock[source, PAIRS] += 1
    windows.slide_distinct[source, slot, worker] += 1
    windows.slide_pairs[source, slot] += 1
    entry[found, _LAST] = slide
