"""The consistent-hash ring: worked examples, and what holds for every ring."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.kernels import hash_ring as module
from streamgroup.kernels.hash_placement import node_positions
from streamgroup.kernels.hash_ring import Ring, first_point, first_two, make_ring, walk

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
VECTORS = json.loads((Path(__file__).parents[1] / "data" / "hash_vectors.json").read_text())


def example(name: str) -> tuple[Any, Any]:
    (found,) = [entry for entry in EXAMPLES if entry["id"] == name]
    return found["input"], found["expected"]


def by_hand(points: dict[str, int]) -> Ring:
    """Make a ring of points such as w2-1 (worker 2) or w2."""
    placed = sorted((position, int(name[1:].partition("-")[0])) for name, position in points.items())
    return Ring(
        np.array([position for position, _ in placed], dtype=np.int64),
        np.array([worker for _, worker in placed], dtype=np.uint16),
    )


def next_workers(ring: Ring, position: int, d: int) -> list[int]:
    point = int(first_point(ring, np.array([position], dtype=np.int64))[0])
    lists = np.zeros((1, d), dtype=np.uint16)
    walk(ring.owner, point, d, np.zeros(int(ring.owner.max()) + 1, dtype=np.int64), 1, lists, 0)
    found: list[int] = lists[0].tolist()
    return found


def test_figure_8() -> None:
    given_, expected = example("FISH-07")
    points = dict(given_["workers"])
    rings = {"a": points, "c_add_w4": {**points, "w4": given_["w4"]}}
    rings["b_remove_w2"] = {name: position for name, position in points.items() if name != "w2"}
    for name, placed in rings.items():
        for key, worker in expected[name].items():
            assert next_workers(by_hand(placed), given_["keys"][key], 1) == [int(worker[1:])]
    virtual = by_hand(given_["virtual"])
    for key, node in expected["d_virtual"].items():
        point = first_point(virtual, np.array([given_["keys"][key]]))[0]
        assert virtual.position[point] == given_["virtual"][node]


def test_the_first_distinct_workers() -> None:
    given_, expected = example("FISH-08")
    ring = by_hand(given_["ring"])
    for d in (1, 2, 3):
        assert next_workers(ring, given_["key"], d) == [int(name[1:]) for name in expected[f"d={d}"]]


def test_a_point_at_the_position_counts_and_the_end_is_followed_by_the_beginning() -> None:
    ring = by_hand({"w1": 40, "w2": 150, "w3": 300})
    assert [next_workers(ring, position, 1)[0] for position in (0, 40, 41, 150, 151, 300, 301)] == [1, 1, 2, 2, 3, 3, 1]


def test_points_are_those_of_the_hash() -> None:
    ring = make_ring(np.arange(9), 40)
    assert np.all(np.diff(ring.position) > 0)
    assert np.bincount(ring.owner).tolist() == [40] * 9
    placed = dict(zip(ring.position.tolist(), ring.owner.tolist(), strict=True))
    known = [vector for vector in VECTORS["worker_nodes"] if vector["worker"] < 9 and vector["node"] < 40]
    assert known
    for vector in known:
        assert placed[vector["position"]] == vector["worker"]


@pytest.mark.parametrize("bits", [9, 10, 11])
@pytest.mark.parametrize(("live", "nodes"), [([0], 300), ([3, 5], 77), (list(range(0, 40, 2)), 20), ([2, 9, 50], 100)])
def test_a_point_on_another_is_hashed_again_until_it_is_free(
    live: list[int], nodes: int, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(worker: Any, node: Any) -> Any:
        return node_positions(worker, node) >> (32 - bits)

    monkeypatch.setattr(module, "node_positions", cut)
    placed: dict[int, int] = {}
    again = 0
    for worker in live:
        for node in range(nodes):
            number = node
            while (position := int(cut(np.array([worker]), np.array([number]))[0])) in placed:
                number += nodes
                again += 1
            placed[position] = worker
    ring = make_ring(np.array(live, dtype=np.int64), nodes)
    assert again > 0
    assert ring.position.tolist() == sorted(placed)
    assert ring.owner.tolist() == [placed[position] for position in sorted(placed)]


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_the_first_two_are_the_first_of_a_walk(workers: int) -> None:
    ring = make_ring(np.arange(workers), 13)
    for point, two in enumerate(first_two(ring).tolist()):
        walked = next_workers(ring, int(ring.position[point]), min(2, workers))
        assert two == walked * (3 - len(walked))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.data())
def test_a_leaver_changes_only_lists_that_it_was_in(workers: int, data: st.DataObject) -> None:
    leaver = data.draw(st.integers(0, workers - 1))
    d = data.draw(st.integers(1, workers - 1))
    live = np.arange(workers)
    before, after = make_ring(live, 20), make_ring(live[live != leaver], 20)
    for position in np.random.default_rng(d).integers(0, 1 << 32, 50).tolist():
        full = next_workers(before, position, workers)
        assert sorted(full) == list(range(workers))
        # Nested in d, and without the leaver the others keep their order.
        assert next_workers(before, position, d) == full[:d]
        assert next_workers(after, position, d) == [worker for worker in full if worker != leaver][:d]


def test_too_many_points_are_told() -> None:
    with pytest.raises(UsageError, match="too large"):
        make_ring(np.arange(10_000), 5_000)
