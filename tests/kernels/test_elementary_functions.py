"""Logarithm, exponential and normal quantile against the library's and exact arithmetic."""

import math
import statistics
from decimal import Decimal, localcontext

import numpy as np
import pytest

from streamgroup.kernels import elementary_functions, random_draws


def test_log_against_the_library() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.random(20_000), 10.0 ** rng.uniform(-300, 300, 20_000), 1 + rng.uniform(-1e-3, 1e-3, 9999)])
    expected = np.array([math.log(value) for value in x])
    assert (np.abs(elementary_functions.log(x) - expected) <= 1e-15 * np.maximum(1, np.abs(expected))).all()
    assert elementary_functions.log(np.array([1.0]))[0] == 0


@pytest.mark.parametrize("x", [0.0, 1e-300, 1e-12, 0.0001, 0.2, 0.25, 0.26, 1.0, 3.0, 1e4])
def test_log_one_plus_against_the_library(x: float) -> None:
    assert elementary_functions.log_one_plus(x) == pytest.approx(math.log1p(x), rel=5e-16, abs=0)


def test_exp_is_within_one_unit_of_the_last_place() -> None:
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-700, 700, 3000), rng.uniform(-3, 3, 5000), rng.uniform(-1e-6, 1e-6, 1000)])
    found = elementary_functions.exp(x)
    with localcontext() as context:
        context.prec = 40
        for value, result in zip(x.tolist(), found.tolist(), strict=True):
            exact = Decimal(value).exp()
            assert abs(Decimal(result) - exact) < Decimal(math.ulp(result))
    assert elementary_functions.exp(np.array([0.0, -0.0])).tolist() == [1.0, 1.0]


def test_the_normal_quantile_against_the_library() -> None:
    reference = statistics.NormalDist()
    rng = np.random.default_rng(3)
    p = np.concatenate([rng.random(20_000), 10.0 ** rng.uniform(-15, -1, 5000), [0.075, 0.925, 2.0**-53]])
    p = p[(p > 0) & (p < 1)]
    # Both sides from the probability below one half, which a float64 holds exactly.
    tail = np.minimum(p, 1 - p)
    expected = np.array([reference.inv_cdf(value) for value in tail])
    found = elementary_functions.inverse_normal(tail - 0.5)
    assert (np.abs(found - expected) <= 1e-13 * np.maximum(1, np.abs(expected)))[tail > 1e-3].all()
    assert (elementary_functions.inverse_normal(0.5 - tail) == -found).all()
    assert elementary_functions.inverse_normal(np.array([0.0])).tolist() == [0.0]


def test_the_far_tails_are_finite_and_right() -> None:
    least = (np.array([-(2.0**52), 2.0**52 - 1]) + 0.5) * 2.0**-53
    expected = statistics.NormalDist().inv_cdf(2.0**-54)
    assert elementary_functions.inverse_normal(least) == pytest.approx([expected, -expected], rel=1e-13)
    for place in (1e-4, 1e-8, 1e-11):
        # 0.5 - place is not exact, so the library is asked for what it is.
        exact = 0.5 - (0.5 - place)
        assert elementary_functions.inverse_normal(np.array([exact - 0.5]))[0] == pytest.approx(
            statistics.NormalDist().inv_cdf(exact), rel=1e-13
        )


def test_normal_draws_are_normal_and_by_counter() -> None:
    index = np.arange(200_000, dtype=np.int64)
    drawn = random_draws.normal(5, "service", index)
    assert abs(drawn.mean()) < 0.01
    assert abs(drawn.std() - 1) < 0.01
    assert abs((drawn > 1.959964).mean() - 0.025) < 0.002
    assert (random_draws.normal(5, "service", index[777:780]) == drawn[777:780]).all()
    assert (random_draws.normal(6, "service", index[:100]) != drawn[:100]).all()
    assert (random_draws.normal(5, "jitter:0", index[:100]) != drawn[:100]).all()
    word = int(random_draws.words(5, "service", index[:1])[0])
    exact = ((word >> 11) + 0.5) * 2.0**-53
    assert drawn[0] == pytest.approx(statistics.NormalDist().inv_cdf(exact), rel=1e-12)


def test_values_that_must_never_change() -> None:
    """The same bits on every machine: a change here changes every published result."""
    index = np.arange(3, dtype=np.int64)
    assert [value.hex() for value in random_draws.normal(0, "service", index).tolist()] == NORMAL
    assert [value.hex() for value in random_draws.exponential(0, "service", index).tolist()] == EXPONENTIAL
    assert [value.hex() for value in elementary_functions.exp(np.array([-1.5, 0.1, 2.0])).tolist()] == EXP


NORMAL = ["-0x1.0820fb250460ep-4", "-0x1.929c46aaf8a15p-2", "0x1.d06c991aebab7p-2"]
EXPONENTIAL = ["0x1.493891f520985p-1", "0x1.b48e570278fb1p-2", "0x1.1fa9b483e5314p+0"]
EXP = ["0x1.c8f87724b5c1dp-3", "0x1.1aec7b35a00d4p+0", "0x1.d8e64b8d4ddaep+2"]
