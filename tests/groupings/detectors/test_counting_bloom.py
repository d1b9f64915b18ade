"""The counting Bloom filter: what is in it, what it forgets, and how often it errs."""

import json
from pathlib import Path

import numpy as np
import pytest

from streamgroup.groupings.detectors.synopsis import counting_bloom
from streamgroup.kernels import hash_placement

EXAMPLES = {one["id"]: one for one in json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())}


def hashes(keys: int) -> np.ndarray:
    return np.random.default_rng(3).integers(-(2**63), 2**63, keys)


def test_columns_are_those_of_a_sketch_row_by_row() -> None:
    lo = hashes(50)
    columns = counting_bloom.shared_columns(lo, 3, 64)
    assert columns.dtype == np.uint32
    assert columns.T.tolist() == [hash_placement.sketch_columns(lo, row, 64).tolist() for row in range(3)]


def test_all_counters_are_zero_after_everything_has_left() -> None:
    columns, counters = counting_bloom.shared_columns(hashes(60), 4, 256), np.zeros(256, dtype=np.uint8)
    for key in range(60):
        counting_bloom.add(counters, columns, key)
    assert counters.sum() == 240
    assert 0 < counters.max() < counting_bloom.FULL
    assert all(counting_bloom.has(counters, columns, key) for key in range(60))
    for key in range(0, 60, 2):
        counting_bloom.remove(counters, columns, key)
    assert all(counting_bloom.has(counters, columns, key) for key in range(1, 60, 2))
    for key in range(1, 60, 2):
        counting_bloom.remove(counters, columns, key)
    assert not counters.any()


def test_columns_that_coincide_count_twice() -> None:
    columns, counters = np.array([[3, 3, 1]], dtype=np.uint32), np.zeros(16, dtype=np.uint8)
    counting_bloom.add(counters, columns, 0)
    assert counters.tolist()[:4] == [0, 1, 0, 2]
    counting_bloom.remove(counters, columns, 0)
    assert not counters.any()


def test_a_full_counter_stays() -> None:
    columns, counters = counting_bloom.own_columns(2), np.zeros(2, dtype=np.uint8)
    for _ in range(counting_bloom.FULL - 1):
        counting_bloom.add(counters, columns, 0)
    counting_bloom.remove(counters, columns, 0)
    assert counters[0] == counting_bloom.FULL - 2
    for _ in range(5):
        counting_bloom.add(counters, columns, 0)
    assert counters.tolist() == [counting_bloom.FULL, 0]
    counting_bloom.remove(counters, columns, 0)
    assert counters[0] == counting_bloom.FULL


def test_what_is_not_in_stays_out_of_the_counters() -> None:
    columns, counters = counting_bloom.own_columns(3), np.zeros(3, dtype=np.uint8)
    counting_bloom.remove(counters, columns, 1)
    assert not counters.any()
    assert [counting_bloom.has(counters, columns, key) for key in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("counters", [16, 1024])
def test_false_positives_are_as_frequent_as_they_should_be(counters: int) -> None:
    example = EXAMPLES["DS-05"]
    trials, others = 100, 400
    columns = counting_bloom.shared_columns(hashes(trials * others), example["input"]["hashes"], counters)
    for inside in example["input"]["keys"]:
        found = 0
        for trial in range(trials):
            table, base = np.zeros(counters, dtype=np.uint8), trial * others
            for key in range(base, base + inside):
                counting_bloom.add(table, columns, key)
            rows = columns[base + inside : base + others]
            found += int((table[rows] > 0).all(axis=1).sum())
        share = found / (trials * (others - inside))
        wanted = example["expected"][str(counters)][str(inside)]
        # Trials differ by what is inside, which spreads more than single answers do. The formula takes the counters for
        # independent: with sixteen it is a few hundredths off.
        assert abs(share - wanted) < (0.04 if counters == 16 else 3e-4), inside
