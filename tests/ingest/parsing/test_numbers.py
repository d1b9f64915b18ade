"""The decimal parser against exact fractions."""

from fractions import Fraction
from math import floor, isnan

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamgroup.ingest.parsing.numbers import BAD, OK, RANGE, to_fixed, to_float


def texts(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


@settings(deadline=None)
@example(["19073486.3281249999999999999950000007155282459826400090678844332"], 6)
@given(
    st.lists(
        st.decimals(min_value=-(10**13), max_value=10**13, allow_nan=False, places=None).map(str)
        | st.integers(-(10**20), 10**20).map(str)
        | st.from_regex(r"-?0*[0-9]{1,14}\.[0-9]{0,9}", fullmatch=True),
        max_size=20,
    ),
    st.sampled_from([6, 3, 0, -3]),
)
def test_fixed_point_is_the_exact_floor(values: list[str], exponent: int) -> None:
    found, status = to_fixed(texts(*(value.encode() for value in values)), exponent)
    for text, value, code in zip(values, found.tolist(), status.tolist(), strict=True):
        # Fractions are exact: a product of decimals is rounded to 28 digits.
        expected = floor(Fraction(text) * Fraction(10) ** exponent)
        outside = floor(Fraction(text)) if exponent < 0 else expected
        if -(2**63) <= outside < 2**63:
            assert (value, code) == (expected, OK)
        else:
            assert code == RANGE


@settings(deadline=None)
@given(st.data(), st.integers(1, 19), st.sampled_from([9, 6, 3, 0, -3]))
def test_texts_of_one_width_are_read_as_each_alone(data: st.DataObject, width: int, exponent: int) -> None:
    """With the point at one place they have a way of their own; one text in another form must not take it."""
    point = data.draw(st.none() | st.integers(0, width - 1))
    digits = st.text("0123456789", min_size=width, max_size=width)
    values = [
        value if point is None else f"{value[:point]}.{value[point + 1 :]}"
        for value in data.draw(st.lists(digits, min_size=1, max_size=9))
    ]
    values += data.draw(st.lists(st.text("0123456789-+e. x", min_size=width, max_size=width), max_size=1))
    array = pa.concat_arrays([texts(b"7"), texts(*(value.encode() for value in values))]).slice(1)
    found, status = to_fixed(array, exponent)
    alone = [to_fixed(texts(b"-1", value.encode()), exponent) for value in values]
    assert found.tolist() == [own.tolist()[1] for own, _ in alone]
    assert status.tolist() == [own.tolist()[1] for _, own in alone]


@pytest.mark.parametrize(
    "text", [b"", b"-", b".", b"1.2.3", b"1-2", b"--1", b"0x10", b"1e", b"e5", b"nan", b"inf", b"1 2", b"1,5", None]
)
def test_what_is_no_number(text: bytes | None) -> None:
    _, status = to_fixed(texts(b"1", text, b"2"), 6)
    assert status.tolist() == [OK, BAD, OK]
    assert isnan(to_float(texts(b"1", text if text not in (b"nan", b"inf") else b"x"))[1])


@pytest.mark.parametrize(
    ("text", "value"),
    [(b" 5 ", 5), (b"+5", 5), (b".5", 0), (b"5.", 5), (b"1e3", 1000), (b"15e-1", 1), (b"-1.5", -2), (b"-0", 0)],
)
def test_numbers_as_people_write_them(text: bytes, value: int) -> None:
    found, status = to_fixed(texts(text), 0)
    assert (found.tolist(), status.tolist()) == ([value], [OK])


def test_the_borders_of_int64() -> None:
    found, status = to_fixed(
        texts(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"-9223372036854775809"), 0
    )
    assert status.tolist() == [OK, RANGE, OK, RANGE]
    assert found[[0, 2]].tolist() == [2**63 - 1, -(2**63)]


def test_floats_of_texts_and_numbers() -> None:
    assert to_float(texts(b"1.5", b" 2 ", b"-3e2")).tolist() == [1.5, 2.0, -300.0]
    assert to_float(pa.array([1, 2], pa.int32())).tolist() == [1.0, 2.0]
    assert np.isnan(to_float(pa.array([1.0, None]))[1])
    assert to_float(texts(b"1e400")).tolist() == [float("inf")]
