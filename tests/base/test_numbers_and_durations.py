"""Texts with units, exactly, and nothing that the clock cannot hold."""

from fractions import Fraction

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import parse_duration_ns, parse_number
from streamgroup.base.time_count_or_share import Position, index_of, parse_extent, parse_position


@pytest.mark.parametrize(
    ("text", "ns"),
    [("1ms", 10**6), ("0.3s", 3 * 10**8), ("2.5ns", 2), ("3.5ns", 4), ("1e3us", 10**6), ("0", 0), ("2h", 7200 * 10**9)],
)
def test_durations_are_whole_ns(text: str, ns: int) -> None:
    assert parse_duration_ns(text, "--x") == ns


@pytest.mark.parametrize("text", ["1e30s", "200000d", "1e999999999s", "5", "-1ms", "ms", "1 minute", ""])
def test_what_is_no_duration_or_too_long_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="--x"):
        parse_duration_ns(text, "--x")


def test_numbers_are_exact() -> None:
    assert parse_number("0.1", "--x") == Fraction(1, 10)
    assert parse_number("1_000.5e-3", "--x") == Fraction(10005, 10000)
    for text in ("1e9999", "nan", "inf", "0x1", "1,5"):
        with pytest.raises(UsageError):
            parse_number(text, "--x")


def test_extents() -> None:
    assert parse_extent("12.5%", "--x").share == Fraction(1, 8)
    assert parse_extent("1_000", "--x").count == 1000
    assert parse_extent("10s", "--x").ns == 10**10
    for text in ("101%", "-1%", "10q", "1.5"):
        with pytest.raises(UsageError):
            parse_extent(text, "--x")


def test_places_are_a_time_or_the_first_tuple_that_is_not_before() -> None:
    assert parse_position("10s", "--x", 7) == Position(10**10, None)
    assert parse_position("6", "--x", 7) == Position(None, 6)
    assert parse_position("0", "--x", 7) == Position(None, 0)
    assert parse_position("50%", "--x", 7) == Position(None, 4)
    assert parse_position("50%", "--x", 8) == Position(None, 4)
    # One tenth is no float: 0.1 x 30 is 3, not a little more.
    assert parse_position("10%", "--x", 30) == Position(None, 3)
    assert index_of(parse_extent("100%", "--x"), 7) == 7
    assert index_of(parse_extent("9", "--x"), 7) == 9
    assert index_of(parse_extent("0s", "--x"), 7) is None


@pytest.mark.parametrize("text", ["7", "100%", "99%"])
def test_a_place_past_the_last_tuple_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="--x: there is no tuple 7: the trace has only 7 tuples"):
        parse_position(text, "--x", 7)
