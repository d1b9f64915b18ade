"""Stream order: how far the input is from it, the sort on Spark, and the cut after the first tuples."""

import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
from numpy.typing import NDArray

from streamgroup.ingest.segments import Scratch, Segment, iterate, late_rows, whole_file, write_dictionary

__all__ = ["Piece", "count_late", "cut_head", "in_order", "ordered_pieces", "sort_pieces"]

I64 = NDArray[np.int64]

# Tuples that one task sorts, about.
RUN_TUPLES = 1 << 20
_BINS = 4096


class Piece(NamedTuple):
    """Tuples in stream order that lie together: of a segment (whose keys are local), or of a sorted run."""

    path: str
    segment: int | None
    tuples: int


def in_order(segments: list[Segment]) -> bool:
    """Tell whether the tuples of all segments, one after the other, are in time order."""
    return all(segment.in_order for segment in segments) and all(
        before.highest <= after.lowest for before, after in itertools.pairwise(segments)
    )


def _recount(scratch: Scratch, job: tuple[int, int]) -> int:
    segment, before = job
    late = 0
    last: int | None = None
    for batch in iterate(scratch, segment):
        row = batch.column("row").to_numpy().astype(np.int64)
        stamps = batch.column("timestamp").to_numpy()
        found, before = late_rows(stamps, row, before)
        late += found
        last = int(row[-1])
    assert last is not None
    return late


def count_late(context: Any, scratch: Scratch, segments: list[Segment]) -> int:
    """Count the rows of the whole input with a time before the latest one seen until then."""
    late, again = 0, []
    latest = -(2**63)
    for segment in segments:
        if latest > segment.lowest:
            again.append((segment.number, latest))
        else:
            late += segment.late
        latest = max(latest, segment.highest)
    if again:
        late += sum(context.parallelize(again, len(again)).map(partial(_recount, scratch)).collect())
    return late


def ordered_pieces(segments: list[Segment]) -> list[Piece]:
    """Give the pieces of an input that came in order: its segments."""
    return [Piece("", segment.number, segment.tuples) for segment in segments]


def _read_placed(
    scratch: Scratch, segments: list[int], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Give the tuples of segments with their key ids and their place in the input (inside a task)."""
    for numbers in batches:
        for index in numbers.column(0).to_pylist():
            segment = segments[index]
            ids = np.load(scratch.mapping(segment))
            place = index << 32
            for batch in iterate(scratch, segment):
                size = batch.num_rows
                columns = {
                    "timestamp": batch.column("timestamp"),
                    "place": pa.array(np.arange(place, place + size)),
                    "key_id": pa.array(ids[batch.column("local").to_numpy()].view(np.int32)),
                }
                columns |= {
                    name: batch.column(name) for name in ("cost", "value") if name in batch.schema.names
                }
                place += size
                yield pa.RecordBatch.from_pydict(columns)


def _write_sorted(scratch: Scratch, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    run, tuples = int(context.partitionId()), 0
    path = scratch.folder("sorted") / f"{run:06d}.arrow"

    def write(temporary: Any) -> None:
        nonlocal tuples
        writer: Any = None
        for batch in batches:
            kept = batch.drop_columns(["place"])
            writer = writer or ipc.new_file(str(temporary), kept.schema)
            writer.write_batch(kept)
            tuples += batch.num_rows
        if writer is None:
            temporary.touch()
        else:
            writer.close()

    whole_file(path, write)
    yield pa.RecordBatch.from_pydict(
        {"run": [run], "tuples": [tuples], "path": [str(path)]},
        pa.schema([("run", "int64"), ("tuples", "int64"), ("path", "string")]),
    )


def sort_pieces(
    spark: Any, scratch: Scratch, segments: list[Segment], columns: str, tasks: int
) -> list[Piece]:
    """Sort all tuples by (time, place in the input) on Spark; returns the runs in stream order.

    The place is part of the range as of the sort, so that a time with very many tuples is shared between
    tasks. `columns` declares the optional columns there are, as in `, cost float`.
    """
    numbers = [segment.number for segment in segments]
    placed = spark.range(0, len(numbers), 1, len(numbers)).mapInArrow(
        partial(_read_placed, scratch, numbers), f"timestamp long, place long, key_id int{columns}"
    )
    runs = (
        placed.repartitionByRange(tasks, "timestamp", "place")
        .sortWithinPartitions("timestamp", "place")
        .mapInArrow(partial(_write_sorted, scratch), "run long, tuples long, path string")
        .collect()
    )
    return [Piece(path, None, tuples) for _, tuples, path in sorted(map(tuple, runs)) if tuples]


def _histogram(scratch: Scratch, low: int, width: int, segment: int) -> I64:
    counts = np.zeros(_BINS + 2, np.int64)
    for batch in iterate(scratch, segment):
        stamps = batch.column("timestamp").to_numpy()
        # As unsigned words, so that no difference of two int64 overflows.
        above = stamps.view(np.uint64) - np.array([low], np.int64).view(np.uint64)
        bins = np.minimum(above // np.uint64(width), np.uint64(_BINS)).astype(np.int64)
        counts += np.bincount(np.where(stamps < low, -1, bins) + 1, minlength=_BINS + 2)
    return counts


def _count_at(scratch: Scratch, moment: int, segment: int) -> int:
    return sum(
        int((batch.column("timestamp").to_numpy() == moment).sum()) for batch in iterate(scratch, segment)
    )


def cut_head(context: Any, scratch: Scratch, segments: list[Segment], head: int) -> list[Segment]:
    """Keep the first `head` tuples in stream order; segments are written anew, those without tuples dropped.

    The time of the last tuple kept is found by counting in ever finer bins; nothing is sorted for it.
    """
    if sum(segment.tuples for segment in segments) <= head:
        return segments
    numbers = [segment.number for segment in segments]
    low = min(segment.lowest for segment in segments)
    span = max(segment.highest for segment in segments) - low + 1
    earlier = 0
    while span > 1:
        width = -(-span // _BINS)
        counts: I64 = (
            context.parallelize(numbers, len(numbers))
            .map(partial(_histogram, scratch, low, width))
            .treeReduce(np.add)
        )
        sums = counts[0] + np.cumsum(counts[1:-1])
        chosen = int(np.searchsorted(sums, head))
        earlier = int(sums[chosen - 1]) if chosen else int(counts[0])
        low, span = low + chosen * width, width
    at = context.parallelize(numbers, len(numbers)).map(partial(_count_at, scratch, low)).collect()
    left = head - earlier
    jobs = []
    for segment, count in zip(segments, at, strict=True):
        jobs.append((segment, low, min(left, count)))
        left -= min(left, count)
    cut = context.parallelize(jobs, len(jobs)).map(partial(_cut_segment, scratch)).collect()
    return [segment for segment in cut if segment.tuples]


def _cut_segment(scratch: Scratch, job: tuple[Segment, int, int]) -> Segment:
    """Write a segment anew with what lies before `moment`, and the first `quota` tuples at it (inside a
    task).
    """
    segment, moment, quota = job
    counts = np.zeros(segment.keys, np.int64)
    tuples, rows, last_row = 0, 0, -1

    def write(temporary: Any) -> None:
        nonlocal tuples, rows, last_row, quota
        writer: Any = None
        for batch in iterate(scratch, segment.number):
            stamps = batch.column("timestamp").to_numpy()
            at = stamps == moment
            keep = (stamps < moment) | (at & (np.cumsum(at) <= quota))
            quota -= min(quota, int(at.sum()))
            kept = batch.filter(pa.array(keep))
            writer = writer or ipc.new_file(str(temporary), batch.schema)
            if not kept.num_rows:
                continue
            writer.write_batch(kept)
            counts[:] += np.bincount(kept.column("local").to_numpy(), minlength=segment.keys)
            row = kept.column("row").to_numpy().astype(np.int64)
            rows += int(np.count_nonzero(np.diff(row, prepend=last_row)))
            last_row = int(row[-1])
            tuples += kept.num_rows
        writer.close()

    # Cutting what is cut already changes nothing, so the task may be tried again.
    whole_file(scratch.tuples(segment.number), write)
    _replace_dictionary(scratch, segment.number, counts)
    return segment._replace(tuples=tuples, rows=rows)


def _replace_dictionary(scratch: Scratch, segment: int, counts: I64) -> None:
    import pyarrow.parquet as pq

    keys = pq.read_table(scratch.dictionary(segment), columns=["key"]).column("key").combine_chunks()
    write_dictionary(scratch, segment, keys, counts)
