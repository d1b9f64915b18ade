"""Joins segments with the ids of their keys, and replaces their local keys by these."""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from streamgroup.ingest.pipeline.arrow_blocks import Row, rows_of
from streamgroup.ingest.pipeline.key_ids_by_frequency import Ids, send_ids
from streamgroup.ingest.pipeline.tuple_segments import CARRIED, LateRows, check_unchanged_segment, row_numbers
from streamgroup.ingest.runners.protocol import Frame

__all__ = ["Group", "join_ids", "segments_with_ids"]


class Group(NamedTuple):
    """The task of a segment, the number of tuples before it in the input, its digest, and the latest time before it if
    its late rows are to be counted (see `count_late_rows.latest_before`).
    """

    task: int
    first: int
    digest: int
    latest: int | None


def join_ids(frame: Frame, ranks: Frame, ids: list[Ids], groups: dict[int, Group]) -> Frame:
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


def segments_with_ids(
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
