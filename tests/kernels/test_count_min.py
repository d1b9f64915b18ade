"""Count-Min sketches: sizes, the worked examples, and bounds that hold for every stream."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings.posg import count_min
from streamgroup.kernels.counts.count_min import cells_of_keys
from streamgroup.kernels.hash_placement import sketch_columns

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
HASHES = np.random.default_rng(3).integers(-(2**63), 2**63, 40)


def example(name: str) -> tuple[Any, Any]:
    (found,) = [entry for entry in EXAMPLES if entry["id"] == name]
    return found["input"], found["expected"]


def sketched(stream: list[tuple[int, int]], rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Sketch (key, took) at worker 1 of 2; give the places of the keys' cells, the cells, and their means."""
    cell_of = cells_of_keys(HASHES, rows, columns)
    cells = np.zeros((2, rows * columns, 2), dtype=np.int64)
    for key, took in stream:
        count_min.add(cells, 1, cell_of, key, took)
    means = np.zeros(cells.shape)
    count_min.take_means(cells, 1, columns, means, 1, False)
    return cell_of, cells, means


def test_sizes_of_the_paper() -> None:
    given_, expected = example("POSG-08")
    sizes = [count_min.sketch_size(**pair) for pair in given_["pairs"]]
    assert [rows for rows, _ in sizes] == expected["rows"]
    assert [columns for _, columns in sizes] == expected["cols_ceil"]


@pytest.mark.parametrize(("rows", "columns", "kind"), [(4, 54, np.uint16), (2, 1 << 16, np.uint32)])
def test_a_key_has_a_cell_in_each_row(rows: int, columns: int, kind: type[Any]) -> None:
    cell_of = cells_of_keys(HASHES, rows, columns)
    assert cell_of.dtype == kind
    for row in range(rows):
        assert (cell_of[:, row] // columns == row).all()
        assert (cell_of[:, row] % columns == sketch_columns(HASHES, row, columns)).all()


def test_a_key_whose_cells_are_empty_is_taken_for_average() -> None:
    told, expected = example("POSG-05")
    assert told["note"] == "d hashes to row0 col2 (F=0) and row1 col0 (F=2)"
    # Rows of three columns: what row 0 holds is 27 over 5 tuples.
    cells = np.array([[[2, 20], [3, 7], [0, 0], [2, 20], [3, 7], [0, 0]]], dtype=np.int64)
    means = np.zeros(cells.shape)
    count_min.take_means(cells, 0, 3, means, 0, False)
    d = np.array([[2, 3]], dtype=np.uint16)
    assert expected["recommended"] == "sum(W[0])/sum(F[0]) = 27/5 = 5.4"
    assert count_min.mean(means, 0, d, 0) == 5.4
    # One that is empty in no row: the row with the fewest, of equal ones the first.
    assert count_min.mean(means, 0, np.array([[1, 3]], dtype=np.uint16), 0) == 10.0
    assert count_min.mean(means, 0, np.array([[0, 3]], dtype=np.uint16), 0) == 10.0
    assert count_min.mean(means, 0, np.array([[1, 4]], dtype=np.uint16), 0) == 7 / 3


def test_an_empty_sketch_estimates_nothing() -> None:
    cell_of, _, means = sketched([], 3, 7)
    assert [count_min.mean(means, 1, cell_of, key) for key in range(5)] == [0.0] * 5


streams = st.lists(st.tuples(st.integers(0, 39), st.integers(0, 10**12)), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(streams, st.integers(1, 4), st.sampled_from([1, 2, 5, 54]))
def test_no_count_is_too_small_and_means_lie_between_the_extremes(
    stream: list[tuple[int, int]], rows: int, columns: int
) -> None:
    cell_of, cells, means = sketched(stream, rows, columns)
    assert not cells[0].any()
    counts = Counter(key for key, _ in stream)
    took = [took for _, took in stream]
    for key in range(len(HASHES)):
        assert cells[1, cell_of[key], 0].min() >= counts[key]
        estimate = count_min.mean(means, 1, cell_of, key)
        assert min(took) * (1 - 1e-12) <= estimate <= max(took) * (1 + 1e-12)
    for row in range(rows):
        assert cells[1, row * columns : (row + 1) * columns].sum(axis=0).tolist() == [len(stream), sum(took)]


def test_without_collisions_estimates_are_exact_means() -> None:
    stream = [(0, 10), (1, 4), (0, 20), (1, 5)]
    cell_of, _, means = sketched(stream, 4, 50_000)
    assert [count_min.mean(means, 1, cell_of, key) for key in (0, 1, 2)] == [15.0, 4.5, 39 / 4]


def moved(then: list[tuple[int, int]], now: list[tuple[int, int]], *, every: bool = False, outer: bool = False) -> Any:
    """Take a snapshot of one row of cells (F, W), and tell how far another is from it."""
    snapshot = np.zeros((1, len(then)))
    count_min.take_snapshot(np.array([then], dtype=np.int64), 0, snapshot)
    return count_min.drift(np.array([now], dtype=np.int64), 0, snapshot, every, outer)


def test_how_far_means_have_moved() -> None:
    then, now = [(2, 20), (1, 30), (0, 0)], [(3, 36), (2, 50), (4, 8)]
    # Means 10 and 30 became 12 and 25; the cell that was empty is now 2.
    assert moved(then, now) == 7 / 40
    assert moved(then, now, outer=True) == 3 / 40
    assert moved(then, now, every=True) == 9 / 40
    assert moved(then, then) == 0.0
    assert moved(then, then, every=True) == 0.0


def test_moves_from_nothing() -> None:
    assert moved([(1, 0)], [(2, 0)]) == 0.0
    assert moved([(1, 0)], [(2, 6)]) == np.inf
    assert moved([(0, 0)], [(2, 6)]) == 0.0
    assert moved([(0, 0)], [(2, 6)], every=True) == np.inf


def test_cells_are_copied_and_cleared_by_worker() -> None:
    _, cells, _ = sketched([(3, 7), (4, 9)], 2, 5)
    before = cells.copy()
    target = np.zeros_like(cells)
    cells[0] = 1
    count_min.copy(cells, 1, target, 1)
    count_min.clear(cells, 1)
    assert (target[1] == before[1]).all()
    assert not target[0].any()
    assert not cells[1].any()
    assert cells[0].all()
