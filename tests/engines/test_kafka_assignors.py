"""Kafka's assignors: who reads which partition, and what each of them promises when members come and go."""

from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.engines.kafka_assignors import assign, owners


def test_eleven_partitions_on_five_instances() -> None:
    members = [0, 1, 2, 3, 4]
    assert assign(11, members, "range") == {0: [0, 1, 2], 1: [3, 4], 2: [5, 6], 3: [7, 8], 4: [9, 10]}
    assert assign(11, members, "round_robin") == {0: [0, 5, 10], 1: [1, 6], 2: [2, 7], 3: [3, 8], 4: [4, 9]}
    assert assign(11, members, "sticky") == assign(11, members, "round_robin")
    assert owners(assign(11, members)).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_sticky_keeps_what_there_is() -> None:
    before = assign(11, [0, 1, 2, 3, 4], "sticky")
    # 2 leaves: its partitions 2 and 7 are free; three members will have three, and 0 has them already.
    after = assign(11, [0, 1, 3, 4], "sticky", before)
    assert after == {0: [0, 5, 10], 1: [1, 6, 2], 3: [3, 8, 7], 4: [4, 9]}
    # 5 joins and is filled to two; 3, which comes after 0 and 1, is no longer among those with three.
    again = assign(11, [0, 1, 3, 4, 5], "sticky", after)
    assert again == {0: [0, 5, 10], 1: [1, 2], 3: [3, 7], 4: [4, 9], 5: [6, 8]}


def test_more_members_than_partitions() -> None:
    for assignor in ("range", "round_robin", "sticky"):
        assert assign(2, [7, 3, 5], assignor) == {7: [0], 3: [1], 5: []}
    assert assign(2, [7, 3, 5], "sticky", {5: [0, 1]}) == {7: [1], 3: [], 5: [0]}


@given(st.integers(1, 40), st.lists(st.sets(st.integers(0, 9), min_size=1), min_size=1, max_size=5))
def test_every_partition_has_one_member_and_loads_differ_by_one(partitions: int, crews: list[set[int]]) -> None:
    found: dict[int, list[int]] = {}
    for crew in crews:
        before, members = found, sorted(crew)
        found = assign(partitions, members, "sticky", before)
        for assignment in (found, assign(partitions, members, "range"), assign(partitions, members, "round_robin")):
            assert list(assignment) == members
            sizes = [len(had) for had in assignment.values()]
            assert sorted(chain(*assignment.values())) == list(range(partitions))
            assert max(sizes) - min(sizes) <= 1
        # Only what must move does: a member loses none while it has no more than the fewest.
        for member in members:
            least = partitions // len(members)
            had = before.get(member, [])
            assert len(set(had) & set(found[member])) >= min(len(had), least)


@given(st.integers(1, 60), st.integers(1, 12))
def test_sticky_changes_nothing_if_nobody_does(partitions: int, members: int) -> None:
    first = assign(partitions, range(members), "sticky")
    assert assign(partitions, range(members), "sticky", first) == first
    assert np.array_equal(owners(first), np.arange(partitions) % members)


@pytest.mark.parametrize("wrong", [(0, [1]), (3, []), (3, [1, 1]), (3, [1], "uniform")])
def test_arguments(wrong: Any) -> None:
    with pytest.raises(UsageError):
        assign(*wrong)
