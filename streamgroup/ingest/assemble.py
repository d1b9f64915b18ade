"""The parts of a trace from what the tasks left: one task a part, borders exactly where the format wants
them.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgroup.ingest.dictionary import Dictionary, keys_between
from streamgroup.ingest.order import Piece
from streamgroup.ingest.segments import CARRIED, Scratch, iterate, map_table, whole_file
from streamgroup.ingest.tasks import run_all
from streamgroup.traces import schema
from streamgroup.traces.writer import (
    Columns,
    PartStats,
    join_stats,
    write_keys_part,
    write_part,
    write_rejects,
)

__all__ = ["RejectFile", "assemble_keys", "assemble_rejects", "assemble_tuples"]

REJECT_ROWS = 1 << 20


class Cut(NamedTuple):
    """A part to write: its number, and for each source it takes from, which one and which rows."""

    part: int
    slices: list[tuple[int, int, int]]


class RejectFile(NamedTuple):
    """The rejects of one split: their file, the input's path, the lines of the input before the split,
    rows.
    """

    path: str
    file: str
    line: int
    rows: int


def cut_parts(sizes: list[int], part_rows: int) -> list[Cut]:
    """Cut sources that lie one after the other into parts of exactly `part_rows` rows (the last may be
    smaller).
    """
    cuts: list[Cut] = []
    room = 0
    for source, size in enumerate(sizes):
        start = 0
        while start < size:
            if not room:
                cuts.append(Cut(len(cuts), []))
                room = part_rows
            take = min(room, size - start)
            cuts[-1].slices.append((source, start, start + take))
            start += take
            room -= take
    return cuts


def _columns(batch: pa.RecordBatch, key_id: Any) -> Columns:
    present = {name: batch.column(name).to_numpy() for name in CARRIED if name in batch.schema.names}
    return Columns(batch.column("timestamp").to_numpy(), key_id, **present)


def _chunks(scratch: Scratch, pieces: list[Piece], slices: list[tuple[int, int, int]]) -> Iterator[Columns]:
    for source, start, stop in slices:
        piece = pieces[source]
        if piece.segment is None:
            batch = map_table(Path(piece.path)).slice(start, stop - start)
            yield _columns(batch, batch.column("key_id").to_numpy())
        else:
            ids = np.load(scratch.mapping(piece.segment))
            for batch in iterate(scratch, piece.segment, start, stop):
                yield _columns(batch, ids[batch.column("local").to_numpy()])


def numbered(chunks: Iterable[Columns], first: int) -> Iterator[Columns]:
    """Give each tuple its place in the stream, from `first` on, for its time in us: there is no other."""
    for chunk in chunks:
        yield chunk._replace(timestamp=np.arange(first, first + len(chunk.timestamp)))
        first += len(chunk.timestamp)


def _write_tuples(scratch: Scratch, folder: str, pieces: list[Piece], number: bool, cut: Cut) -> PartStats:
    stats: list[PartStats] = []
    path = Path(folder) / schema.part_name(cut.part)
    chunks = _chunks(scratch, pieces, cut.slices)
    if number:
        chunks = numbered(chunks, cut.part * schema.PART_ROWS)
    whole_file(path, lambda temporary: stats.append(write_part(temporary, chunks)))
    return stats[0]


def assemble_tuples(
    context: Any, scratch: Scratch, folder: Path, pieces: list[Piece], *, number: bool = False
) -> PartStats:
    """Write all of `tuples/`; `number`: with their places in the stream for times."""
    folder.mkdir()
    cuts = cut_parts([piece.tuples for piece in pieces], schema.PART_ROWS)
    write = partial(_write_tuples, scratch, str(folder), pieces, number)
    return join_stats(run_all(context, write, cuts))


def _write_keys(scratch: Scratch, folder: str, keys: Dictionary, part: int) -> None:
    first = part * schema.KEY_PART_ROWS
    columns = keys_between(scratch, keys, first, first + schema.KEY_PART_ROWS)
    path = Path(folder) / schema.part_name(part)
    whole_file(path, lambda temporary: write_keys_part(temporary, first, columns, key_bytes=keys.odd))


def assemble_keys(context: Any, scratch: Scratch, folder: Path, keys: Dictionary) -> None:
    """Write all of `keys/`."""
    folder.mkdir()
    parts = range(-(-keys.keys // schema.KEY_PART_ROWS))
    run_all(context, partial(_write_keys, scratch, str(folder), keys), parts)


def _reject_tables(files: list[RejectFile], slices: Iterable[tuple[int, int, int]]) -> Iterator[pa.Table]:
    for source, start, stop in slices:
        file = files[source]
        shown = file.file.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        for table in _rows_between(Path(file.path), start, stop):
            yield pa.table(
                {
                    "file": pa.array([shown] * len(table), pa.string()),
                    "line": pa.array(table.column("line").to_numpy() + file.line),
                    "reason": table.column("reason"),
                    "text": table.column("text"),
                }
            )


def _rows_between(path: Path, start: int, stop: int) -> Iterator[pa.Table]:
    """Read the rows [start, stop) of a Parquet file, and no row group without one of them."""
    with pq.ParquetFile(path) as file:
        first = 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            low, high = max(start - first, 0), min(stop - first, rows)
            if low < high:
                yield file.read_row_group(group, use_threads=False).slice(low, high - low)
            first += rows


def _write_rejects(folder: str, files: list[RejectFile], cut: Cut) -> int:
    table = pa.concat_tables(_reject_tables(files, cut.slices))
    path = Path(folder) / schema.part_name(cut.part)
    whole_file(path, lambda temporary: write_rejects(temporary, table.combine_chunks()))
    return len(table)


def assemble_rejects(context: Any, folder: Path, files: list[RejectFile]) -> None:
    """Write all of `rejects/`, in the order of the input."""
    folder.mkdir()
    cuts = cut_parts([file.rows for file in files], REJECT_ROWS)
    run_all(context, partial(_write_rejects, str(folder), files), cuts)
