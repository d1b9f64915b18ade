"""Whether the input is in time order, and how many of its rows are late: a tuple came before with a later time."""

import itertools
import json
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from streamgroup.ingest.pipeline.arrow_blocks import Row, block, rows_of
from streamgroup.ingest.pipeline.tuple_segments import LateRows, MarkedRows, Segment, row_numbers
from streamgroup.ingest.runners.protocol import Frame

__all__ = ["count_late", "count_once", "in_order", "late_block", "late_rows", "latest_before"]


def in_order(segments: list[Segment]) -> bool:
    """Report whether the tuples of all segments, one after the other, are in time order."""
    return all(segment.in_order for segment in segments) and all(
        before.highest <= after.lowest for before, after in itertools.pairwise(segments)
    )


def latest_before(segments: list[Segment]) -> dict[int, int]:
    """Return, for each segment with rows that earlier segments make late, the latest time before it."""
    before: dict[int, int] = {}
    latest = -(2**63)
    for segment in segments:
        if latest > segment.lowest:
            before[segment.number] = latest
        latest = max(latest, segment.highest)
    return before


def count_late(segments: list[Segment], rows: list[Row]) -> int:
    """Count the rows of the whole input of which a tuple has a time before the latest one seen until then.

    `rows` of kind `late` are of the segments of `latest_before`; the others have counted their own.
    """
    found = {segment.number: segment.late for segment in segments}
    found |= {row.segment: MarkedRows(*json.loads(row.stats or "")) for row in rows if row.kind == "late"}
    return sum(count_once(segments, [found[segment.number] for segment in segments]))


def late_rows(frame: Frame, segments: list[Segment]) -> list[Row]:
    """Find the late rows of segments in a pass of its own, where no other step reads all tuples."""
    before = latest_before(segments)
    return frame.of("tuples").map(partial(_count_late, before)).stats("late") if before else []


def late_block(segment: int, late: LateRows, to: int = 0) -> pa.RecordBatch:
    """Make the block with the late rows of a segment."""
    return block("late", to=to, segment=segment, stats=json.dumps(late.found))


def _count_late(before: dict[int, int], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # The blocks of a segment follow each other, in the order in which they were read.
    for segment, rows in itertools.groupby(rows_of(batches), key=lambda row: row.segment):
        if segment in before:
            late = LateRows(before[segment])
            for row in rows:
                columns = row.columns()
                late.add(columns.column("timestamp").to_numpy(), row_numbers(row, columns))
            yield late_block(segment, late)


def count_once(segments: list[Segment], found: list[MarkedRows]) -> list[int]:
    """Count the marked rows of each segment, a row that goes on over borders in the first one that marks it."""
    counts = []
    before = False
    for segment, marked in zip(segments, found, strict=True):
        before &= segment.continued
        counts.append(marked.rows - (before and marked.first))
        alone = segment.rows + segment.continued == 1
        before = marked.last or (before and alone)
    return counts
