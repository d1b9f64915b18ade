"""The three spaces against lists, and the worked examples of promotion."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings.dynamic_kg.baby_teenage_old_keys import (
    COUNT,
    NEXT,
    OLD,
    USED,
    Spaces,
    add_baby,
    grow_old,
    item_of,
    larger_spaces,
    make_spaces,
    promote,
    space_of,
)

EXAMPLES = {one["id"]: one for one in json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())}
Space = list[tuple[str, int]]


def promoted(source: Space, destination: Space, capacity: int, is_literal: bool = False) -> tuple[Space, Space]:
    """Promote between spaces written as lists of (key, count), head first."""
    named = [("", 0), *source, *destination]
    item = np.array([[count, 0] for _, count in named])
    m, k = len(source), len(destination)
    queue = np.zeros((2, m + k + 2 * capacity), dtype=np.int64)
    queue[0, :m] = range(1, m + 1)
    queue[1, :k] = range(m + k, m, -1)
    over, back = promote(item, queue, m, k, capacity, is_literal)
    left = [named[one] for one in queue[0, over : m + back]]
    return left, [named[one] for one in queue[1, back : k + over][::-1]]


def tuples(space: list[list[Any]]) -> Space:
    return [(key, count) for key, count in space]


@pytest.mark.parametrize(
    ("name", "which"),
    [
        ("DYN-02", None),
        ("DYN-03", "recommended"),
        ("DYN-03", "literal"),
        ("DYN-04", "authors_code"),
        ("DYN-04", "literal_break_if_L_gt_F"),
    ],
)
def test_worked_examples_of_promotion(name: str, which: str | None) -> None:
    given, expected = EXAMPLES[name]["input"], EXAMPLES[name]["expected"]
    expected = expected if which is None else expected[which]
    source, destination = tuples(given["SS"]), tuples(given["DS"])
    left, promoted_to = promoted(
        source, destination, given.get("capacity", len(destination)), "literal" in (which or "")
    )
    assert left == tuples(expected["SS"])
    assert promoted_to == tuples(expected["DS"])


def test_no_more_is_swapped_than_there_are_places() -> None:
    assert promoted([("a", 9), ("b", 8), ("c", 7)], [("p", 1)], 1) == ([("b", 8), ("c", 7), ("p", 1)], [("a", 9)])


class Lists:
    """The spaces of one source, slow and obvious: items are [key, count, born], spaces are lists, head first."""

    def __init__(self, expected: int, by_age: bool) -> None:
        self.by_age = by_age
        self.sizes = (expected // 2, int(expected * 0.4), int(expected * 0.1))
        self.baby: list[list[int]] = []
        self.teenage: list[list[int]] = []
        self.old: list[list[int]] = []
        self.born = 0

    def see(self, key: int) -> None:
        for one in (*self.baby, *self.teenage, *self.old):
            if one[0] == key:
                one[1] += 1
                return
        self.born += 1
        self.baby.append([key, 1, self.born])

    def grow(self, to_old: bool) -> None:
        self.baby.sort(key=lambda one: one[2] if self.by_age else (-one[1], one[2]))
        del self.baby[self.sizes[0] :]
        self.baby.sort(key=lambda one: (-one[1], one[2]))
        self.promote(self.baby, self.teenage, self.sizes[1])
        if to_old:
            self.teenage.sort(key=lambda one: -one[1])
            self.promote(self.teenage, self.old, self.sizes[2])

    @staticmethod
    def promote(source: list[list[int]], destination: list[list[int]], capacity: int) -> None:
        destination.sort(key=lambda one: -one[1])
        while source and len(destination) < capacity:
            destination.insert(0, source.pop(0))
        for _ in range(capacity):
            if not source or not destination or source[0][1] <= destination[-1][1]:
                break
            destination.insert(0, source.pop(0))
            source.append(destination.pop())


def listed(spaces: Spaces, source: int, ordered: Any, count: int) -> list[list[int]]:
    return [[int(spaces.life[one, 0]), int(spaces.item[one, COUNT])] for one in ordered[source, :count]]


def babies(spaces: Spaces, source: int) -> list[list[int]]:
    found, one = [], int(spaces.source[source, 0])
    while one:
        found.append([int(spaces.life[one, 0]), int(spaces.item[one, COUNT])])
        one = int(spaces.life[one, NEXT])
    return sorted(found)


# None is a run of the timer, True one that goes on to Old.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 2), st.integers(0, 5)),
        st.tuples(st.integers(0, 2), st.integers(0, 60)),
        st.sampled_from([False, True]),
    ),
    max_size=150,
)


@settings(max_examples=200, deadline=None)
@given(STEPS, st.sampled_from([10, 11, 25]), st.booleans())
def test_spaces_hold_what_lists_hold(steps: list[Any], expected: int, by_age: bool) -> None:
    spaces, lists = make_spaces(3, expected, 4), [Lists(expected, by_age) for _ in range(3)]
    for step in steps:
        if isinstance(step, bool):
            for source in range(3):
                before = spaces.pool[USED]
                forgotten = grow_old(spaces, source, expected // 2, step, False, by_age)
                assert before - spaces.pool[USED] == forgotten
                lists[source].grow(step)
        else:
            source, key = step
            one = item_of(spaces, source, key)
            if one:
                spaces.item[one, COUNT] += 1
            else:
                if spaces.pool[USED] == len(spaces.item) - 1:
                    spaces = larger_spaces(spaces)
                add_baby(spaces, source, key)
            lists[source].see(key)
        for source, model in enumerate(lists):
            _, number, teenagers, old_ones = spaces.source[source]
            assert babies(spaces, source) == sorted(one[:2] for one in model.baby)
            assert number == len(model.baby)
            assert listed(spaces, source, spaces.teenage, teenagers) == [one[:2] for one in model.teenage]
            assert listed(spaces, source, spaces.old, old_ones) == [one[:2] for one in model.old]
            for key in range(61):
                one = item_of(spaces, source, key)
                known = {one[0]: one[1] for one in (*model.baby, *model.teenage, *model.old)}
                assert (spaces.item[one, COUNT] if one else None) == known.get(key)
                assert bool(one and space_of(spaces, one) == OLD) == (key in {one[0] for one in model.old})
        assert spaces.pool[USED] == sum(len(one.baby) + len(one.teenage) + len(one.old) for one in lists)
