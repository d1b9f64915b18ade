"""Cuts segments to the first tuples of the stream (`--head`), before keys are counted."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.ingest.pipeline.arrow_blocks import Row, block, rows_of
from streamgroup.ingest.pipeline.count_late_rows import count_once
from streamgroup.ingest.pipeline.sort_tuples import sortable_numbers
from streamgroup.ingest.pipeline.tuple_segments import (
    CARRIED,
    MarkedRows,
    Segment,
    read_segment,
    row_numbers,
    segment_blocks,
)
from streamgroup.ingest.runners.protocol import Frame

__all__ = ["cut_head"]

I64 = NDArray[np.int64]

_BINS = 4096


def cut_head(frame: Frame, segments: list[Segment], head: int, *, ordered: bool) -> tuple[Frame, list[Segment]]:
    """Keep the first `head` tuples of all in stream order, fewer than there are; gives a kept frame and its segments.

    The time of the last tuple kept is found by counting in ever finer bins; nothing is sorted for it. Of the tuples at
    that time those are kept that come first in the input or, if that is not `ordered`, by key bytes, cost, value and
    weight; these are brought to one task.
    """
    low = min(segment.lowest for segment in segments)
    span = max(segment.highest for segment in segments) - low + 1
    earlier = 0
    while span > 1:
        width = -(-span // _BINS)
        counts = _sum(frame.of("tuples").map(partial(_histogram, low, width)))
        sums = counts[0] + np.cumsum(counts[1:-1])
        chosen = int(np.searchsorted(sums, head))
        earlier = int(sums[chosen - 1]) if chosen else int(counts[0])
        low, span = low + chosen * width, width
    if ordered:
        at = {row.segment: int(row.stats or 0) for row in frame.of("tuples").map(partial(_count_at, low)).stats("at")}
        left, quotas = head - earlier, dict[int, Any]()
        for segment in segments:
            quotas[segment.number] = min(left, at.get(segment.number, 0))
            left -= quotas[segment.number]
    else:
        cut_ties = partial(_ties, low, head - earlier)
        ties = frame.of("tuples", "dictionary", "places", "segment").map(cut_ties).exchange(1)
        found = ties.map(partial(_first_ties, head - earlier)).stats("kept")
        quotas = {row.segment: row.columns().column("at").to_numpy() for row in found}
    cut = frame.of("tuples", "dictionary", "places", "segment").map(partial(_cut, low, quotas)).keep()
    return cut, _segments_left(segments, cut.stats("segment", "marked"))


def _segments_left(segments: list[Segment], rows: list[Row]) -> list[Segment]:
    """Return the segments that are left; a row that spans segments counts in the first one."""
    cut = {row.segment: read_segment(row) for row in rows if row.kind == "segment"}
    marked = {row.segment: MarkedRows(*json.loads(row.stats or "")) for row in rows if row.kind == "marked"}
    nothing = MarkedRows(0, first=False, last=False)
    own = count_once(segments, [marked.get(segment.number, nothing) for segment in segments])
    kept = dict(zip((segment.number for segment in segments), own, strict=True))
    return [cut[number]._replace(rows=kept[number]) for number in sorted(cut)]


def _sum(frame: Frame) -> I64:
    counts = [row.columns().column("tuples").to_numpy() for row in frame.stats("histogram")]
    total: I64 = np.sum(counts, axis=0, dtype=np.int64)
    return total


def _histogram(low: int, width: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counts = np.zeros(_BINS + 2, np.int64)
    for row in rows_of(batches):
        stamps = row.columns().column("timestamp").to_numpy()
        # As unsigned words, so that no difference of two int64 overflows.
        above = stamps.view(np.uint64) - np.array([low], np.int64).view(np.uint64)
        bins = np.minimum(above // np.uint64(width), np.uint64(_BINS)).astype(np.int64)
        counts += np.bincount(np.where(stamps < low, -1, bins) + 1, minlength=_BINS + 2)
    yield block("histogram", {"tuples": counts})


def _count_at(moment: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counts: dict[int, int] = {}
    for row in rows_of(batches):
        found = int((row.columns().column("timestamp").to_numpy() == moment).sum())
        counts[row.segment] = counts.get(row.segment, 0) + found
    for segment, count in counts.items():
        yield block("at", segment=segment, stats=str(count))


def _by_segment(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Segment, list[Row], pa.RecordBatch, NDArray[Any]]]:
    """Yield the segments of a partition with their tuples, dictionary and places: blocks lie as they were made."""
    tuples: list[Row] = []
    others: dict[str, Row] = {}
    for row in rows_of(batches):
        if row.kind == "tuples":
            tuples.append(row)
            continue
        others[row.kind] = row
        if row.kind == "segment":
            places = others["places"].columns().column("place").to_numpy()
            yield read_segment(row), tuples, others["dictionary"].columns(), places
            tuples = []


def _ties(moment: int, quota: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the tuples of each segment at a moment that may be among the first `quota` of all."""
    for segment, rows, dictionary, places in _by_segment(batches):
        at, found = 0, []
        for row in rows:
            own = row.columns()
            here = np.flatnonzero(own.column("timestamp").to_numpy() == moment)
            keys = dictionary.column("key").take(pa.array(places[own.column("local").to_numpy()[here]]))
            given = {"key": keys, "at": np.arange(at, at + len(here))}
            names = [name for name in CARRIED if name in own.schema.names]
            found.append(pa.table(given | {name: own.column(name).take(pa.array(here)) for name in names}))
            at += len(here)
        if at:
            first = _first_tuples(pa.concat_tables(found), quota)
            yield block(
                "ties",
                dict(zip(first.column_names, first.combine_chunks().columns, strict=True)),
                segment=segment.number,
            )


def _first_tuples(ties: pa.Table, quota: int) -> pa.Table:
    """Keep the first tuples by key bytes (null first), cost, value and weight, in the order in which they came."""
    key = ties.column("key")
    # The null key before all others: false is before true.
    columns = {"named": key.is_valid(), "key": key}
    columns |= {name: sortable_numbers(ties.column(name).to_numpy()) for name in CARRIED if name in ties.column_names}
    columns["number"] = np.arange(len(ties))
    order = pa.table(columns).sort_by([(name, "ascending") for name in columns])
    return ties.take(pa.array(np.sort(order.column("number").to_numpy()[:quota])))


def _first_ties(quota: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sorted(rows_of(batches), key=lambda row: row.segment)
    tables = [pa.table(row.columns()) for row in rows]
    if not tables:
        return
    numbers = [np.full(len(table), row.segment) for row, table in zip(rows, tables, strict=True)]
    whole = pa.concat_tables(tables).append_column("segment", pa.array(np.concatenate(numbers)))
    kept = _first_tuples(whole, quota)
    segments, places = (kept.column(name).to_numpy() for name in ("segment", "at"))
    for segment in np.unique(segments).tolist():
        yield block("kept", {"at": places[segments == segment]}, segment=segment)


def _cut(moment: int, quotas: dict[int, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for segment, rows, dictionary, places in _by_segment(batches):
        quota = quotas.get(segment.number, 0)
        counts = np.zeros(dictionary.num_rows, np.int64)
        has = np.zeros(segment.rows + segment.continued, bool)
        ties = 0
        for row in rows:
            columns = row.columns()
            stamps = columns.column("timestamp").to_numpy()
            at = stamps == moment
            keep = stamps < moment
            own_ties = np.arange(ties, ties + int(at.sum()))
            keep[at] = own_ties < quota if isinstance(quota, int) else np.isin(own_ties, quota)
            ties += int(at.sum())
            if not keep.any():
                continue
            kept = columns.filter(pa.array(keep))
            given = dict(zip(kept.schema.names, kept.columns, strict=True))
            own = row_numbers(row, columns)[keep]
            given["row"] = own.astype(np.uint32)
            yield block("tuples", given, segment=segment.number, place=row.place)
            counts += np.bincount(places[kept.column("local").to_numpy()], minlength=len(counts))
            has[own] = True
        if not counts.any():
            continue
        left = np.flatnonzero(counts)
        # Keys without a tuple left keep any place: nothing reads it.
        index = np.zeros(len(counts), np.int64)
        index[left] = np.arange(len(left))
        keys = dictionary.column("key").take(pa.array(left))
        cut = segment._replace(tuples=int(counts.sum()), keys=len(left), key_bytes=keys.nbytes)
        yield from segment_blocks(cut, keys, counts[left], index[places])
        marked = MarkedRows(int(has.sum()), bool(has[0]), bool(has[-1]))
        yield block("marked", segment=segment.number, stats=json.dumps(marked))
