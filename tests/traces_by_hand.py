"""Traces as a user would write them with pyarrow, for tests of everything that reads traces."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.traces import layout
from streamgroup.traces.tuple_blocks import Columns, blocks
from streamgroup.traces.write_trace_files import PartStats, join_stats, write_part

Tuple = tuple[int, bytes | None, float | None]


def write_trace(path: Path, tuples: Sequence[Tuple], parts: int = 1) -> Path:
    """Write a minimal trace: a manifest with the format's version only, no hash columns."""
    counts = Counter(key for _, key, _ in tuples)
    order = sorted(counts, key=lambda key: (-counts[key], key is not None, key or b""))
    ids = {key: place for place, key in enumerate(order)}
    (path / "tuples").mkdir(parents=True)
    (path / "keys").mkdir()
    columns: dict[str, pa.Array] = {
        "timestamp": pa.array([row[0] for row in tuples], pa.int64()),
        "key_id": pa.array([ids[row[1]] for row in tuples], pa.uint32()),
    }
    if tuples and tuples[0][2] is not None:
        columns["cost"] = pa.array([row[2] for row in tuples], pa.float32())
    table = pa.table(columns)
    size = -(-len(tuples) // parts) or 1
    for part in range(parts):
        pq.write_table(table.slice(part * size, size), path / "tuples" / f"part-{part:05d}.parquet")
    keys = {
        "key_id": pa.array(range(len(order)), pa.uint32()),
        "key": pa.array([None if key is None else key.decode() for key in order], pa.string()),
        "count": pa.array([counts[key] for key in order], pa.uint64()),
    }
    pq.write_table(pa.table(keys), path / "keys" / "part-00000.parquet")
    (path / "trace.json").write_text('{"format_version": 1}')
    return path


def write_tuples(folder: StoragePath | Path, chunks: Iterable[Columns]) -> PartStats:
    """Write all of `tuples/` from a whole stream, in parts of PART_ROWS rows, as tasks write each part."""
    parts: list[PartStats] = []
    for part in blocks(chunks, layout.PART_ROWS):
        parts.append(write_part(locate(folder) / layout.part_name(len(parts)), [part]))
    return join_stats(parts)
