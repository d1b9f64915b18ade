"""Blocks: the rows that steps of the pipeline exchange, with columns of numbers in one binary cell as Arrow IPC.

Spark stores and shuffles a few thousand such rows instead of every tuple.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc

__all__ = ["BLOCKS", "Row", "Step", "block", "ddl", "pack", "part_slices", "rows_of", "unpack"]

# What Spark's mapInArrow runs: record batches of a partition to record batches.
Step = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# One schema for all steps: `kind` is the type of a row, `to` the target of the next exchange, `segment` and `place`
# where it lies among others of its kind, `stats` its summary for the driver (JSON), `data` its columns.
BLOCKS = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("to", pa.int32()),
        pa.field("segment", pa.int64()),
        pa.field("place", pa.int64()),
        pa.field("stats", pa.string()),
        pa.field("data", pa.binary()),
    ]
)
_SQL = {"string": "string", "int32": "int", "int64": "bigint", "binary": "binary"}
_LZ4 = ipc.IpcWriteOptions(compression="lz4")


def ddl(schema: pa.Schema) -> str:
    """Write a schema as Spark SQL has it."""
    return ", ".join(f"`{field.name}` {_SQL[str(field.type)]}" for field in schema)


def pack(columns: Mapping[str, Any]) -> pa.Buffer:
    """Write columns of one length (arrays of numpy or Arrow) as one Arrow IPC stream."""
    batch = pa.record_batch([pa.array(column) for column in columns.values()], names=list(columns))
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema, options=_LZ4) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def unpack(data: pa.Buffer) -> pa.RecordBatch:
    """Read what `pack` wrote."""
    return ipc.open_stream(data).read_next_batch()


def _cell(data: pa.Buffer | None) -> pa.Array:
    """Make an array of one binary value straight from a buffer: it may have tens of megabytes."""
    if data is None:
        return pa.nulls(1, pa.binary())
    ends = pa.py_buffer(b"\0\0\0\0" + data.size.to_bytes(4, "little"))
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, data])


def _one_row(kind: str, to: int, segment: int, place: int, stats: str | None, data: pa.Buffer | None) -> pa.RecordBatch:
    columns = [
        pa.array([value], field.type) for field, value in zip(BLOCKS, (kind, to, segment, place, stats), strict=False)
    ]
    return pa.RecordBatch.from_arrays([*columns, _cell(data)], schema=BLOCKS)


def block(
    kind: str,
    data: Mapping[str, Any] | None = None,
    *,
    to: int = 0,
    segment: int = 0,
    place: int = 0,
    stats: str | None = None,
) -> pa.RecordBatch:
    """Make a batch of one row; `data` None leaves the cell null."""
    return _one_row(kind, to, segment, place, stats, None if data is None else pack(data))


class Row:
    """A row of blocks as steps see it; `columns()` unpacks its data."""

    __slots__ = ("_cell", "kind", "place", "segment", "stats", "to")

    def __init__(self, batch: pa.RecordBatch | pa.Table, index: int) -> None:
        """Take one row of a batch."""
        self.kind: str = batch.column("kind")[index].as_py()
        self.to, self.segment, self.place = (batch.column(name)[index].as_py() for name in ("to", "segment", "place"))
        self.stats: str | None = batch.column("stats")[index].as_py()
        self._cell = batch.column("data")[index]

    def columns(self) -> pa.RecordBatch:
        """Unpack the data of the row."""
        return unpack(self._cell.as_buffer())

    def moved(self, to: int) -> pa.RecordBatch:
        """Make a batch of this row with another target; its data are not unpacked."""
        return _one_row(self.kind, to, self.segment, self.place, self.stats, self._cell.as_buffer())


def part_slices(first: int, size: int, part_rows: int) -> Iterator[tuple[int, int, int]]:
    """Cut `size` rows, of which `first` is the place of the first one, at the borders of parts of `part_rows` rows.

    Yields the part, and start and stop among these rows.
    """
    start = 0
    while start < size:
        part, before = divmod(first + start, part_rows)
        stop = min(size, start + part_rows - before)
        yield part, start, stop
        start = stop


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Yield the rows of batches one after the other."""
    for batch in batches:
        for index in range(batch.num_rows):
            yield Row(batch, index)
