"""Stream order: how far the input is from it, the sort, and the cut after the first tuples."""

import itertools
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
from numpy.typing import NDArray

from streamgroup.ingest.segments import (
    CARRIED,
    LateRows,
    Marked,
    Scratch,
    Segment,
    iterate,
    map_array,
    map_table,
    whole_file,
    write_table,
)
from streamgroup.ingest.tasks import groups, run_all

__all__ = ["Piece", "count_late", "cut_head", "in_order", "ordered_pieces", "sort_pieces"]

I64 = NDArray[np.int64]

# Tuples that one task merges, about.
RUN_TUPLES = 1 << 20
# Places to cut at that the driver sees of each segment.
SAMPLES = 256
# Tuples below which segments share a task.
TASK_TUPLES = 1 << 19
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


def _recount(scratch: Scratch, job: tuple[int, int]) -> Marked:
    segment, before = job
    late = LateRows(before)
    for batch in iterate(scratch, segment):
        late.add(batch.column("timestamp").to_numpy(), batch.column("row").to_numpy().astype(np.int64))
    return late.found


def count_late(context: Any, scratch: Scratch, segments: list[Segment]) -> int:
    """Count the rows of the whole input of which a tuple has a time before the latest one seen until then."""
    again = []
    latest = -(2**63)
    for segment in segments:
        if latest > segment.lowest:
            again.append((segment.number, latest))
        latest = max(latest, segment.highest)
    found = {segment.number: segment.late for segment in segments}
    if again:
        sizes = {segment.number: segment.tuples for segment in segments}
        weights = [sizes[number] for number, _ in again]
        recounted = run_all(context, partial(_recount, scratch), again, weights, TASK_TUPLES)
        found |= {number: late for (number, _), late in zip(again, recounted, strict=True)}
    return sum(_once(segments, [found[segment.number] for segment in segments]))


def _once(segments: list[Segment], found: list[Marked]) -> list[int]:
    """Count the marked rows of each segment, a row that goes on over borders in the first one that marks it."""
    counts = []
    before = False
    for segment, marked in zip(segments, found, strict=True):
        before &= segment.continued
        counts.append(marked.rows - (before and marked.first))
        alone = segment.rows + segment.continued == 1
        before = marked.last or (before and alone)
    return counts


def ordered_pieces(segments: list[Segment]) -> list[Piece]:
    """Give the pieces of an input that came in order: its segments."""
    return [Piece("", segment.number, segment.tuples) for segment in segments]


class _Border(NamedTuple):
    """A place in the order of all tuples: time in us, segment (as a number from 0), place within it when sorted."""

    timestamp: int
    segment: int
    place: int


def _sorted_path(scratch: Scratch, segment: int) -> Path:
    return scratch.folder("sorted") / f"{segment:012d}.arrow"


def _sort_segment(scratch: Scratch, job: tuple[int, int]) -> list[_Border]:
    """Sort a segment by time, ties in the order of the input, with key ids; gives places to cut at."""
    index, segment = job
    ids = np.load(scratch.mapping(segment))
    table = pa.Table.from_batches(iterate(scratch, segment))
    stamps = table.column("timestamp").to_numpy()
    order = np.argsort(stamps, kind="stable")
    columns = {"timestamp": stamps[order], "key_id": ids[table.column("local").to_numpy()[order]]}
    present = [name for name in CARRIED if name in table.schema.names]
    columns |= {name: table.column(name).to_numpy()[order] for name in present}
    write_table(_sorted_path(scratch, segment), columns)
    places = range(0, len(order), max(1, len(order) // SAMPLES))
    return [_Border(int(columns["timestamp"][place]), index, place) for place in places]


def _place(stamps: I64, index: int, border: _Border) -> int:
    """Find how many tuples of a sorted segment lie before a border."""
    if index == border.segment:
        return border.place
    side: Literal["left", "right"] = "right" if index < border.segment else "left"
    return int(np.searchsorted(stamps, border.timestamp, side))


def _merge(scratch: Scratch, segments: list[int], job: tuple[int, _Border, _Border | None]) -> Piece:
    """Bring the tuples of all segments between two borders into one run (inside a task)."""
    number, low, high = job
    slices = []
    for index, segment in enumerate(segments):
        table = map_table(_sorted_path(scratch, segment))
        stamps = table.column("timestamp").to_numpy()
        start = _place(stamps, index, low)
        stop = len(stamps) if high is None else _place(stamps, index, high)
        if start < stop:
            slices.append(table.slice(start, stop - start))
    # Slices lie in the order of the input, so a stable sort by time keeps that order among ties.
    whole = pa.Table.from_batches(slices)
    order = np.argsort(whole.column("timestamp").to_numpy(), kind="stable")
    path = scratch.folder("runs") / f"{number:08d}.arrow"
    write_table(path, {name: whole.column(name).to_numpy()[order] for name in whole.schema.names})
    return Piece(str(path), None, len(order))


def sort_pieces(context: Any, scratch: Scratch, segments: list[Segment], tasks: int) -> list[Piece]:
    """Sort all tuples by (time, place in the input); returns the runs in stream order.

    Each segment is sorted on its own; then each task merges what lies between two borders. A border is a place in
    the order, not a time, so that a time with very many tuples is shared between tasks.
    """
    jobs = list(enumerate(segment.number for segment in segments))
    weights = [segment.tuples for segment in segments]
    found = run_all(context, partial(_sort_segment, scratch), jobs, weights, TASK_TUPLES)
    borders = sorted(itertools.chain.from_iterable(found))
    wanted = max(tasks, sum(segment.tuples for segment in segments) // RUN_TUPLES)
    step = max(1, len(borders) // wanted)
    chosen = [*borders[::step][:wanted], None]
    ranges = [(number, low, high) for number, (low, high) in enumerate(itertools.pairwise(chosen))]
    merge = partial(_merge, scratch, [number for _, number in jobs])
    return run_all(context, merge, ranges)


def _histograms(scratch: Scratch, low: int, width: int, numbers: list[int]) -> I64:
    counts = np.zeros(_BINS + 2, np.int64)
    for batch in itertools.chain.from_iterable(iterate(scratch, number) for number in numbers):
        stamps = batch.column("timestamp").to_numpy()
        # As unsigned words, so that no difference of two int64 overflows.
        above = stamps.view(np.uint64) - np.array([low], np.int64).view(np.uint64)
        bins = np.minimum(above // np.uint64(width), np.uint64(_BINS)).astype(np.int64)
        counts += np.bincount(np.where(stamps < low, -1, bins) + 1, minlength=_BINS + 2)
    return counts


def _count_at(scratch: Scratch, moment: int, segment: int) -> int:
    return sum(int((batch.column("timestamp").to_numpy() == moment).sum()) for batch in iterate(scratch, segment))


def cut_head(context: Any, scratch: Scratch, segments: list[Segment], head: int) -> list[Segment]:
    """Keep the first `head` tuples in stream order; segments are written anew, those without tuples dropped.

    The time of the last tuple kept is found by counting in ever finer bins; nothing is sorted for it.
    """
    if sum(segment.tuples for segment in segments) <= head:
        return segments
    numbers = [segment.number for segment in segments]
    weights = [segment.tuples for segment in segments]
    together = groups(numbers, weights, TASK_TUPLES)
    low = min(segment.lowest for segment in segments)
    span = max(segment.highest for segment in segments) - low + 1
    earlier = 0
    while span > 1:
        width = -(-span // _BINS)
        histogram = partial(_histograms, scratch, low, width)
        counts: I64 = context.parallelize(together, len(together)).map(histogram).treeReduce(np.add)
        sums = counts[0] + np.cumsum(counts[1:-1])
        chosen = int(np.searchsorted(sums, head))
        earlier = int(sums[chosen - 1]) if chosen else int(counts[0])
        low, span = low + chosen * width, width
    at = run_all(context, partial(_count_at, scratch, low), numbers, weights, TASK_TUPLES)
    left = head - earlier
    jobs = []
    for segment, count in zip(segments, at, strict=True):
        jobs.append((segment, low, min(left, count)))
        left -= min(left, count)
    cut = run_all(context, partial(_cut_segment, scratch), jobs, weights, TASK_TUPLES)
    rows = _once(segments, [kept for _, kept in cut])
    return [
        segment._replace(tuples=tuples, rows=own)
        for segment, (tuples, _), own in zip(segments, cut, rows, strict=True)
        if tuples
    ]


def _cut_segment(scratch: Scratch, job: tuple[Segment, int, int]) -> tuple[int, Marked]:
    """Write a segment anew with what lies before `moment`, and the first `quota` tuples at it (inside a task).

    Gives the tuples kept, and the rows of which one was.
    """
    segment, moment, quota = job
    places = map_array(scratch.places(segment.number))
    counts = np.zeros(segment.keys, np.int64)
    has = np.zeros(segment.rows + segment.continued, bool)

    def write(temporary: Any) -> None:
        nonlocal quota
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
            counts[:] += np.bincount(places[kept.column("local").to_numpy()], minlength=segment.keys)
            has[kept.column("row").to_numpy()] = True
        writer.close()

    # Cutting what is cut already changes nothing, so the task may be tried again.
    whole_file(scratch.tuples(segment.number), write)
    keys = map_table(scratch.dictionary(segment.number)).column("key")
    write_table(scratch.dictionary(segment.number), {"key": keys, "count": counts})
    return int(counts.sum()), Marked(int(has.sum()), bool(has[0]), bool(has[-1]))
