"""Texts of thresholds."""

from fractions import Fraction

import pytest
from pydantic import BaseModel, ValidationError

from streamgroup.groupings._share_threshold import Share, share_of


class Some(BaseModel):
    theta: Share


@pytest.mark.parametrize(
    ("text", "bare", "workers", "value"),
    [
        ("0.02", "0.02", 7, Fraction(1, 50)),
        ("1", "1", 7, Fraction(1)),
        ("1/50", "1/50", 7, Fraction(1, 50)),
        ("1/4n", "1/4n", 10, Fraction(1, 40)),
        ("1/(5n)", "1/5n", 10, Fraction(1, 50)),
        (" 2 / n ", "2/n", 10, Fraction(1, 5)),
        ("2/n", "2/n", 1, Fraction(1)),
        (0.5, "0.5", 3, Fraction(1, 2)),
        (0.00001, "0.00001", 3, Fraction(1, 100_000)),
        ("2.5E-3", "0.0025", 3, Fraction(1, 400)),
        ("1e0", "1", 3, Fraction(1)),
    ],
)
def test_what_a_share_means(text: object, bare: str, workers: int, value: Fraction) -> None:
    some = Some.model_validate({"theta": text})
    assert some.theta == bare
    assert share_of(some.theta, workers) == value


_NONE = "0 1.5 3/2 1/0 0/5 n 1/ -0.1 0.0000000001 1e-10 1e1 0e-3 1e-9999 1e e-3 1e-3/n"


@pytest.mark.parametrize("text", ["", *_NONE.split()])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(ValidationError):
        Some.model_validate({"theta": text})
