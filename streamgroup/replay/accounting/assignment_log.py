"""The assignment log: one row a tuple, in Parquet parts of bounded size, written as the replay goes."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamgroup.base.arrow_numpy import arrow
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.replay.tuple_arrays import Events

__all__ = ["SCHEMA", "LogWriter"]

SCHEMA = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("arrival_ns", pa.int64(), nullable=False),
        pa.field("source", pa.int32(), nullable=False),
        pa.field("key_id", pa.uint32(), nullable=False),
        pa.field("worker", pa.int32(), nullable=False),
        pa.field("start_ns", pa.int64()),
        pa.field("finish_ns", pa.int64()),
        pa.field("schema_version", pa.int32(), nullable=False),
    ]
)
_CHUNK = 1 << 20
_CHUNKS_PER_PART = 8


class LogWriter:
    """Writes the log into `directory` as part-00000.parquet and so on, eight chunks of a million rows a part.

    However the rows come in, the files are the same.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._chunks = 0
        self._waiting: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None

    def write(self, offset: int, events: Events) -> None:
        """Add tuples, the first that of number `offset`; start and finish are null where they did not finish."""
        assert events.source is not None
        assert events.start is not None
        count, finished = len(events.key), events.finish >= 0
        seq = np.arange(offset, offset + count, dtype=np.int64)
        version = np.full(count, SCHEMA_VERSION, dtype=np.int32)
        columns: list[NDArray[Any]] = [
            seq, events.arrival, events.source, events.key, events.worker, events.start, events.finish, version,
        ]  # fmt: skip
        made = [arrow(column) for column in columns]
        if not finished.all():
            for name in ("start_ns", "finish_ns"):
                place = SCHEMA.get_field_index(name)
                made[place] = pa.array(columns[place], pa.int64(), mask=~finished)
        self._waiting.append(pa.Table.from_arrays(made, schema=SCHEMA))
        while sum(len(table) for table in self._waiting) >= _CHUNK:
            whole = pa.concat_tables(self._waiting)
            self._write(whole.slice(0, _CHUNK))
            self._waiting = [whole.slice(_CHUNK)]

    def _write(self, table: pa.Table) -> None:
        if self._chunks % _CHUNKS_PER_PART == 0:
            self._close_part()
            path = self._directory / f"part-{self._chunks // _CHUNKS_PER_PART:05d}.parquet"
            self._writer = pq.ParquetWriter(path, SCHEMA, compression="zstd")
        assert self._writer is not None
        self._writer.write_table(table.combine_chunks(), row_group_size=_CHUNK)
        self._chunks += 1

    def close(self) -> None:
        """Write what is left and finish the part at hand."""
        rest = pa.concat_tables(self._waiting) if self._waiting else None
        self._waiting = []
        if rest is not None and len(rest):
            self._write(rest)
        self._close_part()

    def _close_part(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
