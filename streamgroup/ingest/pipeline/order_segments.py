"""Puts tuples in order, with the ids of their keys: sends them to the parts in input order, or sorts each segment."""

import json
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from streamgroup.ingest.pipeline import sort_tuples
from streamgroup.ingest.pipeline.apply_key_ids import Group, join_ids, segments_with_ids
from streamgroup.ingest.pipeline.arrow_blocks import block, part_slices
from streamgroup.ingest.pipeline.count_late_rows import late_block
from streamgroup.ingest.pipeline.key_ids_by_frequency import Ids
from streamgroup.ingest.pipeline.tuple_segments import Segment
from streamgroup.ingest.runners.protocol import Frame
from streamgroup.traces import layout

__all__ = ["group_segments", "in_input_order", "sorted_segments"]

# Tuples of a block of a sorted segment.
SORTED_TUPLES = 1 << 18
# Tuples of one task: at least, and at most except for one segment more.
LEAST_TUPLES = 1 << 19
MOST_TUPLES = 4 << 20


def group_segments(segments: list[Segment], parallelism: int, latest: Mapping[int, int]) -> dict[int, Group]:
    """Distribute segments, in input order, over tasks; `latest` by number, of those with late rows to count.

    Of these the steps give a block of kind `late` each.
    """
    aim = sum(segment.tuples for segment in segments) // (4 * parallelism)
    aim = max(LEAST_TUPLES, min(MOST_TUPLES, aim))
    groups: dict[int, Group] = {}
    task, held, first = 0, 0, 0
    for segment in segments:
        if held >= aim:
            task, held = task + 1, 0
        groups[segment.number] = Group(task, first, segment.digest, latest.get(segment.number))
        held += segment.tuples
        first += segment.tuples
    return groups


def in_input_order(frame: Frame, ranks: Frame, ids: list[Ids], groups: dict[int, Group]) -> Frame:
    """Send tuples with ids to their parts, where the input has the order of the trace.

    Gives blocks of kinds `part` and `late`.
    """
    return join_ids(frame, ranks, ids, groups).map(partial(_in_input_order, groups))


def _in_input_order(groups: dict[int, Group], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for segment, blocks, late in segments_with_ids(groups, batches):
        at = groups[segment].first
        for columns in blocks:
            size = len(columns["timestamp"])
            for part, start, stop in part_slices(at, size, layout.PART_ROWS):
                cut = {name: column[start:stop] for name, column in columns.items()}
                yield block("part", cut, to=part, segment=segment, place=at + start)
            at += size
        if late:
            yield late_block(segment, late, to=groups[segment].first // layout.PART_ROWS)


def sorted_segments(frame: Frame, ranks: Frame, ids: list[Ids], groups: dict[int, Group]) -> Frame:
    """Sort each segment by the order of the trace.

    Gives blocks of kinds `sorted`, `samples` of the places in that order, and `late`.
    """
    return join_ids(frame, ranks, ids, groups).map(partial(_sort, groups))


def _sort(groups: dict[int, Group], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for segment, blocks, late in segments_with_ids(groups, batches):
        held = list(blocks)
        if late:
            yield late_block(segment, late)
        columns = {name: np.concatenate([own[name] for own in held]) for name in held[0]}
        places = sort_tuples.sort_order(columns)
        columns = {name: column[places] for name, column in columns.items()}
        yield block("samples", segment=segment, stats=json.dumps(sort_tuples.samples_of(segment, columns)))
        for start in range(0, len(places), SORTED_TUPLES):
            cut = {name: column[start : start + SORTED_TUPLES] for name, column in columns.items()}
            yield block("sorted", cut, segment=segment, place=start)
