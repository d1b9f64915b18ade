"""Backlogs as a source infers them: the worked examples, and random streams against a dictionary."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.kernels.backlogs import _cheapest, drain, make_backlogs, send, take_times
from streamgroup.kernels.shortlists import make_shortlists

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
MS = 1_000_000


def example(name: str) -> tuple[Any, Any]:
    (found,) = [entry for entry in EXAMPLES if entry["id"] == name]
    return found["input"], found["expected"]


def lists_of(count: int) -> Any:
    """Give the workers of a single key: 0 and 1 if it is cold."""
    none = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint16), np.empty((1, 2), dtype=np.uint64))
    return make_shortlists(np.array([[0, 1]], dtype=np.uint16), np.arange(count), *none)


def test_a_backlog_counts_each_tuple_once() -> None:
    given_, expected = example("FISH-05")
    backlogs = make_backlogs(1, np.arange(1), given_["T_ms"] * MS - 1, 1.0)
    take_times(backlogs, np.array([given_["P_ms"] * MS]))
    backlogs.left[0, 0] = given_["backlog_before"] + given_["assigned_in_interval"]
    drain(backlogs, 0, given_["T_ms"] * MS)
    assert backlogs.left[0, 0] == expected["recommended"]
    assert backlogs.since[0] == given_["T_ms"] * MS


def test_to_the_letter_a_backlog_counts_each_tuple_twice() -> None:
    given_, expected = example("FISH-05")
    backlogs = make_backlogs(1, np.arange(2), given_["T_ms"] * MS, 1.0, True)
    shortlists = lists_of(2)
    for _ in range(given_["assigned_in_interval"]):
        assert send(backlogs, shortlists, 0, 0, 0) == 0
        backlogs.left[0, 1] = backlogs.cost[0, 1] = 1000.0
    take_times(backlogs, np.array([given_["P_ms"] * MS, 0.0]))
    drain(backlogs, 0, given_["T_ms"] * MS)
    assert backlogs.left[0].tolist() == [450.0, 1000.0]
    # However much later it is, the constant T is taken off; what takes no time is done.
    drain(backlogs, 0, 10 * given_["T_ms"] * MS)
    assert backlogs.left[0].tolist() == [expected["literal_Alg3"], 0.0]
    # A second time nothing is fresh.
    drain(backlogs, 0, 20 * given_["T_ms"] * MS)
    assert backlogs.left[0].tolist() == [expected["literal_Alg3"] - given_["T_ms"], 0.0]


@pytest.mark.parametrize(("told", "choice"), [(True, "hwa_choice"), (False, "count_based_choice")])
def test_figure_7(told: bool, choice: str) -> None:
    given_, expected = example("FISH-06")
    names = list(given_["P"])
    backlogs = make_backlogs(1, np.arange(4), 10**9, 1.0)
    backlogs.left[0] = [given_["unprocessed"][name] for name in names]
    take_times(backlogs, np.array([float(given_["P"][name]) if told else -1.0 for name in names]))
    if told:
        assert dict(zip(names, backlogs.cost[0].tolist(), strict=True)) == expected["waiting"]
    assert names[send(backlogs, lists_of(4), 0, 0, 4)] == expected[choice]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.0, 2.5, 3.0]), min_size=1, max_size=40), st.data())
def test_the_cheapest_is_the_first_of_equal_ones(costs: list[float], data: st.DataObject) -> None:
    d = data.draw(st.integers(1, len(costs)))
    order = data.draw(st.permutations(range(len(costs))))
    floor_ = data.draw(st.sampled_from([-1.0, min(costs)]))
    cost, lists = np.array([costs]), np.array([order], dtype=np.uint16)
    assert _cheapest(lists, 0, d, cost, 0, floor_) == min(order[:d], key=lambda worker: costs[worker])


def test_no_time_at_all_leaves_nothing() -> None:
    backlogs = make_backlogs(2, np.arange(2), 5, 2.0)
    take_times(backlogs, np.array([0.0, 10.0]))
    backlogs.left[:] = 7.0
    drain(backlogs, 1, 5)
    assert backlogs.left.tolist() == [[7.0, 7.0], [7.0, 7.0]]
    drain(backlogs, 1, 100)
    assert backlogs.left.tolist() == [[7.0, 7.0], [0.0, 2.0]]
