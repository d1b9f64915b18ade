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
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from streamgroup.ingest.dictionary import KeyRun
from streamgroup.ingest.order import Piece
from streamgroup.ingest.segments import Scratch, iterate, whole_file
from streamgroup.traces import schema
from streamgroup.traces.writer import (
    Columns,
    KeyColumns,
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
    present = {
        name: batch.column(name).to_numpy() for name in ("cost", "value") if name in batch.schema.names
    }
    return Columns(batch.column("timestamp").to_numpy(), key_id, **present)


def _sorted_run(path: str, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    at = 0
    with pa.memory_map(path) as source:
        reader = ipc.open_file(source)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            low, high = max(start - at, 0), min(stop - at, batch.num_rows)
            if low < high:
                yield batch.slice(low, high - low)
            at += batch.num_rows
            if at >= stop:
                return


def _chunks(scratch: Scratch, pieces: list[Piece], slices: list[tuple[int, int, int]]) -> Iterator[Columns]:
    for source, start, stop in slices:
        piece = pieces[source]
        if piece.segment is None:
            for batch in _sorted_run(piece.path, start, stop):
                yield _columns(batch, batch.column("key_id").to_numpy().view(np.uint32))
        else:
            ids = np.load(scratch.mapping(piece.segment))
            for batch in iterate(scratch, piece.segment, start, stop):
                yield _columns(batch, ids[batch.column("local").to_numpy()])


def _write_tuples(scratch: Scratch, folder: str, pieces: list[Piece], cut: Cut) -> PartStats:
    stats: list[PartStats] = []
    path = Path(folder) / schema.part_name(cut.part)
    whole_file(
        path, lambda temporary: stats.append(write_part(temporary, _chunks(scratch, pieces, cut.slices)))
    )
    return stats[0]


def assemble_tuples(context: Any, scratch: Scratch, folder: Path, pieces: list[Piece]) -> PartStats:
    """Write all of `tuples/`."""
    folder.mkdir()
    cuts = cut_parts([piece.tuples for piece in pieces], schema.PART_ROWS)
    write = partial(_write_tuples, scratch, str(folder), pieces)
    return join_stats(context.parallelize(cuts, len(cuts)).map(write).collect())


def iterate_keys(scratch: Scratch, runs: list[KeyRun]) -> Iterator[bytes | None]:
    """Give all keys in id order, a batch in memory at a time."""
    for run in runs:
        with pq.ParquetFile(scratch.folder("ranked") / f"{run.run:06d}.parquet") as file:
            for batch in file.iter_batches(columns=["key"], use_threads=False):
                yield from batch.column(0).to_pylist()


def _ranked(scratch: Scratch, run: KeyRun, start: int, stop: int) -> pa.Table:
    """Read keys [start, stop) of a run."""
    names = ["key", "count", "hash_lo", "hash_hi"]
    with pq.ParquetFile(scratch.folder("ranked") / f"{run.run:06d}.parquet") as file:
        groups: list[int] = []
        at, first = 0, 0
        for group in range(file.metadata.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if at < stop and at + size > start:
                first = at if not groups else first
                groups.append(group)
            at += size
        return file.read_row_groups(groups, columns=names, use_threads=False).slice(
            start - first, stop - start
        )


def _write_keys(scratch: Scratch, folder: str, runs: list[KeyRun], cut: Cut) -> int:
    table = pa.concat_tables(_ranked(scratch, runs[run], start, stop) for run, start, stop in cut.slices)
    columns = KeyColumns(
        table.column("key"),
        table.column("count").to_numpy(),
        table.column("hash_lo").to_numpy(),
        table.column("hash_hi").to_numpy(),
    )
    path = Path(folder) / schema.part_name(cut.part)
    odd = any(run.odd for run in runs)
    first = cut.part * schema.KEY_PART_ROWS
    whole_file(path, lambda temporary: write_keys_part(temporary, first, columns, key_bytes=odd))
    return len(table)


def assemble_keys(context: Any, scratch: Scratch, folder: Path, runs: list[KeyRun]) -> int:
    """Write all of `keys/`; returns the number of keys."""
    folder.mkdir()
    cuts = cut_parts([run.keys for run in runs], schema.KEY_PART_ROWS)
    write = partial(_write_keys, scratch, str(folder), runs)
    return int(sum(context.parallelize(cuts, len(cuts)).map(write).collect()))


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
    context.parallelize(cuts, len(cuts)).map(partial(_write_rejects, str(folder), files)).collect()


def first_rejects(files: list[RejectFile], number: int) -> list[tuple[str, int, str, str]]:
    """Give the first rejects in the order of the input: file, line, reason, text."""
    slices = [(source, 0, min(file.rows, number)) for source, file in enumerate(files)]
    rows = (row for table in _reject_tables(files, slices) for row in table.to_pylist())
    return [(row["file"], row["line"], row["reason"], row["text"]) for row in islice(rows, number)]
