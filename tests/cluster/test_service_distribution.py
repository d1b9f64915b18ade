"""The random factor of a tuple's cost."""

import math
import statistics

import numpy as np
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.cluster.service_distribution import factors, log_variance, parse_cv, parse_distribution
from streamgroup.kernels import random_draws


def test_texts() -> None:
    assert parse_distribution(None) is None
    assert parse_distribution("deterministic") is None
    exponential, lognormal = parse_distribution("exponential"), parse_distribution("lognormal:0.5")
    assert exponential is not None
    assert exponential.kind == "exponential"
    assert lognormal is not None
    assert lognormal.variance == pytest.approx(math.log(1.25), rel=1e-15)


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("lognormall:1", "there is no kind 'lognormall'", "did you mean 'lognormal'?"),
        ("normal", "there is no kind 'normal'", "did you mean 'lognormal'?"),
        ("lognormal", "needs a coefficient of variation", "lognormal:0.5"),
        ("lognormal:", "needs a coefficient of variation", "lognormal:0.5"),
        ("lognormal:x", "'x' is not a number", None),
        ("lognormal:-1", "-1 is not between 0 and 100", None),
        ("lognormal:101", "101 is not between 0 and 100", None),
        ("exponential:2", "exponential takes no value", "lognormal:CV"),
        ("deterministic:2", "deterministic takes no value", "lognormal:CV"),
    ],
)
def test_what_is_wrong_is_told(text: str, words: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        parse_distribution(text)
    assert "--service-distribution" in caught.value.message
    assert words in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


@pytest.mark.parametrize(("text", "cv"), [("exponential", 1.0), ("lognormal:0.5", 0.5), ("lognormal:0.01", 0.01)])
def test_factors_have_mean_1_and_the_variation_that_was_asked_for(text: str, cv: float) -> None:
    distribution = parse_distribution(text)
    assert distribution is not None
    drawn = factors(distribution, 3, np.arange(400_000, dtype=np.int64))
    assert (drawn >= 0).all()
    assert drawn.mean() == pytest.approx(1, abs=5 * cv / math.sqrt(len(drawn)))
    assert drawn.std() / drawn.mean() == pytest.approx(cv, rel=0.02)


def test_each_factor_is_the_formula_of_its_own_place() -> None:
    index = np.array([7, 0, 10**12], dtype=np.int64)
    lognormal, exponential = parse_distribution("lognormal:2"), parse_distribution("exponential")
    assert lognormal is not None
    assert exponential is not None
    variance = math.log(1 + 2.0**2)
    for i, drawn, other in zip(
        index.tolist(), factors(lognormal, 3, index), factors(exponential, 3, index), strict=True
    ):
        word = int(random_draws.words(3, "service", np.array([i]))[0])
        # The half keeps the sum exact in one of the two forms, whichever side of the middle it is.
        below = (word >> 11) + 0.5 if word >> 11 < 1 << 52 else (1 << 53) - 1 - (word >> 11) + 0.5
        normal = statistics.NormalDist().inv_cdf(below * 2.0**-53) * (1 if word >> 11 < 1 << 52 else -1)
        assert drawn == pytest.approx(math.exp(math.sqrt(variance) * normal - variance / 2), rel=1e-13)
        assert other == pytest.approx(-math.log(1 - (word >> 11) * 2.0**-53), rel=1e-13)


def test_no_variation_is_a_factor_of_1() -> None:
    none = parse_distribution("lognormal:0")
    assert none is not None
    assert set(factors(none, 1, np.arange(50)).tolist()) == {1.0}
    assert log_variance(parse_cv("1e-9", "--x")) == pytest.approx(1e-18, rel=1e-15)
