"""Service times of every part: against exact arithmetic on floats, and compiled as interpreted."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from streamgroup.cluster.service_time import (
    ConstantCost,
    KeyWorkerCost,
    TracedCost,
    VaryingCost,
    capacity,
    make_service,
)
from streamgroup.cluster.worker_speeds import Speeds, make_speeds

# Its import teaches numba the parts' methods.
from streamgroup.replay import compile_grouping as teaching


@njit
def _served(part: Any, worker: Any, key: Any, cost: Any, seq: Any, start: Any) -> Any:
    return part.service(np.uint64(worker), key, cost, seq, start)


def speeds(slowdown: str, *changes: str, jitter: str | None = None) -> Speeds:
    return make_speeds(slowdown, changes, jitter, workers=3, joiners=1, tuples=1000, seed=1)


def test_the_simplest_part_that_does_is_chosen() -> None:
    assert "service" in teaching.PARTS
    plain, changing = speeds("1,2"), speeds("1", "50%=2")
    base = np.ones((5, 4))
    for given_speeds, constant, table, factor, kind in (
        (plain, 7, None, False, ConstantCost),
        (plain, None, None, False, TracedCost),
        (plain, 7, None, True, TracedCost),
        (changing, 7, None, False, VaryingCost),
        (changing, None, None, True, VaryingCost),
        (plain, None, base, False, KeyWorkerCost),
        (changing, None, base, True, KeyWorkerCost),
    ):
        assert type(make_service(given_speeds, constant, table, factor=factor)) is kind


def test_steady_speeds_and_halves_to_even() -> None:
    steady = speeds("0.5,1.5,1.1")
    part = make_service(steady, 5)
    assert part.service_ns.tolist() == [2, 8, 6, 5]
    # A float product: 0.1 is a little over one tenth, so 5 x 0.1 is 0.5 only after rounding, which goes to even.
    assert make_service(speeds("0.1,1"), 5).service_ns.tolist() == [0, 5, 0, 5]
    traced = make_service(steady, None)
    assert [int(traced.service(worker, 0, 5, 0, 0)) for worker in range(4)] == [2, 8, 6, 5]


def test_a_change_at_an_index_holds_for_tuples_from_there_on_whenever_they_start() -> None:
    part = make_service(speeds("1", "10=2,3", "500=half:4"), 100)
    assert [int(part.service(1, 0, 0, seq, 10**15)) for seq in (0, 9, 10, 499, 500, 999)] == [
        100, 100, 300, 300, 100, 100,
    ]  # fmt: skip
    assert int(part.service(2, 0, 0, 500, 0)) == 400
    assert int(part.service(3, 0, 0, 20, 0)) == 100


def test_a_change_at_a_time_holds_for_services_that_start_from_then_on() -> None:
    part = make_service(speeds("2", "1s=3"), None)
    assert [int(part.service(0, 0, 7, 999, start)) for start in (0, 999_999_999, 1_000_000_000)] == [14, 14, 21]


def test_costs_by_key_and_worker_with_and_without_a_factor() -> None:
    base = np.arange(20, dtype=np.float64).reshape(5, 4) * 1000
    plain = make_service(speeds("2"), None, base)
    assert int(plain.service(1, 3, 0, 0, 0)) == 26_000
    drawn = make_service(speeds("2"), None, base, factor=True)
    assert int(drawn.service(1, 3, 0.25, 0, 0)) == 6_500
    assert int(drawn.service(1, 3, 0.0, 0, 0)) == 0


def test_the_drift_of_a_batch_multiplies_the_slowdown_first() -> None:
    drifting = speeds("1.7,0.3", jitter="0.5:100")
    part = make_service(drifting, None)
    for seq in (0, 99, 100, 999):
        for worker in range(4):
            factor = drifting.slowdown[0, worker] * drifting.jitter[seq // 100, worker]
            assert int(part.service(worker, 0, 123_456_789.25, seq, 0)) == round(123_456_789.25 * float(factor))


_CASES = [
    make_service(speeds("1,0.7"), 12_345),
    make_service(speeds("1,0.7"), None),
    make_service(speeds("1,0.7", "1ms=3", "2ms=0.1,1", "7ms=1"), 12_345),
    make_service(speeds("1,0.7", "10%=3", "20%=0.1,1", jitter="0.4:3"), None),
    make_service(speeds("1.3", jitter="1:50"), None, np.random.default_rng(1).random((5, 4)) * 1e6),
    make_service(speeds("1.3", "5ms=2"), None, np.random.default_rng(2).random((5, 4)) * 1e6, factor=True),
]


@pytest.mark.parametrize("part", _CASES, ids=lambda part: type(part).__name__)
def test_compiled_is_interpreted(part: Any) -> None:
    @settings(max_examples=200, deadline=None)
    @given(
        st.integers(0, 3),
        st.integers(0, 4),
        st.one_of(st.integers(0, 2**40), st.floats(0, 1e9)),
        st.integers(0, 999),
        st.integers(0, 10**7),
    )
    def same(worker: int, key: int, cost: float, seq: int, start: int) -> None:
        assert _served(part, worker, key, cost, seq, start) == int(part.service(worker, key, cost, seq, start))

    same()


def test_capacity_of_one_mean_and_of_a_mean_for_each_worker() -> None:
    slowdown = [Fraction(1), Fraction(2), Fraction(1, 2)]
    assert capacity(Fraction(10), slowdown) == Fraction(7, 20)
    assert capacity([Fraction(10)] * 3, slowdown) == Fraction(7, 20)
    assert capacity([Fraction(10), Fraction(5), Fraction(1)], slowdown) == Fraction(1, 10) + Fraction(1, 10) + 2
