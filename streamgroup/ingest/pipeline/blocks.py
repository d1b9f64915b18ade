"""Blocks: the rows that steps of the pipeline exchange, with columns of numbers in one binary cell as Arrow IPC.

Spark moves, keeps and shuffles a few thousand such rows where it would otherwise move every tuple.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc

__all__ = ["BLOCKS", "Step", "block", "ddl", "pack", "rows_of", "unpack"]

# What Spark's mapInArrow runs: record batches of a partition to record batches.
Step = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# One schema for all steps: `kind` says what a row is, `to` where the next exchange sends it, `segment` and `place`
# where it lies among others of its kind, `stats` what the driver wants to know of it (JSON), `data` its columns.
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
    cell = pa.nulls(1, pa.binary())
    if data is not None:
        packed = pack(data)
        ends = pa.py_buffer(b"\0\0\0\0" + packed.size.to_bytes(4, "little"))
        # Straight from the buffer: a cell may have tens of megabytes.
        cell = pa.Array.from_buffers(pa.binary(), 1, [None, ends, packed])
    columns = [
        pa.array([kind], pa.string()),
        pa.array([to], pa.int32()),
        *(pa.array([number], pa.int64()) for number in (segment, place)),
        pa.array([stats], pa.string()),
        cell,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=BLOCKS)


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
        """Make a batch of this row alone that goes elsewhere; its data are not unpacked."""
        columns = [
            pa.array([self.kind]),
            pa.array([to], pa.int32()),
            *(pa.array([number], pa.int64()) for number in (self.segment, self.place)),
            pa.array([self.stats], pa.string()),
            pa.Array.from_buffers(pa.binary(), 1, _buffers(self._cell))
            if self._cell.is_valid
            else pa.nulls(1, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=BLOCKS)


def _buffers(cell: Any) -> list[pa.Buffer | None]:
    data = cell.as_buffer()
    return [None, pa.py_buffer(b"\0\0\0\0" + data.size.to_bytes(4, "little")), data]


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Yield the rows of batches one after the other."""
    for batch in batches:
        for index in range(batch.num_rows):
            yield Row(batch, index)
