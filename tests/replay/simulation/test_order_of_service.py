"""Tuples leave sources that take a time in the order that sorting all of them gives."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.simulation import order_of_service
from streamgroup.replay.simulation.order_of_service import OrderOfService, sort_in
from streamgroup.replay.tuple_arrays import NEVER

NONE = np.zeros(0, dtype=np.int64)


def naive(base: list[int], tuples: list[tuple[int, int, float]]) -> list[tuple[int, int, int]]:
    """Serve (arrival, source, factor) one after the other, and sort by end, then by number."""
    idle, found = [0] * len(base), []
    for seq, (arrival, source, factor) in enumerate(tuples):
        idle[source] = max(arrival, idle[source]) + round(base[source] * factor)
        found.append((idle[source], seq, source))
    return sorted(found)


def in_pieces(base: list[int], tuples: list[tuple[int, int, float]], size: int, *, turns: bool, factors: bool) -> Any:
    """Take the tuples in pieces; yield those that leave, with the lowest number that has not left before."""
    order = OrderOfService(lambda function: function, np.array(base))
    arrival, source, factor = (np.array(column) for column in zip(*tuples, strict=True))
    ready = Ready(
        0, arrival.astype(np.int64), np.zeros(len(tuples), dtype=np.uint32), None,
        None if turns else source.astype(np.int32), 0, NONE, NONE, factor.astype(float) if factors else None,
    )  # fmt: skip
    left: list[tuple[int, int, int]] = []
    for begin in range(0, len(tuples), size):
        end = min(begin + size, len(tuples))
        order.take(ready, begin, end, last=end == len(tuples))
        done = {seq for _, seq, _ in left}
        assert order.first_unsent(end) == min(set(range(end)) - done, default=end)
        now = order.now
        left += zip(now.leaves.tolist(), now.seq.tolist(), now.source.tolist(), strict=True)
        now.sent[0] = len(now.seq)
    return left


@settings(max_examples=200)
@given(
    base=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    drawn=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), st.sampled_from([0.0, 0.5, 1.0, 3.0])), min_size=1),
    size=st.integers(1, 30), turns=st.booleans(), factors=st.booleans(), steps=st.sampled_from([-64, 8]),
)  # fmt: skip
def test_they_leave_as_sorting_all_says(
    base: list[int], drawn: list[Any], size: int, turns: bool, factors: bool, steps: int
) -> None:
    arrivals = np.cumsum([gap for gap, _, _ in drawn]).tolist()
    tuples = [
        (at, seq % len(base) if turns else source % len(base), factor if factors else 1.0)
        for seq, (at, (_, source, factor)) in enumerate(zip(arrivals, drawn, strict=True))
    ]
    with pytest.MonkeyPatch.context() as patch:
        # With -64 sorting gives up at once but for a few tuples, and the library sorts.
        patch.setattr(order_of_service, "_STEPS", steps)
        assert in_pieces(base, tuples, size, turns=turns, factors=factors) == naive(base, tuples)


def test_a_source_far_behind_is_left_to_the_library() -> None:
    """Tuples that go past thousands that wait at a slow source: too many steps one by one."""
    seq = np.arange(10_000)

    def gives_up(leaves: Any) -> bool:
        rooms = [order_of_service._room(len(seq)) for _ in range(3)]
        rooms[0].leaves[:] = leaves
        return bool(sort_in(rooms[0], NEVER, rooms[1], rooms[2], np.zeros(2, dtype=np.int64)))

    assert not gives_up(seq ^ 3)
    assert gives_up(np.where(seq % 2, 3 * seq, seq))
    tuples = [(at, at % 2, 1.0) for at in range(10_000)]
    assert in_pieces([0, 3], tuples, 4_000, turns=True, factors=False) == naive([0, 3], tuples)
