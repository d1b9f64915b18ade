"""The assignment log: one row a tuple, in Parquet parts of bounded size, written as the replay goes."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamgroup.base.schema import SCHEMA_VERSION
from streamgroup.replay.loop import Log
from streamgroup.traces.arrays import arrow

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
_CHUNKS_PER_PART = 8


class LogWriter:
    """Writes chunks of the log into `directory` as part-00000.parquet and so on, eight chunks a part."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._chunks = 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, offset: int, arrival: NDArray[np.int64], key: NDArray[np.uint32], log: Log) -> None:
        """Write the rows of one chunk, which begins at tuple `offset`."""
        if self._chunks % _CHUNKS_PER_PART == 0:
            self.close()
            path = self._directory / f"part-{self._chunks // _CHUNKS_PER_PART:05d}.parquet"
            self._writer = pq.ParquetWriter(path, SCHEMA, compression="zstd")
        assert self._writer is not None
        seq = np.arange(offset, offset + len(arrival), dtype=np.int64)
        version = np.full(len(arrival), SCHEMA_VERSION, dtype=np.int32)
        columns: list[NDArray[Any]] = [seq, arrival, log.source, key, log.worker, log.start, log.finish, version]
        self._writer.write_table(pa.Table.from_arrays([arrow(column) for column in columns], schema=SCHEMA))
        self._chunks += 1

    def close(self) -> None:
        """Finish the part at hand."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
