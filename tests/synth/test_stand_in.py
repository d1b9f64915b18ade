"""Stand-ins for data sets of papers: sizes, exponents, shares, order."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from streamgroup.synth.generators.stand_in import DATASETS
from streamgroup.synth.generators.stand_in import Params as StandIn
from streamgroup.synth.generators.stand_in import law as stand_in_law
from streamgroup.synth.zipf_ranks import fitted_exponent, zipf_sum
from tests.naive import synthetic_streams
from tests.synth.generated_streams import labels


@pytest.mark.parametrize(
    ("name", "keys", "share", "exponent"),
    [
        ("wp", 2_900_000, "0.0932", 1.055),
        ("tw", 31_000_000, "0.0267", 0.921),
        ("mentions", 35_000, "0.065", 0.937),
        ("tweets", 5_700_000, None, 1.013),
        ("st", 6_649, None, 1.081),
    ],
)
def test_exponents_of_stand_ins(name: str, keys: int, share: str | None, exponent: float) -> None:
    found = stand_in_law(StandIn(dataset=name))  # type: ignore[arg-type]
    assert (found.tuples, found.keys) == (DATASETS[name].tuples, keys)
    assert found.exponent == pytest.approx(exponent, abs=5e-4)
    if share is not None:
        assert 1 / zipf_sum(keys, found.exponent) == pytest.approx(float(share), rel=1e-5)
    assert DATASETS[name].share == (share or "0.8")


def test_wikipedia_with_fewer_keys_and_cashtags_without_drift() -> None:
    assert fitted_exponent(10_000, 1, 0.0932) == pytest.approx(0.979, abs=5e-4)
    assert stand_in_law(StandIn(dataset="ct", order="mixed")).exponent == pytest.approx(0.719, abs=5e-4)


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({"dataset": "ct"}, 0.0329),
        ({"dataset": "ct", "order": "mixed"}, 0.0329),
        ({"dataset": "mentions"}, 0.065),
        ({"dataset": "wp", "scale": "0.02"}, 0.0932),
        ({"dataset": "am", "scale": "0.05", "p1": "0.01"}, 0.01),
        ({"dataset": "tw", "scale": "0.0005"}, 0.0267),
        ({"dataset": "st", "scale": "0.002"}, 0.1452),
        ({"dataset": "tweets", "scale": "0.0005"}, 0.0682),
        ({"dataset": "mt", "scale": "0.01"}, 0.0218),
    ],
)
def test_share_of_the_most_frequent_key(given: dict[str, Any], share: float) -> None:
    found = labels("stand_in", **given)
    assert np.bincount(found).max() / len(found) == pytest.approx(share, rel=0.03)


def test_share_of_the_head() -> None:
    for name, head, keys in (("tweets", 171_000, 5_700_000), ("st", 532, 6_649)):
        found = stand_in_law(StandIn(dataset=name))  # type: ignore[arg-type]
        assert found.keys == keys
        assert zipf_sum(head, found.exponent) / zipf_sum(keys, found.exponent) == pytest.approx(0.8, abs=1e-5)


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("scale", ["0.1", "0.05"])
def test_a_smaller_scale_keeps_the_share_of_the_most_frequent_key(name: str, scale: str) -> None:
    about = DATASETS[name]

    def p1(scale: str) -> float:
        found = stand_in_law(StandIn(dataset=name, scale=Decimal(scale)))  # type: ignore[arg-type]
        assert found.keys == round(about.keys * float(scale) + 1e-9)
        ranks = 10 if found.order == "drifting" else 1
        return zipf_sum(ranks, found.exponent) / zipf_sum(found.keys, found.exponent) / ranks

    assert p1(scale) == pytest.approx(p1("1"), rel=1e-5)


def test_the_smallest_stock_exchange_by_hand() -> None:
    """66 of 6,649 keys: the most frequent has 14.5 %, as one of 6,649 with the exponent at which 532 have 80 %."""
    found = stand_in_law(StandIn(dataset="st", scale=Decimal("0.01")))
    assert (found.tuples, found.keys) == (2_740_000, 66)
    whole = synthetic_streams.zipf_probabilities(6_649, stand_in_law(StandIn(dataset="st")).exponent)
    assert synthetic_streams.zipf_probabilities(66, found.exponent)[0] == pytest.approx(whole[0], rel=1e-5)
    assert whole[0] == pytest.approx(0.145, abs=5e-4)


def test_a_drifting_stand_in_changes_its_hottest_key() -> None:
    found = labels("stand_in", dataset="ct", moves=4)
    hottest = [int(np.bincount(part).argmax()) for part in np.split(found, 5)]
    assert hottest == [0, 2899, 2898, 2897, 2896]


def test_a_grouped_stand_in_has_each_key_on_end() -> None:
    found = labels("stand_in", dataset="am", scale="0.01")
    runs = found[np.append(0, np.flatnonzero(np.diff(found)) + 1)]
    assert len(set(runs.tolist())) == len(runs)
    exponent = stand_in_law(StandIn(dataset="am", scale=Decimal("0.01"))).exponent
    law = np.array(synthetic_streams.zipf_probabilities(2500, exponent)) * len(found)
    assert np.abs(np.bincount(found, minlength=2500) - law).max() <= 1
