"""Streams with costs: which item costs what, and when the tuples come."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.naive import synthetic_streams
from tests.synth.generated_streams import SMALL, example, make, whole


def _cost_by_item(**given: Any) -> NDArray[np.float32]:
    _, stream = make("posg", **({"exponent": 0, "tuples": 40 * given.get("keys", 4096)} | given))
    chunk = whole(stream)
    assert chunk.cost is not None
    assert chunk.cost.dtype == np.float32
    cost = np.full(stream.labels, -1, np.float32)
    cost[chunk.label] = chunk.cost
    assert np.array_equal(cost[chunk.label], chunk.cost)
    assert (cost >= 0).all()
    return cost


def _counts(cost: NDArray[np.float32]) -> dict[float, int]:
    return dict(zip(*(each.tolist() for each in np.unique(cost, return_counts=True)), strict=True))


def test_execution_times_of_the_paper() -> None:
    params, _ = make("posg")
    assert (params.tuples, params.keys, params.exponent) == (32_768, 4_096, 1.0)
    cost = _cost_by_item(seed=3)
    # Each of 1, ..., 64 ms for 64 of the 4096 items.
    assert _counts(cost) == {1000.0 * ms: 64 for ms in range(1, 65)}
    assert not np.array_equal(cost, _cost_by_item(seed=4))
    # Costs do not go with frequencies.
    assert abs(np.corrcoef(cost, np.arange(4096))[0, 1]) < 0.1


def test_execution_times_by_equal_ratios_and_one_alone() -> None:
    cost = _counts(_cost_by_item(keys=70, w_n=7, steps="geometric"))
    assert list(cost) == [1000.0 * 2**j for j in range(7)]
    assert set(cost.values()) == {10}
    assert _counts(_cost_by_item(keys=70, w_n=1, w_min="2.5")) == {2500.0: 70}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # 1/2, 1/4, 1/8, 1/8 of the whole after normalising 8 : 4 : 2 : 1 over 150 items.
        ({"association": "geometric"}, [80, 40, 20, 10]),
        # 1 : 3 : 3 : 1 and, at 1/3, 8 : 12 : 6 : 1 of 27.
        ({"association": "binomial"}, [19, 56, 56, 19]),
        ({"association": "binomial", "probability": "0.2"}, [77, 57, 15, 1]),
        ({"shares": "0,30,70,50"}, [0, 30, 70, 50]),
        ({"association": "uniform"}, [38, 37, 38, 37]),
    ],
)
def test_how_many_items_have_each_value(given: dict[str, Any], expected: list[int]) -> None:
    cost = _cost_by_item(keys=150, w_n=4, w_max=4, **given)
    assert [int((cost == 1000.0 * ms).sum()) for ms in range(1, 5)] == expected


@pytest.mark.parametrize("number", [1, 3])
def test_costs_and_their_twin(number: int) -> None:
    given = SMALL["posg"][number]
    params, stream = make("posg", **given)
    if number == 1:
        values = [1 + Fraction(63 * j, 6) for j in range(7)]
        shares = [Fraction(n, 10**6) for n in (117649, 302526, 324135, 185220, 59535, 10206, 729)]
    else:
        values, shares = [Fraction(v) for v in (25, 5, 1)], [Fraction(v) for v in (1, 2, 7)]
    found, cost = synthetic_streams.posg(params.seed, params.keys, params.exponent, values, shares, params.tuples)
    chunk = whole(stream)
    assert chunk.label.tolist() == found
    assert chunk.cost is not None
    assert chunk.cost.tolist() == [float(np.float32(float(each * 1000))) for each in cost]


def test_mean_execution_time_and_arrivals_of_the_paper() -> None:
    given, expected = example("POSG-10")
    for percentage, milliseconds in expected["inter_arrival_ms"].items():
        asked = {name: given[name] for name in ("w_n", "w_min", "w_max")}
        _, stream = make("posg", exponent=0, instances=given["k"], provisioning=percentage, **asked)
        times = stream.chunk(0, 3000).timestamp
        assert times.tolist() == [int(i * Fraction(str(milliseconds)) * 1000) for i in range(3000)]
    assert _cost_by_item().astype(float).mean() == expected["mean_exec_ms_uniform_items"] * 1000


def test_frequencies_weigh_the_mean_execution_time() -> None:
    _, stream = make("posg", seed=2, exponent=2, keys=64, instances=1, tuples=200_000)
    chunk = whole(stream)
    assert chunk.cost is not None
    cost = np.empty(64)
    cost[chunk.label] = chunk.cost
    mean = (np.array(synthetic_streams.zipf_probabilities(64, 2.0)) * cost).sum()
    assert chunk.timestamp[-1] / 199_999 == pytest.approx(mean, rel=1e-6)
    assert mean != pytest.approx(32_500, rel=0.01)


def test_very_slow_arrivals_stay_exact() -> None:
    given = {"w_n": 1, "w_min": "536870912", "w_max": "536870912", "keys": 1, "instances": 7, "tuples": 1 << 20}
    times = make("posg", provisioning="99.9", **given)[1].chunk(0, 1 << 20).timestamp
    interval = Fraction(round(Fraction(536_870_912) * 10**6 * Fraction("0.999") / 7), 1000)
    for i in (0, 1, 777_777, (1 << 20) - 1):
        assert int(times[i]) == int(i * interval)
