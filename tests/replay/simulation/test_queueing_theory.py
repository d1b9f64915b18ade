"""One worker against queueing theory: mean waits, losses, sustainable throughput, and a clock that never drifts."""

from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.metrics.run_tables import summary
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.input.arrivals import ConstantArrivals
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from tests.replay.input.endless_trace import ROWS, endless

SERVICE = 1_000_000


def one_worker(directory: Path, tuples: int, **options: Any) -> Outcome:
    return replay(endless(directory, tuples), ReplayOptions(grouping="kg", workers=1, sources=1, **options))


@pytest.mark.parametrize(
    ("distribution", "squared_cv"), [("deterministic", 0.0), ("exponential", 1.0), ("lognormal:0.5", 0.25)]
)
@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_mean_wait_is_that_of_pollaczek_and_khinchine(
    tmp_path: Path, distribution: str, squared_cv: float, rho: float
) -> None:
    """M/D/1, M/M/1 and M/G/1: rho (1 + CV^2) / (2 (1 - rho)) services."""
    # The busier the worker, the longer waits depend on each other: this many, and the mean is known within 0.3 %.
    tuples = 16_000_000 if rho == 0.8 else 2_000_000
    found = one_worker(
        tmp_path, tuples, arrivals=f"poisson-utilization={rho}", service_distribution=distribution, seed=1
    )
    wait = (sum(found.worker.latency_sum_ns) - int(found.worker.busy_ns.sum())) / tuples / SERVICE
    assert wait == pytest.approx(rho * (1 + squared_cv) / (2 * (1 - rho)), rel=0.01)
    assert int(found.worker.busy_ns.sum()) / tuples / SERVICE == pytest.approx(1, rel=0.002)
    assert summary(found)["utilization_mean"] == pytest.approx(rho, rel=0.005)


def lost_by_exponential_services(rho: float, places: int) -> float:
    """M/M/1/K: the share of tuples that find K there."""
    return (1 - rho) * rho**places / (1 - rho ** (places + 1))


def lost_by_equal_services(rho: float, places: int) -> float:
    """M/D/1/K, by the Markov chain of how many a finished tuple leaves behind."""
    arrive = [exp(-rho)]
    for k in range(1, places):
        arrive.append(arrive[-1] * rho / k)
    moves = np.zeros((places, places))
    for before in range(places):
        for k in range(places - max(before, 1)):
            moves[before, max(before - 1, 0) + k] += arrive[k]
        moves[before, places - 1] += 1 - moves[before].sum()
    equations = np.vstack([(moves.T - np.eye(places))[:-1], np.ones(places)])
    left = np.linalg.solve(equations, np.eye(places)[-1])
    return 1 - 1 / (left[0] + rho)


@pytest.mark.parametrize(
    ("distribution", "theory"),
    [("deterministic", lost_by_equal_services), ("exponential", lost_by_exponential_services)],
)
@pytest.mark.parametrize(("rho", "room"), [(0.8, 4), (1.5, 2), (0.5, 1)])
def test_as_many_are_dropped_as_theory_says(
    tmp_path: Path, distribution: str, theory: Any, rho: float, room: int
) -> None:
    tuples = 2_000_000
    found = one_worker(
        tmp_path, tuples, arrivals=f"poisson-utilization={rho}", service_distribution=distribution,
        queue_capacity=room, when_full="drop",
    )  # fmt: skip
    # Places: those that wait, and the one that is served.
    assert found.dropped / tuples == pytest.approx(theory(rho, room + 1), rel=0.01)
    assert found.queue_max == room
    assert int(found.worker.tuples.sum()) == tuples - found.dropped


def test_loss_of_one_place_is_that_of_erlang() -> None:
    """Checks of the theory above: one place loses rho / (1 + rho) whatever the services; two are known, too."""
    assert lost_by_exponential_services(0.8, 1) == pytest.approx(0.8 / 1.8)
    assert lost_by_equal_services(0.8, 1) == pytest.approx(0.8 / 1.8)
    # Two places: a finished tuple leaves nobody with probability exp(-rho).
    assert lost_by_equal_services(0.8, 2) == pytest.approx(1 - 1 / (exp(-0.8) + 0.8))


@pytest.mark.parametrize("distribution", ["deterministic", "exponential"])
def test_saturated_throughput_is_one_in_a_service(tmp_path: Path, distribution: str) -> None:
    tuples = 1_000_000
    found = one_worker(tmp_path, tuples, arrivals="saturate", max_pending=10, service_distribution=distribution)
    row = summary(found)
    assert row["utilization_mean"] == 1
    if distribution == "deterministic":
        assert row["throughput_tps"] == 1000
        # The first ten find less than ten there.
        assert sum(found.worker.latency_sum_ns) == (10 * tuples - 45) * SERVICE
    else:
        assert row["throughput_tps"] == pytest.approx(1000, rel=0.005)
    assert row["offered_load"] is None


def test_a_billion_arrivals_a_millisecond_apart_end_at_a_million_seconds() -> None:
    arrivals = ConstantArrivals(Fraction(10**9, 1000), 10**9 + 1)
    before = -SERVICE
    for offset in range(0, 10**9 + 1, ROWS):
        chunk = arrivals.chunk(offset, None, min(ROWS, 10**9 + 1 - offset))
        assert chunk[0] == before + SERVICE
        assert chunk[-1] == (offset + len(chunk) - 1) * SERVICE
        before = int(chunk[-1])
    assert before == 10**15


@pytest.mark.parametrize(
    "spacing", [Fraction(10**9, 3), Fraction(1000, 7), Fraction(123_456_789_012_345_678_901, 999_999_999_989)]
)
def test_a_billion_uneven_arrivals_are_floors_of_fractions(spacing: Fraction) -> None:
    arrivals = ConstantArrivals(spacing, 10**9)
    for offset in [*range(0, 10**9, 97 * ROWS), 10**9 // ROWS * ROWS]:
        chunk = arrivals.chunk(offset, None, min(ROWS, 10**9 - offset))
        for place in (0, 1, len(chunk) // 3, len(chunk) - 2, len(chunk) - 1):
            assert chunk[place] == (offset + place) * spacing.numerator // spacing.denominator


@pytest.mark.slow
def test_a_billion_services_of_a_millisecond_end_at_a_million_seconds(tmp_path: Path) -> None:
    """Each starts when the one before it ends, and no tuple waits: all of them went through the loop."""
    found = one_worker(tmp_path, 10**9, arrivals="utilization=1", service="1ms")
    assert found.last_finish_ns == 10**15
    assert found.worker.latency_sum_ns == [10**9 * SERVICE]
    assert found.last_arrival_ns == (10**9 - 1) * SERVICE
    row = summary(found)
    assert (row["makespan_s"], row["throughput_tps"], row["utilization_mean"]) == (10**6, 1000, 1)
