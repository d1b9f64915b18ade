"""The worked examples of the simple groupings through their own code, and that no example goes unmentioned."""

import json
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import pytest

from streamgroup.kernels.hash_placement import mix64, place
from tests.groupings.contexts_and_worker_changes import started

TESTS = Path(__file__).parents[1]
EXAMPLES = {one["id"]: one for one in json.loads((TESTS / "data" / "examples.json").read_text())}
# They are about groupings and detectors that there are not.
ELSEWHERE = {"ADA-01", "LC-01", "CHBL-01", "DAL-01", "DAG-01", "CAM-01"}


def example(name: str) -> tuple[Any, Any]:
    return EXAMPLES[name]["input"], EXAMPLES[name]["expected"]


def given_candidates(state: Any, table: list[list[int]]) -> Any:
    """Give keys 0, 1, ... the first two candidates of a table."""
    for key, (first, second) in enumerate(table):
        (state if hasattr(state, "candidates") else state.loads).candidates[key] = first, second
    return state


def words_for(workers: list[int], n: int) -> tuple[int, int]:
    """Find hash words of a key with these workers as F_1, F_2, ... of n."""
    start, step = np.random.default_rng(1).integers(0, 2**63, (2, 100_000)).astype(np.uint64)
    found = np.ones(len(start), dtype=np.bool_)
    for j, worker in enumerate(workers, start=1):
        found &= place(mix64(start + np.uint64(j) * (step | np.uint64(1))), n) == worker
    first = int(np.flatnonzero(found)[0])
    return int(start[first]), int(step[first] | np.uint64(1))


@pytest.mark.parametrize(
    "text",
    [
        "pkg",
        "greedy_d",
        "greedy_d:scope=head,d=5,min_count=100",
        *(f"{name}:min_count=100" for name in ("d_choices", "w_choices", "rr", "greedy_freq")),
    ],
)
def test_pkg_01(text: str) -> None:
    """Of PKG, and of all whose cold keys go by it."""
    given, expected = example("PKG-01")
    names = list(given["candidates"])
    state = given_candidates(started(text, given["n"], 1), [given["candidates"][name] for name in names])
    workers = [int(state.choose(0, names.index(name), 0)) for name in given["stream"]]
    assert workers == expected["workers"]
    load = state.load if hasattr(state, "load") else state.loads.load
    assert load.tolist() == [expected["loads"]]
    replicas = {
        name: len({worker for key, worker in zip(given["stream"], workers, strict=True) if key == name})
        for name in names
    }
    assert replicas == expected["replicas"]


def test_gd_01_for_all_keys() -> None:
    given, expected = example("GD-01")
    state = started("greedy_d:d=4", given["n"], 1)
    state.candidates[0] = given["F"]
    workers = []
    for d in given["d"]:
        narrow = state._replace(candidates=np.ascontiguousarray(state.candidates[:, :d]))
        workers.append(int(narrow.choose(0, 0, 0)))
    assert workers == expected["workers"]
    assert state.load.tolist() == [expected["loads"]]


def test_gd_01_for_a_hot_key() -> None:
    given, expected = example("GD-01")
    state = started("greedy_d:scope=head,theta=1/1000,d=4", given["n"], 1)
    state.cursors.words[0] = words_for(given["F"], given["n"])
    workers = []
    for d in given["d"]:
        wide = state._replace(d=d)
        workers.append(int(wide.choose(0, 0, 0)))
        assert wide.choices[0] == d
    assert workers == expected["workers"]
    assert state.loads.load.tolist() == [expected["loads"]]


class Named:
    """A detector that takes one key for hot."""

    def __init__(self, hot: int) -> None:
        self.hot = hot
        self.held = np.zeros(1, dtype=np.int64)

    def detect(self, source: int, key: int, now: int) -> int:
        return int(key == self.hot)


@pytest.mark.parametrize(
    ("separate", "workers", "loads"),
    [(False, *EXAMPLES["RR-01"]["expected"].values()), (True, [0, 0, 1, 2, 1, 0], [2, 1, 0])],
)
def test_rr_01(separate: bool, workers: list[int], loads: list[int]) -> None:
    """The tail sees the head's load; or, apart, it does not, and goes to its two in turn."""
    given, _ = example("RR-01")
    state = started(f"rr:separate={str(separate).lower()}", given["n"], 1)
    state = given_candidates(state, [[2, 2], given["tail_candidates"]])._replace(detector=Named(0))
    assert [int(state.choose(0, "ht".index(name), 0)) for name in given["stream"].split()] == workers
    assert state.loads.load.tolist() == [loads]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", list(EXAMPLES["DC-06"]["input"]["counts"]))
def test_dc_06(name: str, strict: bool) -> None:
    """The key's last tuple is the last of all: what the grouping then says of it."""
    given, expected = example("DC-06")
    count, total = given["counts"][name], given["m_local"]
    text = f"w_choices:theta=1/(5n),capacity=2000,strict={str(strict).lower()}"
    state = started(text, given["n"], 1)
    # Others 2 times each, which are never hot but in the first hundred tuples.
    keys = [1 + i // 2 for i in range(total - count)]
    for key in [0] * (count - 1) + keys + [0]:
        state.choose(0, key, 0)
    assert state.detector.total[0] == total
    assert bool(state.choices[0]) == (expected[name] == "head" and not strict)


def test_dc_07() -> None:
    """PKG on that stream is as unbalanced as the bound says, and hardly more."""
    given, expected = example("DC-07")
    n, shares = given["n"], np.arange(1, given["K"] + 1) ** -given["z"]
    shares /= shares.sum()
    assert shares[0] == pytest.approx(expected["p1"], abs=1e-6)
    assert shares[0] / 2 - 1 / n == pytest.approx(expected["bound"], abs=1e-6)
    state = started("pkg", n, 1)
    # Keys of the example beyond those there are: hashes of their own are what matters, of the rare ones not much.
    keys = np.minimum(np.random.default_rng(2).choice(given["K"], 20_000, p=shares), len(state.candidates) - 1)
    assert len(set(state.candidates[0].tolist())) == 2
    for key in keys.tolist():
        state.choose(0, key, 0)
    imbalance = state.load.max() / len(keys) - 1 / n
    assert (keys == 0).mean() / 2 - 1 / n <= imbalance
    assert imbalance == pytest.approx(expected["bound"], abs=0.02)


def test_hash_01() -> None:
    """The hash of the published variants is the one that keys are hashed with here, with other seeds."""
    given, expected = example("HASH-01")
    n = given["n"]
    for key in given["keys"]:
        found = expected[key]
        longs = [mmh3.hash64(key.encode(), seed, x64arch=True)[0] for seed in (13, 17)]
        assert longs == [found["asLong13"], found["asLong17"]]
        assert [abs(value) % n for value in longs] == found["storm_pkg_n10"]
        ints = [int(np.int64(mmh3.hash64(key.encode(), seed, x64arch=True)[0]).astype(np.int32)) for seed in (43, 47)]
        assert ints == [found["asInt43"], found["asInt47"]]
        assert [abs(value) % n for value in ints] == found["slbsim_pkg_n10"]
        assert abs(int(np.int64(longs[0]).astype(np.int32))) % n == found["slbsim_kg_n10"]


def test_dyn_09() -> None:
    """The rows of the paper's table are of one run: about as many records each."""
    given, expected = example("DYN-09")
    records = {name: round(given["throughput"][name] * ms / 1000) for name, ms in given["latency_ms"].items()}
    assert records == expected["total_records"]
    assert max(records.values()) / min(records.values()) < 1.002


def test_every_example_is_mentioned_by_another_test_or_here() -> None:
    texts = "".join(path.read_text() for path in sorted(TESTS.rglob("test_*.py")))
    assert {name for name in EXAMPLES.keys() - ELSEWHERE if f'"{name}"' not in texts} == set()
