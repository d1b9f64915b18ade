"""SpaceSaving: its guarantees, the worked examples, and the tie that the papers leave open."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.kernels.space_saving import entry_of, make_space_saving, offer, top_counts, top_estimates
from tests.naive.space_saving import SpaceSaving as Naive

EXAMPLES = {
    entry["id"]: entry for entry in json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
}


def table(tables: Any, source: int = 0) -> dict[int, tuple[int, int]]:
    """Key -> count and error."""
    found = {}
    for one in range(1, int(tables.state[source, 0]) + 1):
        key, bucket = int(tables.entry[source, one, 0]), tables.entry[source, one, 1]
        assert entry_of(tables, source, key) == one
        found[key] = int(tables.counts[source, bucket]), int(tables.error[source, one])
    return found


@pytest.mark.parametrize("name", ["SS-01", "SS-02"])
def test_worked_examples(name: str) -> None:
    given_, expected = EXAMPLES[name]["input"], EXAMPLES[name]["expected"]
    tables = make_space_saving(1, given_["capacity"])
    for key in given_["stream"]:
        offer(tables, 0, ord(key), True)
    wanted = {ord(key): (entry["count"], entry["error"]) for key, entry in expected["final"].items()}
    assert table(tables) == wanted


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=200), st.integers(1, 9), st.booleans())
def test_as_its_twin_and_as_promised(stream: list[int], capacity: int, replacement: bool) -> None:
    tables, naive = make_space_saving(2, capacity), Naive(capacity, replacement)
    true: dict[int, int] = {}
    for key in stream:
        count = offer(tables, 1, key, replacement)
        naive.offer(key)
        true[key] = true.get(key, 0) + 1
        found = table(tables, 1)
        assert found == {key: (entry.count, entry.error) for key, entry in naive.table.items()}
        assert count == (found[key][0] if key in found else 0)
        for held, (counted, error) in found.items():
            assert counted - error <= true[held] <= counted
            assert error <= sum(true.values()) / capacity
        if replacement:
            assert sum(counted for counted, _ in found.values()) == sum(true.values())
    assert table(tables, 0) == {}


def test_buckets_are_used_again() -> None:
    """A long stream over few entries needs no more buckets than entries."""
    tables = make_space_saving(1, 5)
    rng = np.random.default_rng(0)
    for key in rng.integers(0, 40, 5000):
        offer(tables, 0, int(key), True)
    assert tables.state[0, 2] <= 6
    assert sum(count for count, _ in table(tables).values()) == 5000


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=120), st.integers(1, 9), st.integers(1, 30))
def test_the_top_is_sorted_and_whole(stream: list[int], capacity: int, least: int) -> None:
    tables = make_space_saving(1, capacity)
    for key in stream:
        offer(tables, 0, key, True)
    counts = np.zeros(capacity, dtype=np.int64)
    found = top_counts(tables, 0, 3, least, counts)
    assert counts[:found].tolist() == sorted((c for c, _ in table(tables).values() if 3 * c >= least), reverse=True)
    for sign in (1, -1):
        found = top_estimates(tables, 0, 3, least, sign, counts)
        estimates = [c + sign * e for c, e in table(tables).values()]
        assert counts[:found].tolist() == sorted((e for e in estimates if 3 * e >= least and e > 0), reverse=True)
