"""The least loaded of all: by levels where loads grow by one, by a tournament otherwise."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings.protocol import WorkersChange
from streamgroup.kernels.least_loaded_of_all import add_one, least, make_levels
from streamgroup.kernels.ordered.tournament_tree import leaves, make_tournament, set_leaf


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=70),
    st.sets(st.integers(0, 69), min_size=1),
    st.lists(st.integers(0, 10**6), max_size=150),
)
def test_levels_find_the_lowest_of_the_least_loaded(start: list[int], some: set[int], picks: list[int]) -> None:
    live = np.array(sorted(some & set(range(len(start)))) or [0], dtype=np.int64)
    load = np.array([[9] * len(start), start], dtype=np.int64)
    levels = make_levels(load, live)
    for pick in picks:
        lowest = min(live, key=lambda worker: (load[1, worker], worker))
        assert least(levels, 1) == lowest
        assert levels[1, 0] == load[1, lowest]
        # Sometimes the least loaded, sometimes another.
        worker = lowest if pick % 3 else live[pick % len(live)]
        before = load[1, worker]
        add_one(levels, load, live, 1, worker)
        assert load[1, worker] == before + 1
    assert load[0].tolist() == [9] * len(start)


def test_levels_of_many_workers() -> None:
    """Rounds over more than one word of bits, in order of ids."""
    live = np.arange(100, dtype=np.int64)
    load = np.zeros((1, 100), dtype=np.int64)
    levels = make_levels(load, live)
    for _ in range(3):
        for worker in range(100):
            assert least(levels, 0) == worker
            add_one(levels, load, live, 0, worker)


@settings(deadline=None)
@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 19), st.integers(-5, 5)), max_size=60),
    st.sets(st.integers(0, 19), min_size=1),
)
def test_a_tournament_finds_the_first_of_the_least(
    values: list[int], changes: list[tuple[int, int]], some: set[int]
) -> None:
    part = np.array(sorted(some & set(range(len(values)))) or [0], dtype=np.int64)
    for kind in (np.int64, np.float64):
        now = np.array([values, values], dtype=kind)
        tree, winner = make_tournament(now, part)
        for place, value in [*changes, (0, 0)]:
            leaf = part[place % len(part)]
            now[1, leaf] = value
            set_leaf(tree, winner, 1, leaf, kind(value))
            wanted = min(part, key=lambda other: (now[1, other], other))
            assert winner[1, 1] == wanted
            assert tree[1, 1] == now[1, wanted]
        assert winner[0, 1] == min(part, key=lambda other: (now[0, other], other))


def test_leaves_are_a_power_of_two() -> None:
    assert [leaves(count) for count in (1, 2, 3, 4, 5, 64, 65)] == [2, 2, 4, 4, 8, 64, 128]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["send"] * 3 + ["join", "leave"]), st.integers(0, 99)), max_size=120))
def test_levels_made_anew_when_workers_come_and_go(steps: list[tuple[str, int]]) -> None:
    """A joiner starts at the smallest load of those who stay: loads are carried, and sets made of them."""
    live, ever, loads = [0, 1, 2], 3, [0, 0, 0]
    load = np.zeros((1, 3), dtype=np.int64)
    levels = make_levels(load, np.array(live))
    for what, number in steps:
        if what == "send":
            worker = live[number % len(live)] if number % 4 == 0 else min(live, key=lambda one: (loads[one], one))
            loads[worker] += 1
            add_one(levels, load, np.array(live), 0, worker)
        else:
            joined, left = tuple[int, ...](), tuple[int, ...]()
            if what == "join" and ever < 70:
                loads.append(min(loads[worker] for worker in live))
                joined, ever = (ever,), ever + 1
            elif what == "leave" and len(live) > 1:
                left = (live[number % len(live)],)
            live = [worker for worker in [*live, *joined] if worker not in left]
            load = carry_loads(load, WorkersChange(0, np.array(live), joined, left))
            levels = make_levels(load, np.array(live))
        assert load[0].tolist() == loads
        assert least(levels, 0) == min(live, key=lambda one: (loads[one], one))
