"""Every field of the published vectors, against the vectorised formulas."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.kernels import hash_placement
from streamgroup.traces.hash_and_show_keys import hash_key, hash_keys

VECTORS = json.loads((Path(__file__).parent.parent / "data" / "hash_vectors.json").read_text())


def _hashes(vector: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([vector["hash_lo"]]), np.array([vector["hash_hi"]])


@pytest.mark.parametrize("vector", VECTORS["keys"], ids=lambda vector: repr(vector["key"]))
def test_every_vector_of_a_key(vector: dict[str, Any]) -> None:
    lo, hi = _hashes(vector)
    assert hash_key(vector["key"].encode()) == (vector["hash_lo"], vector["hash_hi"])
    for workers, expected in vector["candidates"].items():
        got = [int(hash_placement.candidate(lo, hi, j + 1, int(workers))[0]) for j in range(len(expected))]
        assert got == expected
    seeded = vector["candidates_64_hash_seed_1"]
    assert [int(hash_placement.candidate(lo, hi, j + 1, 64, 1)[0]) for j in range(len(seeded))] == seeded
    assert int(hash_placement.source_of(lo, 5)[0]) == vector["source_of_5"]
    assert int(hash_placement.ring_positions(lo)[0]) == vector["ring_position"]
    columns = vector["sketch_columns_of_54"]
    assert [int(hash_placement.sketch_columns(lo, row, 54)[0]) for row in range(len(columns))] == columns
    assert set(vector) == {
        "key",
        "hash_lo",
        "hash_hi",
        "candidates",
        "candidates_64_hash_seed_1",
        "source_of_5",
        "ring_position",
        "sketch_columns_of_54",
    }


def test_every_vector_of_a_worker_node() -> None:
    for vector in VECTORS["worker_nodes"]:
        got = hash_placement.node_positions(np.array([vector["worker"]]), np.array([vector["node"]]))
        assert int(got[0]) == vector["position"]
    assert set(VECTORS) == {"keys", "worker_nodes"}


def test_vectorised_hashes_are_the_single_ones_and_null_is_not_empty() -> None:
    keys = [vector["key"].encode() for vector in VECTORS["keys"]]
    for some in (keys, [*keys, None], [None], []):
        lo, hi = hash_keys(some)
        assert list(zip(lo.tolist(), hi.tolist(), strict=True)) == [hash_key(key) for key in some]
    assert hash_key(None) != hash_key(b"")


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 7, 1000, 2**31 - 1])
def test_workers_are_in_range_for_keys_that_broke_signed_hashes(workers: int) -> None:
    lo, hi = hash_keys([b"polygenelubricants", b"PUFPaY9KxDAcGqfsorJp1R"])
    for j in (1, 2, 3):
        got = hash_placement.candidate(lo, hi, j, workers)
        assert (got >= 0).all()
        assert (got < workers).all()


def test_a_sample_of_keys_is_nested_and_its_share_is_kept() -> None:
    _, hi = hash_keys([b"k%d" % i for i in range(20_000)])
    small, large = hash_placement.sampled(hi, 0.1), hash_placement.sampled(hi, 0.3)
    assert not (small & ~large).any()
    assert abs(small.mean() - 0.1) < 0.01
    assert hash_placement.sampled(hi, 1.0).all()
    assert not hash_placement.sampled(hi, 0.0).any()
