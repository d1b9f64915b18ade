"""Stream order: sorts tuples, and finds the borders of the parts.

Readers keep the order of the input among tuples of one time. A table has no order: its tuples of one time are ordered
by the bytes of the key, then by cost, value and weight.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.ingest.pipeline.arrow_blocks import Row, block, rows_of
from streamgroup.ingest.pipeline.tuple_segments import CARRIED
from streamgroup.ingest.runners.protocol import Frame
from streamgroup.traces import layout

__all__ = [
    "PartRange",
    "choose_borders",
    "count_below",
    "cut_parts",
    "plan_parts",
    "samples_of",
    "sort_order",
    "sortable_numbers",
]

I64 = NDArray[np.int64]

# Tuples between two borders, about: parts begin between borders, and what lies there is sent to both.
RANGE_TUPLES = 1 << 20
# Places in a sorted segment that the driver sees.
SAMPLES = 32

# A place in the order of all tuples: the sort key of the tuple there, its segment, and its place in that when sorted.
Border = tuple[int, ...]


class PartRange(NamedTuple):
    """The tuples from `low` up to `high` (None: no bound), without the first `skip` of them, are `tuples` of a part."""

    low: Border | None
    high: Border | None
    skip: int
    tuples: int


def _sort_key(columns: Mapping[str, Any]) -> list[I64]:
    """Return the sort key of tuples as columns of whole numbers, the most significant first.

    Ties are broken by the segment, and in a segment by the place.
    """
    names = ["timestamp"]
    if "by_bytes" in columns:
        names += ["by_bytes", *(name for name in CARRIED if name in columns)]
    return [sortable_numbers(columns[name]) for name in names]


def sortable_numbers(column: Any) -> I64:
    """Map numbers to whole numbers in the same order; of equal floats, -0.0 comes before 0.0."""
    if column.dtype.kind != "f":
        whole: I64 = column.astype(np.int64)
        return whole
    bits = column.astype(np.float64).view(np.int64)
    ordered: I64 = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    return ordered


def sort_order(columns: Mapping[str, Any]) -> I64:
    """Return the permutation that puts tuples in the order of the trace; equal ones stay as they are."""
    key = _sort_key(columns)
    if len(key) == 1:
        by_time: I64 = np.argsort(key[0], kind="stable")
        return by_time
    return np.lexsort(key[::-1])


def samples_of(segment: int, columns: Mapping[str, Any]) -> list[tuple[int, Border]]:
    """Return places of a sorted segment, evenly spread, each with the number of tuples that it stands for."""
    key = _sort_key(columns)
    size = len(key[0])
    step = max(1, size // SAMPLES)
    return [
        (min(step, size - start), (*(int(column[start]) for column in key), segment, start))
        for start in range(0, size, step)
    ]


def choose_borders(rows: list[Row]) -> list[Border]:
    """Choose borders of ranges of about RANGE_TUPLES tuples from the samples of all segments."""
    samples = (row for row in rows if row.kind == "samples")
    found = sorted((tuple(border), int(weight)) for row in samples for weight, border in json.loads(row.stats or ""))
    borders: list[Border] = []
    in_range = 0
    for border, weight in found:
        if in_range >= RANGE_TUPLES:
            borders.append(border)
            in_range = 0
        in_range += weight
    return borders


def count_below(frame: Frame, borders: list[Border]) -> I64:
    """Count the tuples before each border, and (last) all of them."""
    rows = frame.of("sorted").map(partial(_count_below, borders)).stats("below")
    total: I64 = np.sum([row.columns().column("tuples").to_numpy() for row in rows], axis=0, dtype=np.int64)
    return total


def _count_below(borders: list[Border], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    total = np.zeros(len(borders) + 1, np.int64)
    for row in rows_of(batches):
        columns = row.columns()
        total[:-1] += _count_before(row, _arrays(columns), borders)
        total[-1] += columns.num_rows
    yield block("below", {"tuples": total})


def _arrays(columns: pa.RecordBatch) -> dict[str, Any]:
    return {name: columns.column(name).to_numpy() for name in columns.schema.names}


def _count_before(row: Row, columns: Mapping[str, Any], borders: list[Border]) -> I64:
    """Find how many of the sorted tuples of a block come before each border."""
    key = _sort_key(columns)
    times = np.array([border[0] for border in borders], np.int64)
    low, high = (np.searchsorted(key[0], times, side) for side in ("left", "right"))
    for number in np.flatnonzero(low < high).tolist():
        start, stop = int(low[number]), int(high[number])
        *values, segment, place = borders[number]
        for column, value in zip(key[1:], values[1:], strict=True):
            own = column[start:stop]
            start, stop = (
                start + int(np.searchsorted(own, value, "left")),
                start + int(np.searchsorted(own, value, "right")),
            )
        if row.segment < segment:
            start = stop
        elif row.segment == segment:
            start = min(max(start, place - row.place), stop)
        low[number] = start
    return low.astype(np.int64)


def plan_parts(borders: list[Border], below: I64, total: int) -> list[PartRange]:
    """Find for each part the borders it lies between, and how many tuples there come before it."""
    starts = np.concatenate([[0], below])
    ends: list[Border | None] = [*borders, None]
    parts = []
    for first in range(0, total, layout.PART_ROWS):
        last = min(first + layout.PART_ROWS, total)
        low = int(np.searchsorted(starts, first, "right")) - 1
        high = int(np.searchsorted(below, last, "left"))
        parts.append(
            PartRange(
                borders[low - 1] if low else None,
                ends[high] if high < len(ends) else None,
                first - int(starts[low]),
                last - first,
            )
        )
    return parts


def cut_parts(frame: Frame, parts: list[PartRange]) -> Frame:
    """Send sorted tuples to the parts between whose borders they lie, as blocks of kind `part`."""
    return frame.of("sorted").map(partial(_cut, parts))


def _cut(parts: list[PartRange], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    lows = [part.low for part in parts if part.low is not None]
    highs = [part.high for part in parts if part.high is not None]
    for row in rows_of(batches):
        columns = _arrays(row.columns())
        size = len(columns["timestamp"])
        starts, ends = (iter(_count_before(row, columns, borders).tolist()) for borders in (lows, highs))
        for number, part in enumerate(parts):
            start = 0 if part.low is None else next(starts)
            stop = size if part.high is None else next(ends)
            if start < stop:
                cut = {name: column[start:stop] for name, column in columns.items()}
                yield block("part", cut, to=number, segment=row.segment, place=row.place + start)
