"""The ring of the naive twins: worked examples, vectors, what moves when workers come and go."""

import json

from tests.naive.checks.test_hot_key_groupings import DATA, example
from tests.naive.groupings.grouping_by_text import make
from tests.naive.groupings.simple_groupings import Setting, WorkersChange
from tests.naive.kernels.hash_ring import Ring, key_place, node_place


def names_of(ring: Ring, key: int, names: list[str]) -> str:
    return names[ring.successors(key, 1)[0]]


def test_fish_07() -> None:
    given, expected = example("FISH-07")
    names = ["w1", "w2", "w3", "w4"]
    at = [*given["workers"].values(), given["w4"]]

    def found(live: list[int]) -> dict[str, str]:
        ring = Ring(live, 1, lambda worker, node: at[worker])
        return {key: names_of(ring, place, names) for key, place in given["keys"].items()}

    assert found([0, 1, 2]) == expected["a"]
    assert found([0, 2]) == expected["b_remove_w2"]
    assert found([0, 2, 1, 3]) == expected["c_add_w4"]
    virtual = [[given["virtual"][f"{w}-{node}"] for node in (1, 2)] for w in ("w1", "w3")]
    ring = Ring([0, 1], 2, lambda worker, node: virtual[worker][node])
    assert [point for point, _ in ring.points] == sorted(given["virtual"].values())
    for key, place in given["keys"].items():
        assert names_of(ring, place, ["w1", "w3"]) == expected["d_virtual"][key][:2]
        hit = given["virtual"][expected["d_virtual"][key]]
        assert hit == min((p for p, _ in ring.points if p >= place), default=ring.points[0][0])


def test_fish_08() -> None:
    given, expected = example("FISH-08")
    nodes = [[given["ring"][f"w{w}-{node}"] for node in (1, 2)] for w in (1, 2)] + [[200, 310]]
    assert nodes[2] == [given["ring"]["w3-1"], given["ring"]["w3-2"]]
    ring = Ring([0, 1, 2], 2, lambda worker, node: nodes[worker][node])
    for d in (1, 2, 3):
        assert [f"w{w + 1}" for w in ring.successors(given["key"], d)] == expected[f"d={d}"]
    # a point at the place itself counts
    assert ring.successors(60, 1) == [1]
    assert ring.successors(311, 2) == [0, 1]


def test_ring_places_that_are_taken() -> None:
    places = {(0, 0): 5, (0, 1): 7, (1, 0): 7, (1, 2): 5, (1, 4): 9, (1, 1): 1}
    ring = Ring([1, 0], 2, lambda worker, node: places[worker, node])
    assert ring.points == [(1, 1), (5, 0), (7, 0), (9, 1)]


def test_ring_vectors() -> None:
    vectors = json.loads((DATA / "hash_vectors.json").read_text())
    for vector in vectors["keys"]:
        assert key_place(vector["key"].encode()) == vector["ring_position"]
    for vector in vectors["worker_nodes"]:
        assert node_place(vector["worker"], vector["node"]) == vector["position"]


def test_kg_by_ring_moves_only_the_keys_of_who_leaves() -> None:
    grouping = make("kg:ring=true,vnodes=20", Setting(5, 1))
    keys = [str(i).encode() for i in range(300)]
    before = [grouping.choose(0, key, 0) for key in keys]
    assert set(before) == set(range(5))
    grouping.workers_changed(WorkersChange(0, [0, 1, 3, 4], [], [2]))
    after = [grouping.choose(0, key, 0) for key in keys]
    assert all(a == b for a, b in zip(after, before, strict=True) if b != 2)
    assert 2 not in after
    grouping.workers_changed(WorkersChange(0, [0, 1, 3, 4, 5], [5], []))
    last = [grouping.choose(0, key, 0) for key in keys]
    assert all(a == b for a, b in zip(last, after, strict=True) if a != 5)
    assert 5 in last
