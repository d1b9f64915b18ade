"""Ranks by Zipf's law: by inversion and by rejection, their law, their sums, fitted exponents."""

import numpy as np
import pytest

from streamgroup.synth import zipf_ranks as zipf_module
from streamgroup.synth.zipf_ranks import by_inversion, by_rejection, cumulative_distribution, zipf_ranks, zipf_sum
from tests.naive import synthetic_streams
from tests.synth.generated_streams import example, fits


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 1.0001, 1.7, 3.0])
def test_rejection_draws_what_its_twin_draws_and_follows_the_law(exponent: float) -> None:
    draw = by_rejection(500, exponent)
    ranks = draw(9, "t", np.arange(300_000))
    assert ranks[:2000].tolist() == synthetic_streams.zipf_by_rejection("t", 9, 500, exponent, 2000)
    fits(np.bincount(ranks, minlength=500), synthetic_streams.zipf_probabilities(500, exponent))
    backwards = draw(9, "t", np.arange(300_000)[::-1])
    assert np.array_equal(backwards[::-1], ranks)


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 1.7, 3.0])
def test_inversion_follows_the_law(exponent: float) -> None:
    ranks = by_inversion(500, exponent)(9, "t", np.arange(300_000))
    fits(np.bincount(ranks, minlength=500), synthetic_streams.zipf_probabilities(500, exponent))


def test_more_than_ten_million_keys() -> None:
    place = np.arange(200_000)
    for keys in (10**7 + 1, 10**8):
        ranks = zipf_ranks(keys, 1.05)(0, "t", place)
        near = np.append(np.bincount(ranks[ranks < 50], minlength=50), (ranks >= 50).sum())
        first = [i**-1.05 / zipf_sum(keys, 1.05) for i in range(1, 51)]
        fits(near, [*first, 1 - sum(first)])
        assert ranks.max() < keys


def test_above_the_largest_table_ranks_are_drawn_by_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    assert zipf_module.LARGEST_TABLE == 10**7
    monkeypatch.setattr(zipf_module, "LARGEST_TABLE", 100)
    place = np.arange(5000)
    for keys, way, other in ((100, by_inversion, by_rejection), (101, by_rejection, by_inversion)):
        ranks = zipf_ranks(keys, 1.3)(4, "t", place)
        assert np.array_equal(ranks, way(keys, 1.3)(4, "t", place))
        assert not np.array_equal(ranks, other(keys, 1.3)(4, "t", place))


def test_shares_of_heads_as_published() -> None:
    given, expected = example("DC-04")
    assert expected
    for case, told in expected.items():
        cdf = cumulative_distribution(given["K"], float(case.split(",")[0].removeprefix("z=")))
        assert cdf[0] == pytest.approx(told["p1"], abs=6e-7)
        assert cdf[told["H"] - 1] == pytest.approx(told["p_head"], abs=6e-7)


@pytest.mark.parametrize("keys", [1, 2, 999, 1000, 1001, 1500, 40_000])
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.0000001, 2.5])
def test_the_sum_of_the_weights(keys: int, exponent: float) -> None:
    assert zipf_sum(keys, exponent) == pytest.approx(sum(i**-exponent for i in range(keys, 0, -1)), rel=1e-12)
