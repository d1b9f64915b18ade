"""Backlogs as a source infers them: the worked examples, and random streams against a dictionary."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from streamgroup.groupings.fish.backlogs import (
    _cheapest,
    drain,
    drain_at_speeds,
    make_backlogs,
    send,
    send_at_speeds,
    take_times,
)
from streamgroup.groupings.fish.candidate_workers import make_shortlists

EXAMPLES = json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())
MS = 1_000_000


def example(name: str) -> tuple[Any, Any]:
    (found,) = [entry for entry in EXAMPLES if entry["id"] == name]
    return found["input"], found["expected"]


def lists_of(count: int) -> Any:
    """Give the workers of a single key: 0 and 1 if it is cold."""
    none = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint16), np.zeros((1, 2), dtype=np.uint64))
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


def every_worker(live: NDArray[np.int64]) -> Any:
    """Give all workers of a single key, the highest id first."""
    none = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint16), np.zeros((1, 2), dtype=np.uint64))
    made = make_shortlists(live[::-1][None, :2].astype(np.uint16), live, *none)
    made.lists[:] = live[::-1]
    made.kept[:, 0] = range(2)
    made.kept[:, 1] = len(live)
    return made


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0, 0, 3, 4, 5, 8]), st.integers(0, 30)), max_size=120),
    st.lists(st.sampled_from([-1.0, 0.0, 1.0, 3.0, 7.5]), min_size=10, max_size=10),
    st.booleans(),
)
def test_against_lists(steps: list[tuple[int, int, int]], times: list[float], is_literal: bool) -> None:
    """Two sources, one key with ten workers, of which d are asked; workers tell of their times halfway."""
    interval, live = 20, np.array([0, 1, 2, 3, 5, 6, 7, 9], dtype=np.int64)
    backlogs, shortlists = make_backlogs(2, live, interval, 2.0, is_literal), every_worker(live)
    order = shortlists.lists[0].tolist()
    sent, fresh = [[0.0] * 10 for _ in range(2)], [[0.0] * 10 for _ in range(2)]
    power, since, is_known, now = [1.0] * 10, [0, 0], False, 0
    for number, (source, d, gap) in enumerate(steps):
        now += gap
        if number == len(steps) // 2:
            take_times(backlogs, np.array(times))
            told = [times[worker] for worker in live if times[worker] >= 0]
            is_known = bool(told)
            for worker in live.tolist() if told else []:
                power[worker] = times[worker] if times[worker] >= 0 else sum(told) / len(told)
        drain(backlogs, source, now)
        if is_known and now - since[source] > interval:
            for worker in live.tolist():
                pace = power[worker] * 2.0
                passed = float(interval if is_literal else now - since[source])
                whole = sent[source][worker] + (fresh[source][worker] if is_literal else 0.0)
                sent[source][worker] = max(0.0, whole - passed / pace) if pace > 0 else 0.0
                fresh[source][worker] = 0.0
            since[source] = now
        allowed = order[: max(d, 2)]
        wanted = min(allowed, key=lambda worker: sent[source][worker] * power[worker])
        assert send(backlogs, shortlists, source, 0, d) == wanted
        sent[source][wanted] += 1.0
        fresh[source][wanted] += 1.0
        assert backlogs.left.tolist() == sent
    if is_literal:
        assert backlogs.fresh.tolist() == fresh


def test_told_times_that_are_gone_leave_counts_alone() -> None:
    backlogs = make_backlogs(1, np.arange(3), 5, 1.0)
    backlogs.left[0] = [4.0, 1.0, 2.0]
    take_times(backlogs, np.array([2.0, 8.0, -1.0]))
    assert backlogs.cost.tolist() == [[8.0, 8.0, 10.0]]
    take_times(backlogs, np.full(3, -1.0))
    assert backlogs.known[0] == 0
    assert backlogs.cost.tolist() == backlogs.left.tolist()
    drain(backlogs, 0, 10**6)
    assert backlogs.left.tolist() == [[4.0, 1.0, 2.0]]
    assert backlogs.since[0] == 0


@pytest.mark.parametrize("is_literal", [False, True])
def test_speeds_that_are_known(is_literal: bool) -> None:
    """With a mean cost and slowdowns given, against the same that was told."""
    slowdown = np.array([1.0, 2.0, 4.0])
    known, told = (make_backlogs(1, np.arange(3), 10, 1.0, is_literal) for _ in range(2))
    shortlists = every_worker(np.arange(3))
    take_times(told, 2.0 * slowdown)
    for now in range(0, 200, 3):
        drain_at_speeds(known, 0, now, 2.0, slowdown)
        drain(told, 0, now)
        for _ in range(3):
            d = now % 4
            assert send_at_speeds(known, shortlists, 0, 0, d, 2.0, slowdown) == send(told, shortlists, 0, 0, d)
        assert known.left.tolist() == told.left.tolist()
    assert known.since[0] > 150
