"""SpaceSaving: its guarantees, the worked examples, and the tie that the papers leave open."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.kernels.counts.space_saving import (
    capacity_of,
    entries_of,
    error_of,
    forget_source,
    make_space_saving,
    offer,
    top_counts,
    top_estimates,
    used,
)
from tests.naive.kernels.space_saving import SpaceSaving as Naive

EXAMPLES = {
    entry["id"]: entry for entry in json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
}


def table(tables: Any, source: int = 0) -> dict[int, tuple[int, int]]:
    """Key -> count and error, each of them found by its key."""
    found = entries_of(tables, source)
    assert used(tables, source) == len(found) <= capacity_of(tables)
    assert all(error_of(tables, source, key) == error for key, (_, error) in found.items())
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


@pytest.mark.parametrize(("capacity", "exponent"), [(1, 1.2), (5, 1.2), (64, 1.2), (64, 3.0), (500, 1.05)])
def test_long_streams(capacity: int, exponent: float) -> None:
    """Counts rise over many queues: one step at a time, and, where a key is much more frequent, through a gap."""
    tables, naive = make_space_saving(1, capacity), Naive(capacity)
    rng = np.random.default_rng(capacity)
    keys = rng.zipf(exponent, 6000) % 3000
    keys[2000:2500] = 7
    for place, key in enumerate(keys.tolist()):
        offer(tables, 0, key, True)
        naive.offer(key)
        if place % 53 == 0:
            assert table(tables) == {key: (entry.count, entry.error) for key, entry in naive.table.items()}
    assert sum(count for count, _ in table(tables).values()) == 6000


def test_all_is_forgotten() -> None:
    tables = make_space_saving(1, 3)
    for _ in range(2):
        for key in (1, 2, 3, 4, 4, 5):
            offer(tables, 0, key, True)
        # The second time as the first.
        assert table(tables) == {3: (1, 0), 4: (3, 1), 5: (2, 1)}
        forget_source(tables, 0)
        assert table(tables) == {}


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


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=1, max_size=200),
    st.integers(1, 9),
    st.lists(st.integers(1, 40), min_size=1, max_size=9),
)
def test_the_top_is_kept_up_to_date(stream: list[tuple[int, int]], capacity: int, bounds: list[int]) -> None:
    """Asked at any time, with bounds that rise and fall, also below the counts of keys that make room."""
    tables = make_space_saving(1, capacity)
    counts = np.zeros(capacity, dtype=np.int64)
    for place, (key, asks) in enumerate(stream):
        offer(tables, 0, key, True)
        if asks == 0:
            least = bounds[place % len(bounds)]
            found = top_counts(tables, 0, 3, least, counts)
            wanted = sorted((c for c, _ in table(tables).values() if 3 * c >= least), reverse=True)
            assert counts[:found].tolist() == wanted
