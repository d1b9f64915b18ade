"""Lists and ranges: what they stand for, and what they may not be."""

import itertools
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.study.sweep.value_lists import arrivals_of, as_text, groupings_of, values_of, whole_numbers


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("16", "16"),
        ("16, 32,64", "16 32 64"),
        ("8..64..8", "8 16 24 32 40 48 56 64"),
        ("1..3", "1 2 3"),
        ("0.1..0.5..0.1", "0.1 0.2 0.3 0.4 0.5"),
        ("0..1..0.25", "0 0.25 0.5 0.75 1"),
        ("5..1..-2", "5 3 1"),
        ("1..6..2", "1 3 5"),
        ("2..2", "2"),
        ("-1..1", "-1 0 1"),
        ("1e3", "1e3"),
    ],
)
def test_what_a_text_lists(text: str, values: str) -> None:
    assert values_of([text], "-n") == values.split()


@pytest.mark.parametrize(
    "text", ["", "1,,2", "1..", "1..x", "5..1", "1..5..0", "1..5..-1", "1..2..3..4", "0..9..0.0001"]
)
def test_what_no_text_may_be(text: str) -> None:
    with pytest.raises(UsageError, match="-n"):
        values_of([text], "-n")


@given(st.integers(-999, 999), st.integers(1, 99), st.integers(0, 50), st.integers(0, 3))
def test_ranges_are_exact(first: int, step: int, count: int, digits: int) -> None:
    unit = Decimal(1).scaleb(-digits)
    last = (first + step * count) * unit
    found = values_of([f"{first * unit:f}..{last:f}..{step * unit:f}"], "x")
    assert [Decimal(value) for value in found] == [(first + step * place) * unit for place in range(count + 1)]


@pytest.mark.parametrize("text", ["x", "1.5", "0", "101", "1..200"])
def test_numbers_have_bounds(text: str) -> None:
    with pytest.raises(UsageError, match="-n"):
        whole_numbers([text], "-n", 1, 100)


_lists = st.lists(st.integers(0, 9).map(str), min_size=1, max_size=4, unique=True)


@given(st.dictionaries(st.sampled_from("abcd"), _lists, max_size=3))
def test_a_grouping_with_lists_is_all_combinations(lists: dict[str, list[str]]) -> None:
    text = ",".join(f"{name}={','.join(values)}" for name, values in lists.items())
    found = groupings_of(f"fish:{text}" if text else "fish")
    wanted = [
        "fish" + (":" if lists else "") + ",".join(f"{name}={value}" for name, value in zip(lists, one, strict=True))
        for one in itertools.product(*lists.values())
    ]
    assert found == wanted
    assert as_text({"name": "fish", **lists}, "x") == (f"fish:{text}" if text else "fish")


def test_groupings_of_the_contract() -> None:
    assert groupings_of("fish:alpha=0,0.2,epoch=1000,2000") == [
        "fish:alpha=0,epoch=1000",
        "fish:alpha=0,epoch=2000",
        "fish:alpha=0.2,epoch=1000",
        "fish:alpha=0.2,epoch=2000",
    ]
    assert groupings_of("salt=./mine.py:x=1,2") == ["salt=./mine.py:x=1", "salt=./mine.py:x=2"]
    assert as_text({"name": "./mine.py", "label": "salt", "x": [1, 2]}, "x") == "salt=./mine.py:x=1,2"
    assert groupings_of("../a/mine.py:x=1..2") == ["../a/mine.py:x=1", "../a/mine.py:x=2"]
    for text in ("", "fish:alpha", "fish:alpha=1,alpha=2", "fish:alpha=", "fish:alpha=1..x"):
        with pytest.raises(UsageError, match="-g"):
            groupings_of(text)


@pytest.mark.parametrize(
    ("texts", "kinds"),
    [
        (["trace"], "trace"),
        (["utilization=0.5..0.9..0.2,saturate"], "utilization=0.5 utilization=0.7 utilization=0.9 saturate"),
        (["rate=100, 200,trace", "poisson=5"], "rate=100 rate=200 trace poisson=5"),
        (["trace,5"], "trace 5"),
    ],
)
def test_arrivals_of_a_kind_are_a_list(texts: list[str], kinds: str) -> None:
    assert arrivals_of(texts) == kinds.split()


@pytest.mark.parametrize("text", ["", "rate=", "rate=1,,2", "rate=1..x"])
def test_arrivals_with_an_empty_value(text: str) -> None:
    with pytest.raises(UsageError, match="--arrivals"):
        arrivals_of([text])


@pytest.mark.parametrize(
    "table", [{}, {"name": 3}, {"name": "kg", "d": []}, {"name": "kg", "d": {"x": 1}}, {"name": "kg", "d": [[1]]}]
)
def test_tables_that_are_no_grouping(table: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="here"):
        as_text(table, "here")
