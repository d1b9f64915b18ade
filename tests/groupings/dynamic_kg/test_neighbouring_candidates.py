"""Candidates that follow one another: shares, the least of them, how many are below a bound."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings.dynamic_kg.neighbouring_candidates import at_or_after, count_below, least_share, share

LIVE = np.array([0, 2, 3, 7, 9])


def test_candidates_go_around_the_end() -> None:
    assert [int(at_or_after(LIVE, 3, step)) for step in range(5)] == [7, 9, 0, 2, 3]


def test_a_share_is_a_percentage() -> None:
    assert share(0, 0, False) == 0.0
    assert share(1, 8, False) == 12.5
    assert share(1, 8, True) == 12.0
    assert share(29, 100, True) == 29.0


@settings(deadline=None)
@given(st.lists(st.integers(0, 3000), min_size=10, max_size=10), st.integers(0, 4), st.integers(1, 5), st.booleans())
def test_the_least_share_is_the_first_of_the_smallest(loads: list[int], base: int, width: int, whole: bool) -> None:
    counts = np.array([loads])
    total = np.array([sum(loads[worker] for worker in LIVE)])
    row = [int(LIVE[(base + step) % 5]) for step in range(width)]

    def percent(worker: int) -> float:
        value = 100.0 * loads[worker] / int(total[0]) if total[0] else 0.0
        return float(floor(value)) if whole else value

    assert least_share(counts, total, LIVE, 0, base, width, whole) == min(row, key=percent)
    for bound in (0.0, 12.5, 20.0, 101.0):
        found = count_below(counts, total, LIVE, 0, base, width, np.array([bound, float(whole)]))
        assert found == sum(percent(worker) < bound for worker in row)


@pytest.mark.parametrize("total", [10**6 + 3, 2**40 + 1, 2**45])
@settings(deadline=None)
@given(at=st.floats(0, 1))
def test_counts_are_equal_only_where_shares_are(total: int, at: float) -> None:
    """The choice compares counts; the definition compares shares rounded to float64."""
    count = int(Fraction(at) * (total - 1))
    assert share(count, total, False) < share(count + 1, total, False)
