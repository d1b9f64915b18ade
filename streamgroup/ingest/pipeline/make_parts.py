"""Runs all steps from segments to the parts of a trace."""

from functools import partial
from typing import NamedTuple

from streamgroup.base.errors import RunError
from streamgroup.base.storage.output_on_disk_or_object_store import remove_old
from streamgroup.base.storage.storage_path import StoragePath
from streamgroup.ingest.pipeline import count_late_rows, key_ids_by_frequency, order_segments, sort_tuples, write_parts
from streamgroup.ingest.pipeline.arrow_blocks import Row
from streamgroup.ingest.pipeline.first_tuples import cut_head
from streamgroup.ingest.pipeline.tuple_segments import CHANGED, Segment
from streamgroup.ingest.runners.protocol import Frame, Runner
from streamgroup.traces import layout
from streamgroup.traces.write_trace_files import PartStats, join_stats

__all__ = ["Made", "Rejects", "Wanted", "make_parts"]


class Made(NamedTuple):
    """What the parts of a trace hold: statistics of the tuples, how many keys there are and the count of the first,
    the rows of the input that are in it; whether these came in order, and how many came late (None: a table has none).
    """

    stats: PartStats
    keys: int
    top: int
    rows: int
    in_order: bool | None
    late: int | None


class Rejects(NamedTuple):
    """The rejects of all splits that have some, and how many there are."""

    of_split: dict[int, write_parts.RejectsOf]
    number: int


class Wanted(NamedTuple):
    """The trace to make: of an input that is `ordered` (which decides among tuples of one time) or has no order;
    with its times or, if it is not `timed`, with places in the stream for times; of its `first` tuples, or all (None).
    """

    ordered: bool = True
    timed: bool = True
    first: int | None = None


def make_parts(
    runner: Runner, frame: Frame, segments: list[Segment], folder: StoragePath, rejects: Rejects, wanted: Wanted
) -> Made:
    """Write the parts of a trace from a kept frame of segments."""
    ordered, first, read, given = wanted.ordered, wanted.first, frame, segments
    in_order = count_late_rows.in_order(segments) if ordered else None
    cut_to_head = first is not None and first < sum(segment.tuples for segment in segments)
    late: list[Row] = []
    if cut_to_head:
        assert first is not None
        if in_order is False:
            late = runner.run(partial(count_late_rows.late_rows, frame, segments), 1, "checking the order")
        cutting = partial(cut_head, read, segments, first, ordered=ordered)
        frame, segments = runner.run(cutting, 1, "cutting to the head")
    borders = key_ids_by_frequency.choose_key_ranges(segments, runner.parallelism)
    ranks = key_ids_by_frequency.count_keys(
        key_ids_by_frequency.send_keys_to_ranges(frame, segments, borders), by_bytes=not ordered
    ).keep()
    found = runner.run(lambda: key_ids_by_frequency.assign_ids(ranks), len(borders) + 1, "ranking keys")
    counts_late = in_order is False and not cut_to_head
    groups = order_segments.group_segments(
        segments, runner.parallelism, count_late_rows.latest_before(segments) if counts_late else {}
    )
    total = sum(segment.tuples for segment in segments)
    part_ranges = [(0, min(layout.PART_ROWS, total - start)) for start in range(0, total, layout.PART_ROWS)]
    if in_order or len(part_ranges) == 1:
        tuple_parts = order_segments.in_input_order(frame, ranks, found.ids, groups)
    else:
        in_segments = order_segments.sorted_segments(frame, ranks, found.ids, groups).keep()
        tasks = max(group.task for group in groups.values()) + 1
        of_segments = runner.run(lambda: in_segments.stats("samples", "late"), tasks, "sorting")
        late += of_segments
        borders_of_time = sort_tuples.choose_borders(of_segments)
        below = runner.run(lambda: sort_tuples.count_below(in_segments, borders_of_time), tasks, "counting")
        spans = sort_tuples.plan_parts(borders_of_time, below[:-1], total)
        part_ranges = [(span.skip, span.tuples) for span in spans]
        tuple_parts = sort_tuples.cut_parts(in_segments, spans)
    keys = -(-found.keys // layout.KEY_PART_ROWS)
    output = write_parts.Output(folder, part_ranges, keys, found.not_text, wanted.timed)
    blocks = tuple_parts.union(write_parts.send_keys(ranks, found.ids, len(part_ranges)))
    number = len(part_ranges) + keys
    if rejects.number:
        blocks = blocks.union(write_parts.send_rejects(read, rejects.of_split, number))
        number += -(-rejects.number // write_parts.REJECT_ROWS)
    remove_old(folder, marker=layout.MANIFEST)
    rows = runner.run(lambda: write_parts.write_parts(blocks, output, number), number, "writing")
    write_parts.check_visible(folder, tuples=len(part_ranges), keys=keys, rejects=number - len(part_ranges) - keys)
    late += rows
    written = sorted((row for row in rows if row.kind == "written"), key=lambda row: row.place)
    stats = join_stats(write_parts.read_part_stats(row) for row in written if row.stats)
    if len(written) != number or stats.rows != total:
        what = f"{stats.rows} tuples in {len(written)} parts were written, not {total} in {number}"
        raise RunError(what, CHANGED)
    kept = sum(segment.rows for segment in segments)
    return Made(
        stats, found.keys, found.top, kept, in_order, count_late_rows.count_late(given, late) if ordered else None
    )
