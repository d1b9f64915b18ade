"""Traces made by hand, without our writer, and small ones made by it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.traces.fingerprint import fingerprint
from streamgroup.traces.hash_and_show_keys import hash_keys, not_utf8
from streamgroup.traces.manifest import Manifest, measured, write_manifest
from streamgroup.traces.tuple_blocks import Columns, KeyColumns
from streamgroup.traces.write_trace_files import write_keys
from tests.traces_by_hand import write_tuples


@pytest.fixture
def by_hand(tmp_path: Path) -> Callable[..., Path]:
    """Write a trace as someone without this program would: plain Parquet and a minimal trace.json."""

    def make(
        tuples: dict[str, Any] | pa.Table | None = None,
        keys: dict[str, Any] | pa.Table | None = None,
        manifest: Any = None,
        name: str = "hand.trace",
    ) -> Path:
        root = tmp_path / name
        (root / "tuples").mkdir(parents=True)
        (root / "keys").mkdir()
        tuples = {"timestamp": [-5, 0, 0, 7], "key_id": [1, 0, 1, 1]} if tuples is None else tuples
        keys = {"key_id": [0, 1], "key": ["a", "b"], "count": [1, 3]} if keys is None else keys
        pq.write_table(tuples if isinstance(tuples, pa.Table) else pa.table(tuples), root / "tuples" / "x.parquet")
        pq.write_table(keys if isinstance(keys, pa.Table) else pa.table(keys), root / "keys" / "y.parquet")
        (root / "trace.json").write_text(json.dumps({"format_version": 1} if manifest is None else manifest))
        return root

    return make


@pytest.fixture
def by_writer(tmp_path: Path) -> Callable[..., Path]:
    """Write a trace with our writer from (timestamp, key, cost) rows in stream order."""

    def make(
        rows: list[tuple[int, bytes | None]],
        cost: list[float] | None = None,
        name: str = "ours.trace",
        **manifest: Any,
    ) -> Path:
        root = tmp_path / name
        count: dict[bytes | None, int] = {}
        for _, key in rows:
            count[key] = count.get(key, 0) + 1
        order = sorted(count, key=lambda key: (-count[key], key is not None, key or b""))
        ids = {key: i for i, key in enumerate(order)}
        chunk = Columns(
            np.array([stamp for stamp, _ in rows], np.int64),
            np.array([ids[key] for _, key in rows], np.uint32),
            None if cost is None else np.array(cost, np.float32),
        )
        root.mkdir(parents=True, exist_ok=True)
        stats = write_tuples(root / "tuples", [chunk])
        keys = pa.array(order, pa.large_binary())
        columns = KeyColumns(keys, np.array([count[key] for key in order], np.int64), *hash_keys(keys))
        write_keys(root / "keys", [columns], key_bytes=bool(not_utf8(keys)))
        facts = measured(stats, len(order), count[order[0]] if order else 0, fingerprint(stats.block_digests, order))
        write_manifest(root, Manifest(format_version=1, program_version="test", **facts, **manifest))
        return root

    return make
