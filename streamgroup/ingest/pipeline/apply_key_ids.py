"""Replaces the local keys of segments by key ids, and sends tuples to the parts in input order or sorted by segment."""

import itertools
import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamgroup.ingest.pipeline import sort_tuples
from streamgroup.ingest.pipeline.arrow_blocks import Row, block, part_slices, rows_of
from streamgroup.ingest.pipeline.key_ids_by_frequency import Ids, send_ids
from streamgroup.ingest.pipeline.tuple_segments import CARRIED, LateRows, Segment, check_unchanged_segment, row_numbers
from streamgroup.ingest.runners.protocol import Frame
from streamgroup.traces import layout

__all__ = ["Group", "group_segments", "in_input_order", "sorted_segments"]

# Tuples of a block of a sorted segment.
SORTED_TUPLES = 1 << 18
# Tuples of one task: at least, and at most except for one segment more.
LEAST_TUPLES = 1 << 19
MOST_TUPLES = 4 << 20


class Group(NamedTuple):
    """The task of a segment, the number of tuples before it in the input, its digest, and the latest time before it if
    its late rows are to be counted (see `sort_tuples.latest_before`).
    """

    task: int
    first: int
    digest: int
    latest: int | None


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


def _join_ids(frame: Frame, ranks: Frame, ids: list[Ids], groups: dict[int, Group]) -> Frame:
    """Bring the blocks of a segment and the ids of its keys to one task."""
    task_of = {number: group.task for number, group in groups.items()}
    addressed = frame.of("tuples", "places").map(partial(_address, groups))
    return addressed.union(send_ids(ranks, ids, task_of)).exchange(max(task_of.values()) + 1)


def _address(groups: dict[int, Group], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    digests = {number: group.digest for number, group in groups.items()}
    for row in rows_of(batches):
        if row.kind == "places":
            check_unchanged_segment(row, digests)
        # A segment that was not there before has no group.
        yield row.moved(groups[row.segment].task if row.segment in groups else 0)


def in_input_order(frame: Frame, ranks: Frame, ids: list[Ids], groups: dict[int, Group]) -> Frame:
    """Send tuples with ids to their parts, where the input has the order of the trace.

    Gives blocks of kinds `part` and `late`.
    """
    return _join_ids(frame, ranks, ids, groups).map(partial(_in_input_order, groups))


def _in_input_order(groups: dict[int, Group], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for segment, blocks, late in _segments(groups, batches):
        at = groups[segment].first
        for columns in blocks:
            size = len(columns["timestamp"])
            for part, start, stop in part_slices(at, size, layout.PART_ROWS):
                cut = {name: column[start:stop] for name, column in columns.items()}
                yield block("part", cut, to=part, segment=segment, place=at + start)
            at += size
        if late:
            yield sort_tuples.late_block(segment, late, to=groups[segment].first // layout.PART_ROWS)


def sorted_segments(frame: Frame, ranks: Frame, ids: list[Ids], groups: dict[int, Group]) -> Frame:
    """Sort each segment by the order of the trace.

    Gives blocks of kinds `sorted`, `samples` of the places in that order, and `late`.
    """
    return _join_ids(frame, ranks, ids, groups).map(partial(_sort, groups))


def _sort(groups: dict[int, Group], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for segment, blocks, late in _segments(groups, batches):
        held = list(blocks)
        if late:
            yield sort_tuples.late_block(segment, late)
        columns = {name: np.concatenate([own[name] for own in held]) for name in held[0]}
        places = sort_tuples.sort_order(columns)
        columns = {name: column[places] for name, column in columns.items()}
        yield block("samples", segment=segment, stats=json.dumps(sort_tuples.samples_of(segment, columns)))
        for start in range(0, len(places), SORTED_TUPLES):
            cut = {name: column[start : start + SORTED_TUPLES] for name, column in columns.items()}
            yield block("sorted", cut, segment=segment, place=start)


def _segments(
    groups: dict[int, Group], batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, Iterator[dict[str, Any]], LateRows | None]]:
    """Yield the segments of a task, each with the columns of its blocks, in the order of the input.

    What counts the late rows of a segment, if anything does, has counted them when all blocks have been taken.
    """
    rows = sorted(rows_of(batches), key=lambda row: (row.segment, row.kind, row.place))
    for segment, own in itertools.groupby(rows, key=lambda row: row.segment):
        kinds = {kind: list(group) for kind, group in itertools.groupby(own, key=lambda row: row.kind)}
        places = kinds["places"][0].columns().column("place").to_numpy()
        given = pa.Table.from_batches([row.columns() for row in kinds["ids"]])
        of_local = {name: given.column(name).to_numpy()[places] for name in given.column_names}
        latest = groups[segment].latest
        late = None if latest is None else LateRows(latest)
        yield segment, (_with_ids(row, of_local, late) for row in kinds["tuples"]), late


def _with_ids(row: Row, of_local: dict[str, Any], late: LateRows | None) -> dict[str, Any]:
    block = row.columns()
    local, stamps = block.column("local").to_numpy(), block.column("timestamp").to_numpy()
    if late:
        late.add(stamps, row_numbers(row, block))
    columns = {"timestamp": stamps, "key_id": of_local["id"][local]}
    if "by_bytes" in of_local:
        columns["by_bytes"] = of_local["by_bytes"][local]
    return columns | {name: block.column(name).to_numpy() for name in CARRIED if name in block.schema.names}
