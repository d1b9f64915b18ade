"""Writes the parts of a trace, one task each, with borders where the format puts them."""

import itertools
import json
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamgroup.base.errors import EnvironmentFault
from streamgroup.base.storage.storage_path import StoragePath
from streamgroup.ingest.pipeline.arrow_blocks import Row, block, part_slices, rows_of
from streamgroup.ingest.pipeline.key_ids_by_frequency import Ids
from streamgroup.ingest.pipeline.sort_tuples import sort_order
from streamgroup.ingest.pipeline.tuple_segments import CARRIED
from streamgroup.ingest.runners.protocol import Frame
from streamgroup.ingest.runners.stop_threads import check_stopped
from streamgroup.traces import layout
from streamgroup.traces.read_parts import list_parts
from streamgroup.traces.tuple_blocks import Columns, KeyColumns
from streamgroup.traces.write_trace_files import PartStats, write_keys_part, write_part, write_rejects

__all__ = ["Output", "RejectsOf", "check_visible", "read_part_stats", "send_keys", "send_rejects", "write_parts"]

REJECT_ROWS = 1 << 20


class RejectsOf(NamedTuple):
    """Where the rejects of a split are: the input's path as it is shown, the number of its lines before the split, and
    the number of rejects of the splits before.
    """

    file: str
    line: int
    first: int


class Output(NamedTuple):
    """The output: the folder of the trace; for each part of tuples, how many to skip and then to take; the number of
    parts of keys, whether a key is not UTF-8, and whether tuples have times.
    """

    folder: StoragePath
    tuples: list[tuple[int, int]]
    keys: int
    not_text: bool
    timed: bool


def send_keys(ranks: Frame, ids: list[Ids], first: int) -> Frame:
    """Send the keys of all ranges to the parts of `keys/`, which are numbered from `first` on."""
    return ranks.of("table").map(partial(_send_keys, ids, first))


def _send_keys(ids: list[Ids], first: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for row in rows_of(batches):
        columns = row.columns()
        own = ids[row.to].of(np.arange(row.place, row.place + columns.num_rows))
        # Within a range ids ascend.
        part = own // np.uint32(layout.KEY_PART_ROWS)
        bounds = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(own)]
        for start, stop in itertools.pairwise(bounds):
            cut = columns.slice(start, stop - start)
            given = {"id": own[start:stop], **dict(zip(cut.schema.names, cut.columns, strict=True))}
            yield block("key", given, to=first + int(part[start]), segment=row.to, place=row.place + start)


def send_rejects(frame: Frame, rejects: dict[int, RejectsOf], first: int) -> Frame:
    """Send rejects to the parts of `rejects/`, which are numbered from `first` on."""
    return frame.of("rejects").map(partial(_send_rejects, rejects, first))


def _send_rejects(
    rejects: dict[int, RejectsOf], first: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for row in rows_of(batches):
        own, columns = rejects[row.segment], row.columns()
        for part, start, stop in part_slices(own.first + row.place, columns.num_rows, REJECT_ROWS):
            cut = columns.slice(start, stop - start)
            lines = cut.column("line").to_numpy() + own.line
            given = {"file": [own.file] * len(lines), "line": lines}
            given |= {name: cut.column(name) for name in ("reason", "text")}
            yield block("reject", given, to=first + part, segment=row.segment, place=row.place + start)


def write_parts(frame: Frame, output: Output, parts: int) -> list[Row]:
    """Write all parts; gives a row of kind `written` for each, with its number and, for tuples, its statistics.

    Rows of kind `late` come through as they are.
    """
    return frame.exchange(parts).map(partial(_write, output)).stats("written", "late")


def _write(output: Output, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sorted(rows_of(batches), key=lambda row: (row.to, row.segment, row.place))
    yield from (row.moved(row.to) for row in rows if row.kind == "late")
    parts = (row for row in rows if row.kind != "late")
    for number, group in itertools.groupby(parts, key=lambda row: row.to):
        yield _write_part(output, number, list(group))


def _write_part(output: Output, number: int, rows: list[Row]) -> pa.RecordBatch:
    if rows[0].kind == "part":
        path = output.folder / layout.TUPLES / layout.part_name(number)
        chunks = _tuples(rows, *output.tuples[number], number * layout.PART_ROWS)
        if not output.timed:
            chunks = _with_places(chunks, number * layout.PART_ROWS)
        return part_written(number, write_part(path, chunks))
    if rows[0].kind == "key":
        own = number - len(output.tuples)
        path = output.folder / layout.KEYS / layout.part_name(own)
        write_keys_part(path, own * layout.KEY_PART_ROWS, _keys(rows), key_bytes=output.not_text)
    else:
        own = number - len(output.tuples) - output.keys
        table = pa.Table.from_batches([row.columns() for row in rows]).combine_chunks()
        write_rejects(output.folder / layout.REJECTS / layout.part_name(own), table)
    return block("written", place=number)


def part_written(number: int, stats: PartStats) -> pa.RecordBatch:
    """Make the row of kind `written` of a part of tuples."""
    digests = [digest.hex() for digest in stats.block_digests]
    return block("written", place=number, stats=json.dumps(stats._replace(block_digests=digests)))  # type: ignore[arg-type]


def check_visible(folder: StoragePath, *, tuples: int, keys: int, rejects: int = 0) -> None:
    """Raise EnvironmentFault unless all parts that tasks have written are visible from here."""
    for name, number in ((layout.TUPLES, tuples), (layout.KEYS, keys), (layout.REJECTS, rejects)):
        seen = len(list_parts(folder, name))
        if seen != number:
            raise EnvironmentFault(
                f"of {number} parts of {name}/ that Spark's tasks wrote, {seen} are visible here",
                "on a cluster, name an output that all machines see: a URL as s3://bucket/x.trace, or a shared disk",
            )


def read_part_stats(row: Row) -> PartStats:
    """Read the statistics of a part of tuples."""
    stats = PartStats(*json.loads(row.stats or ""))
    return stats._replace(block_digests=[bytes.fromhex(str(digest)) for digest in stats.block_digests])


def _tuples(rows: list[Row], skip: int, tuples: int, first: int) -> Iterator[Columns]:
    """Yield the tuples of a part, of which `first` is the number of the first one in the trace."""
    blocks = [row.columns() for row in rows]
    columns = {name: np.concatenate([own.column(name).to_numpy() for own in blocks]) for name in blocks[0].schema.names}
    del blocks
    if "by_bytes" in columns or (columns["timestamp"][1:] < columns["timestamp"][:-1]).any():
        places = sort_order(columns)[skip : skip + tuples]
    else:
        places = np.arange(skip, skip + tuples)
    names = ("timestamp", "key_id", *(name for name in CARRIED if name in columns))
    for start in range(0, tuples, layout.ROW_GROUP_ROWS):
        check_stopped()
        own = places[start : start + layout.ROW_GROUP_ROWS]
        made = {name: columns[name][own] for name in names}
        if (nth := made.pop("nth", None)) is not None:
            # The parent is the number of a tree's first tuple: what came of one row stays together in the stream.
            made["parent"] = np.arange(first + start, first + start + len(own)) - nth.astype(np.int64)
        yield Columns(**made)


def _with_places(chunks: Iterator[Columns], first: int) -> Iterator[Columns]:
    """Number tuples from `first` on, and use the numbers as times in us, for input without times."""
    for chunk in chunks:
        yield chunk._replace(timestamp=np.arange(first, first + len(chunk.timestamp)))
        first += len(chunk.timestamp)


def _keys(rows: list[Row]) -> KeyColumns:
    whole = pa.Table.from_batches([row.columns() for row in rows])
    ordered = whole.take(pa.array(np.argsort(whole.column("id").to_numpy())))
    columns: Any = (ordered.column(name).to_numpy() for name in ("count", "hash_lo", "hash_hi"))
    return KeyColumns(ordered.column("key"), *columns)
