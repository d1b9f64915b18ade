"""Tuples leave sources that take a time in the order that sorting all of them gives."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.simulation import order_of_service
from streamgroup.replay.simulation.order_of_service import OrderOfService, divide, sort_by_time
from streamgroup.replay.tuple_arrays import MAX_TIME_NS

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
        order.read(ready, begin, end)
        while order.next(last=end == len(tuples)):
            assert order.first_unsent(end) == min(set(range(end)) - {seq for _, seq, _ in left}, default=end)
            now = order.now
            left += zip(now.leaves.tolist(), now.seq.tolist(), now.source.tolist(), strict=True)
            now.sent[0] = len(now.seq)
    return left


@settings(max_examples=200)
@given(
    base=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    drawn=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), st.sampled_from([0.0, 0.5, 1.0, 3.0])), min_size=1),
    size=st.integers(1, 30), turns=st.booleans(), factors=st.booleans(), steps=st.sampled_from([-1, 8]),
    room=st.sampled_from([1, 4, 1 << 16]),
)  # fmt: skip
def test_they_leave_as_sorting_all_says(
    base: list[int], drawn: list[Any], size: int, turns: bool, factors: bool, steps: int, room: int
) -> None:
    arrivals = np.cumsum([gap for gap, _, _ in drawn]).tolist()
    tuples = [
        (at, seq % len(base) if turns else source % len(base), factor if factors else 1.0)
        for seq, (at, (_, source, factor)) in enumerate(zip(arrivals, drawn, strict=True))
    ]
    with pytest.MonkeyPatch.context() as patch:
        # With -1 sorting gives up at the first step, and the library sorts.
        patch.setattr(order_of_service, "_STEPS", steps)
        patch.setattr(order_of_service, "BLOCK", room)
        assert in_pieces(base, tuples, size, turns=turns, factors=factors) == naive(base, tuples)


def test_a_source_far_behind_is_left_to_the_library() -> None:
    """Tuples that go past thousands that wait at a slow source: too many steps one by one."""
    seq = np.arange(10_000)

    def gives_up(leaves: Any) -> bool:
        now = order_of_service._room(len(seq))
        now.leaves[:] = leaves
        return bool(sort_by_time(now, 8 * len(seq)))

    assert not gives_up(seq ^ 3)
    assert gives_up(np.where(seq % 2, 3 * seq, seq))
    tuples = [(at, at % 2, 1.0) for at in range(10_000)]
    assert in_pieces([0, 3], tuples, 4_000, turns=True, factors=False) == naive([0, 3], tuples)


def test_what_waits_is_not_looked_at_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source is ten times too slow: its tuples wait, and are divided from the others as often as they double."""
    looked = []

    def counting(waiting: Any, horizon: Any, now: Any) -> None:
        looked.append(len(waiting.seq))
        divide(waiting, horizon, now)

    monkeypatch.setattr(order_of_service, "divide", counting)
    monkeypatch.setattr(order_of_service, "BLOCK", 100)
    tuples = [(at, at % 3, 1.0) for at in range(9_000)]
    assert in_pieces([30, 1, 1], tuples, 100, turns=True, factors=False) == naive([30, 1, 1], tuples)
    assert len(tuples) < sum(looked) < 10 * len(tuples)


def test_sources_that_are_all_too_slow_let_nothing_wait() -> None:
    order = OrderOfService(lambda function: function, np.array([60, 60, 60]))
    arrival = np.arange(9_000)
    ready = Ready(0, arrival, np.zeros(9_000, dtype=np.uint32), None, None, 0, NONE, NONE)
    order.read(ready, 0, 6_000)
    assert order.next(last=False)
    assert len(order.now.seq) > 5_990


def test_no_time_wraps() -> None:
    far = MAX_TIME_NS // 3
    found = in_pieces([far, 1], [(0, seq % 2, 1.0) for seq in range(20)], 7, turns=True, factors=False)
    ends = [end for end, _, source in found if source == 0]
    assert ends == [far, 2 * far, 3 * far, *[MAX_TIME_NS + 1] * 7]
