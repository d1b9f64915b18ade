"""What each stage of a run sustains, and which of them limits it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.metrics.stages import bottleneck as stages
from streamgroup.metrics.stages.bottleneck import STAGES, Stage, bottleneck, sustainable_tps
from tests.metrics.test_published_vectors_and_large_sums import outcome

SECOND = 1_000_000_000


def made(name: str, *busy_s: int, tuples: int = 1000) -> Stage:
    return Stage(name, [seconds * SECOND for seconds in busy_s], tuples)


def test_the_stage_that_sustains_the_least_limits_from_95_percent_on() -> None:
    found = [made("sources", 5, 6), made("workers", 10, 2), made("aggregators", 1)]
    assert [sustainable_tps(stage) for stage in found] == [Fraction(1000, 6), 100, 1000]
    assert bottleneck(found, Fraction(95)) == "workers"
    assert bottleneck(found, Fraction(9499, 100)) == "none"
    assert bottleneck(found, None) == "workers"


def test_of_equal_stages_the_first_limits() -> None:
    assert bottleneck([made("control", 4), made("workers", 4), made("sources", 3)], None) == "workers"


def test_what_took_no_time_limits_nothing() -> None:
    assert sustainable_tps(made("sources", 0, 0)) is None
    assert sustainable_tps(made("workers", 3, tuples=0)) is None
    assert sustainable_tps(Stage("control", [], 9)) is None
    assert bottleneck([made("sources", 0)], None) == "none"


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(STAGES), st.lists(st.integers(0, 50), min_size=1, max_size=4)),
        min_size=1, max_size=4, unique_by=lambda one: one[0],
    ),
    st.fractions(0, 3000),
)  # fmt: skip
def test_the_bottleneck_is_one_that_no_other_is_below(given: list[tuple[str, list[int]]], rate: Fraction) -> None:
    found = {name: made(name, *busy) for name, busy in given}
    named = bottleneck(list(found.values()), rate)
    rates = [tps for stage in found.values() if (tps := sustainable_tps(stage)) is not None]
    if named == "none":
        assert all(rate * 100 < 95 * tps for tps in rates)
    else:
        assert sustainable_tps(found[named]) == min(rates)
        assert rate * 100 >= 95 * min(rates)


def test_of_a_run() -> None:
    run = outcome(tuples=8, workers=2)
    worker = replace(run.worker, busy_ns=np.array([4 * SECOND, SECOND]))
    base = replace(run, worker=worker, first_arrival_ns=0, last_arrival_ns=7 * SECOND, last_finish_ns=9 * SECOND)
    found = stages.measure(base)
    assert found["sustainable_tps"] == found["sustainable_tps_workers"] == 2.0
    assert found["sustainable_tps_sources"] is found["sustainable_tps_control"] is None
    # Seven gaps in seven seconds.
    assert found["bottleneck"] == "none"
    assert found["backlog_end_ms"] == 2000.0
    assert stages.measure(replace(base, last_arrival_ns=3 * SECOND))["bottleneck"] == "workers"
    assert stages.measure(replace(base, last_arrival_ns=0))["bottleneck"] == "workers"
    assert stages.measure(replace(base, last_arrival_ns=0, measured=1))["bottleneck"] == "none"
    nothing = replace(base, last_finish_ns=None, worker=replace(worker, busy_ns=np.zeros(2, np.int64)))
    assert stages.measure(nothing)["sustainable_tps"] is None
    assert stages.measure(nothing)["backlog_end_ms"] == 0.0
