"""Small traces written by hand, as a user without our writer would."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["write_trace"]


def write_trace(path: Path, times: list[int], keys: list[str]) -> Path:
    """Write times in us and their keys; ids by frequency, then by name."""
    counts = Counter(keys)
    order = sorted(counts, key=lambda key: (-counts[key], key))
    ids = {key: place for place, key in enumerate(order)}
    for folder in ("tuples", "keys"):
        (path / folder).mkdir(parents=True)
    tuples = {"timestamp": pa.array(times, pa.int64()), "key_id": pa.array([ids[k] for k in keys], pa.uint32())}
    pq.write_table(pa.table(tuples), path / "tuples" / "part-00000.parquet")
    dictionary = {
        "key_id": pa.array(range(len(order)), pa.uint32()),
        "key": pa.array(order, pa.string()),
        "count": pa.array([counts[key] for key in order], pa.int64()),
    }
    pq.write_table(pa.table(dictionary), path / "keys" / "part-00000.parquet")
    (path / "trace.json").write_text(json.dumps({"format_version": 1}))
    return path
