"""The parts of a trace from what the tasks left: one task a part, borders exactly where the format wants
them.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgroup.ingest.dictionary import Dictionary, keys_between
from streamgroup.ingest.order import Piece
from streamgroup.ingest.segments import Scratch, iterate, map_table, whole_file
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

__all__ = ["RejectFile", "assemble_keys", "assemble_rejects", "assemble_tuples", "iterate_keys"]

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
    present = {name: batch.column(name).to_numpy() for name in ("cost", "value") if name in batch.schema.names}
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


def _write_tuples(scratch: Scratch, folder: str, pieces: list[Piece], cut: Cut) -> PartStats:
    stats: list[PartStats] = []
    path = Path(folder) / schema.part_name(cut.part)
    whole_file(path, lambda temporary: stats.append(write_part(temporary, _chunks(scratch, pieces, cut.slices))))
    return stats[0]


def assemble_tuples(context: Any, scratch: Scratch, folder: Path, pieces: list[Piece]) -> PartStats:
    """Write all of `tuples/`."""
    folder.mkdir()
    cuts = cut_parts([piece.tuples for piece in pieces], schema.PART_ROWS)
    write = partial(_write_tuples, scratch, str(folder), pieces)
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


def iterate_keys(folder: Path) -> Iterator[bytes | None]:
    """Give all keys of `keys/` in id order, a batch in memory at a time."""
    for path in sorted(folder.iterdir()):
        with pq.ParquetFile(path) as file:
            names = [name for name in ("key_bytes", "key") if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=names, use_threads=False):
                columns = [batch.column(name).cast(pa.large_binary()) for name in names]
                yield from pc.coalesce(*columns).to_pylist()


def _reject_tables(files: list[RejectFile], slices: Iterable[tuple[int, int, int]]) -> Iterator[pa.Table]:
    for source, start, stop in slices:
        file = files[source]
        table = pq.read_table(file.path).slice(start, stop - start)
        lines = pa.array(table.column("line").to_numpy() + file.line)
        shown = file.file.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        yield pa.table(
            {
                "file": pa.array([shown] * len(table), pa.string()),
                "line": lines,
                "reason": table.column("reason").cast(pa.string()),
                "text": table.column("text"),
            }
        )


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


def first_rejects(files: list[RejectFile], number: int) -> list[tuple[str, int, str, str]]:
    """Give the first rejects in the order of the input: file, line, reason, text."""
    slices = [(source, 0, min(file.rows, number)) for source, file in enumerate(files)]
    rows = (row for table in _reject_tables(files, slices) for row in table.to_pylist())
    return [(row["file"], row["line"], row["reason"], row["text"]) for row in islice(rows, number)]
