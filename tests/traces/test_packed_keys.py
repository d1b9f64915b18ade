"""All keys as joined bytes: the same keys in the same order, however the dictionary holds them."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.traces.trace import open_trace

# Bytes that are no text, nothing at all, and null, which is not nothing.
KEYS = [b"b", None, b"", "한".encode(), b"\xff\x00", *(b"key %d" % at for at in range(200))]


def trace_of(root: Path, keys: Sequence[bytes | None], order: Sequence[int], kind: pa.DataType, group: int) -> Path:
    """A trace whose dictionary has the keys with ids 0, 1, ... as rows in an order, in row groups of a size."""
    (root / "tuples").mkdir(parents=True)
    (root / "keys").mkdir()
    tuples = {"timestamp": pa.array(range(len(keys))), "key_id": pa.array(range(len(keys)), pa.uint32())}
    pq.write_table(pa.table(tuples), root / "tuples" / "part-00000.parquet")
    half = len(order) // 2
    for part, rows in enumerate((order[:half], order[half:])):
        columns = {
            "key_id": pa.array(rows, pa.uint32()),
            "key": pa.array([keys[row] for row in rows], pa.binary()).cast(kind),
            "count": pa.array([1] * len(rows), pa.uint64()),
        }
        pq.write_table(pa.table(columns), root / "keys" / f"part-{part:05d}.parquet", row_group_size=group)
    (root / "trace.json").write_text('{"format_version": 1}')
    return root


def unpacked(root: Path) -> tuple[list[bytes], int]:
    data, start, null = open_trace(root).packed_keys()
    assert (data.dtype, start.dtype) == (np.uint8, np.int64)
    assert (start[0], start[-1]) == (0, len(data))
    return [data[begin:end].tobytes() for begin, end in itertools.pairwise(start)], null


@pytest.mark.parametrize("group", [1, 7, 1000])
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("order", ["ascending", "shuffled"])
def test_every_key_by_id(order: str, kind: pa.DataType, group: int, tmp_path: Path) -> None:
    rows = list(range(len(KEYS)))
    if order == "shuffled":
        np.random.default_rng(1).shuffle(rows)
    root = trace_of(tmp_path / "t", KEYS, rows, kind, group)
    assert unpacked(root) == ([key or b"" for key in KEYS], KEYS.index(None))
    assert list(open_trace(root).all_keys()) == KEYS


@pytest.mark.parametrize("null", [0, 57, 203])
def test_the_null_key_is_found_wherever_it_stands(null: int, tmp_path: Path) -> None:
    keys: list[bytes | None] = [b"%d" % at for at in range(204)]
    keys[null] = None
    for order in (range(204), range(203, -1, -1)):
        root = trace_of(tmp_path / f"t{order.step}", keys, list(order), pa.binary(), 100)
        assert unpacked(root) == ([key or b"" for key in keys], null)


def test_without_a_null_key_there_is_no_id_of_it(tmp_path: Path) -> None:
    keys = [b"", b"a", b"bc"]
    assert unpacked(trace_of(tmp_path / "t", keys, [2, 0, 1], pa.binary(), 10)) == (keys, -1)
