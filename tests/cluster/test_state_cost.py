"""What state costs: the options, and what workers hold, against sets of keys."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.cluster.state_cost import NO_LIMIT, StateCost, parse_state_cost
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.replay.simulation.keys_held_by_workers import Held, Windows, hold, make_held, slowness, view_slowness

HALF = StateCost(Fraction(1, 2), 2, Fraction(3))


def test_texts() -> None:
    assert parse_state_cost(None, None, 7) is None
    assert parse_state_cost("0.5/10000", None, 7) == (Fraction(1, 20000), NO_LIMIT, 1)
    assert parse_state_cost(" 0 / 1", "0:1", 7) == (0, 0, 1)
    assert parse_state_cost("1e-3/1e3", "5_000:2.5", 7) == (Fraction(1, 10**6), 5000, Fraction(5, 2))
    assert parse_state_cost("1/100/n", "20 / n:2", 7) == (Fraction(7, 100), 2, 2)


@pytest.mark.parametrize(
    ("cost", "limit", "words"),
    [
        ("-1/10", None, "BETA -1 is not between 0 and 1e9"),
        ("1/0", None, "M 0 is not a whole number from 1"),
        ("1/-3", None, "M -3 is not a whole number from 1"),
        ("1/2.5", None, "M 2.5 is not a whole number from 1"),
        ("1e10/1", None, "BETA 1e10 is not between 0 and 1e9"),
        ("1", None, "does not say for how many entries"),
        ("x/1", None, "'x' is not a number"),
        ("1/2/3", None, "'2/3' is not a number"),
        ("1/n", None, "'n' is not a number"),
        (None, "n:2", "'n' is not a number"),
        ("nan/1", None, "'nan' is not a number"),
        (None, "5", "has no factor"),
        (None, "5:0.9", "FACTOR 0.9 is not between 1 and 1e9"),
        (None, "-5:2", "ENTRIES -5 is not a whole number from 0"),
        (None, "5:inf", "'inf' is not a number"),
        ("1/1", ":", "'' is not a number"),
    ],
)
def test_what_is_refused(cost: str | None, limit: str | None, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_state_cost(cost, limit, 7)
    assert words in caught.value.message


def test_the_longest_factor_and_the_sum() -> None:
    assert HALF.longest_factor(2) == 2
    assert HALF.longest_factor(4) == 9
    # Tuples that found 1, 2, 3 and 4 entries.
    assert HALF.slowdown_sum(4, 10, 2, 7) == Fraction(3, 2) + 2 + 3 * Fraction(5, 2) + 9


def test_windows_with_too_many_digits_are_refused() -> None:
    windows = Windows(0, Fraction(10**12 + 1, 10**12), Fraction(2), 0)
    with pytest.raises(UsageError, match="too many digits"):
        make_held(HALF, 10, 2, windows, 10**7)


def held_by(held: Held, steps: list[tuple[int, int, int]], seq: int) -> list[int]:
    return [int(call(hold, held, w, key, seq + i, at)) for i, (w, key, at) in enumerate(steps)]


def test_keys_are_released_with_their_window_and_late_ones_join_the_next() -> None:
    held = make_held(HALF, 2000, 2, Windows(10, Fraction(0), Fraction(0), 3), 100)
    # The warm-up counts windows from time 0; then they begin at the first measured tuple, which arrives at 12.
    assert held_by(held, [(0, 5, 0), (0, 1999, 9), (0, 5, 11)], 0) == [1, 2, 1]
    held.origin[0] = 12
    assert held_by(held, [(0, 7, 12), (0, 8, 21), (0, 9, 22), (0, 8, 21), (0, 9, 23)], 3) == [1, 2, 1, 2, 2]
    assert held.entries.tolist() == [2, 0]


tuples = st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 7, 8, 511, 512, 1029]), st.integers(0, 3))


@settings(max_examples=60, deadline=None)
@given(st.lists(tuples, max_size=40), st.sampled_from([None, 1, 3, Fraction(5, 2), Fraction(1, 3)]))
def test_as_sets_of_keys(steps: list[tuple[int, int, int]], length: Any) -> None:
    """Where sources are blocked a tuple may come late."""
    windows = None if length is None else Windows(0, Fraction(length), Fraction(1), 0)
    held = make_held(HALF, 1030, 3, windows, 100)
    keys: list[set[int]] = [set(), set(), set()]
    latest = [-1, -1, -1]
    for place, (worker, key, late) in enumerate(steps):
        seq = max(place - late, 0)
        window = 0 if length is None else int(seq // Fraction(length))
        factors = []
        for w in range(3):
            there = keys[w] if window <= latest[w] else set()
            entries = len(there | {key})
            factors.append((1 + 0.5 * entries) * (3 if entries > 2 else 1))
        view = np.ones(3)
        call(view_slowness, held, view, key, seq, 0)
        assert view.tolist() == factors
        if window > latest[worker]:
            keys[worker], latest[worker] = set(), window
        keys[worker].add(key)
        entries = int(call(hold, held, worker, key, seq, 0))
        assert entries == len(keys[worker])
        assert float(call(slowness, held, entries)) == factors[worker]
