"""Stand-ins for data sets of papers: sizes, exponents, shares, order."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from streamgroup.synth.generators.stand_in import DATASETS
from streamgroup.synth.generators.stand_in import Params as StandIn
from streamgroup.synth.generators.stand_in import law as stand_in_law
from streamgroup.synth.zipf_ranks import fitted_exponent, zipf_sum
from tests.ingest.generated import labels
from tests.naive import streams


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
    ],
)
def test_share_of_the_most_frequent_key(given: dict[str, Any], share: float) -> None:
    found = labels("stand_in", **given)
    assert np.bincount(found).max() / len(found) == pytest.approx(share, rel=0.03)


def test_share_of_the_head() -> None:
    for name, head, keys in (("tweets", 0.03, 5_700), ("st", 0.08, 665)):
        found = stand_in_law(StandIn(dataset=name, scale=Decimal("0.1") if name == "st" else Decimal("0.001")))  # type: ignore[arg-type]
        law = streams.zipf_probabilities(found.keys, found.exponent)
        assert found.keys == keys
        assert sum(law[: round(head * keys)]) == pytest.approx(0.8, abs=1e-5)


def test_a_drifting_stand_in_changes_its_hottest_key() -> None:
    found = labels("stand_in", dataset="ct", moves=4)
    hottest = [int(np.bincount(part).argmax()) for part in np.split(found, 5)]
    assert hottest == [0, 2899, 2898, 2897, 2896]


def test_a_grouped_stand_in_has_each_key_on_end() -> None:
    found = labels("stand_in", dataset="am", scale="0.01")
    runs = found[np.append(0, np.flatnonzero(np.diff(found)) + 1)]
    assert len(set(runs.tolist())) == len(runs)
    law = np.array(streams.zipf_probabilities(2500, 1.0)) * len(found)
    assert np.abs(np.bincount(found, minlength=2500) - law).max() <= 1
