"""Costs, speeds, warm-up and who sees them in the naive twin, worked out by hand. Times in the comments are in ms."""

import json
import math
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import pytest

from tests.naive.cases_by_hand import MS, SECOND, To, at_ms, served, stream
from tests.naive.groupings.simple_groupings import FullKnowledge, Setting
from tests.naive.kernels.hashes_and_draws import exp, exponential, inverse_normal, normal
from tests.naive.metrics.metrics import metrics, summary
from tests.naive.replay.options import Change, slowdowns
from tests.naive.replay.simulate import simulate


def test_posg_02_full_knowledge() -> None:
    examples = json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())
    (example,) = [e for e in examples if e["id"] == "POSG-02"]
    given, expected = example["input"], example["expected"]
    tuples = [(t * 1_000_000, b"x", cost * 1e6) for t, cost in zip(given["arrivals_s"], given["exec_s"], strict=True)]
    grouping = FullKnowledge(Setting(given["k"], sources=1))
    run = simulate(tuples, grouping, workers=given["k"], sources=1)
    assert [r.worker for r in run.records] == expected["assignment"]
    assert grouping.work == [c * SECOND for c in expected["C_final"]]
    latencies = [r.finish_ns - r.arrival_ns for r in run.records]
    assert latencies == [s * SECOND for s in expected["completion_s"]]
    assert sum(latencies) == expected["cumulated_s"] * SECOND


def test_backlog_goes_to_who_is_free_first_at_any_speed() -> None:
    # 0 takes 1, 1 takes 3: t=0: 0 (both free); t=0: 1; t=1: 0 is free at 1, 1 at 3; t=3: both free
    tuples = stream((0, 1), (0, 1), (1, 1), (3, 1))
    grouping = FullKnowledge(Setting(2), backlog=True)
    run = simulate(tuples, grouping, workers=2, slowdown="1,3")
    assert [r.worker for r in run.records] == [0, 1, 0, 0]
    # by work: 0 (1 of 0, 0), 1 (1, 3), 0 (2, 3), 0
    run = simulate(tuples, FullKnowledge(Setting(2)), workers=2, slowdown="1,3")
    assert [r.worker for r in run.records] == [0, 1, 0, 0]
    assert run.grouping.work == [3 * MS, 3 * MS]


def test_changes_of_speed() -> None:
    """By time: the service that starts at 2 takes twice as long, the one before not. By tuple: from #1 on."""
    tuples = stream((0, 2), (0, 2), (0, 2))
    by_time = simulate(tuples, To(Setting(1)), workers=1, slowdown_at=((at_ms(2), "2"), (at_ms(6), "0.5")))
    assert served(by_time) == [(0, 0, 2), (0, 2, 6), (0, 6, 7)]
    by_tuple = simulate(tuples, To(Setting(1)), workers=1, slowdown_at=((("share", Fraction(1, 3)), "3"),))
    assert served(by_tuple) == [(0, 0, 2), (0, 2, 8), (0, 8, 14)]
    assert summary(by_tuple)["makespan_vs_lower_bound"] is None
    at_once = simulate(tuples, To(Setting(1)), workers=1, slowdown_at=((("count", 0), "3"),))
    assert at_once.slowdown == slowdowns("3", 1)


def test_joiners_have_slowdown_1() -> None:
    tuples = [(0, b"0", 2000.0), (1000, b"1", 2000.0)]
    run = simulate(tuples, To(Setting(1)), workers=1, slowdown="3", changes=(Change("join", at_ms(1)),))
    assert served(run) == [(0, 0, 6), (1, 1, 3)]
    # within 0..6: all of it, and 2 of the 5 it lived
    assert [w["utilization"] for w in metrics(run)["workers"]] == [1, 0.4]


def test_costs_by_key_and_worker() -> None:
    tuples = [(0, b"0", None), (0, b"1", None), (1000, b"1", None)]
    run = simulate(tuples, To(Setting(2)), workers=2, key_cost={b"0": 1000.0, b"1": 2000.0})
    assert served(run) == [(0, 0, 1), (1, 0, 2), (1, 2, 4)]
    # mean cost 5/3 on two workers: 1200 a second; two gaps in 1 ms: 2000
    assert run.offered_load == pytest.approx(2000 / 1200)
    table = {(b"0", 0): 1000.0, (b"0", 1): 4000.0, (b"1", 0): 7000.0, (b"1", 1): 1000.0}
    run = simulate(tuples, To(Setting(2)), workers=2, key_cost=table, slowdown="1,2")
    assert served(run) == [(0, 0, 1), (1, 0, 2), (1, 2, 4)]
    # means 5 and 2 ms, on a worker of half speed 4: 200 + 250
    assert run.offered_load == pytest.approx(2000 / 450)


def test_random_costs_and_drift() -> None:
    tuples = stream(*[(i, 1) for i in range(6)])
    drawn = simulate(tuples, To(Setting(1)), workers=1, service_distribution="exponential", seed=5)
    expected = [round(1e6 * exponential(5, "service", i)) for i in range(6)]
    assert [r.finish_ns - r.start_ns for r in drawn.records] == expected
    wide = simulate(tuples, To(Setting(1)), workers=1, service_distribution="lognormal:0.5", seed=5)
    variance = math.log(1.25)
    for i, r in enumerate(wide.records):
        factor = math.exp(math.sqrt(variance) * normal(5, "service", i) - variance / 2)
        assert r.finish_ns - r.start_ns == pytest.approx(1e6 * factor, abs=1)
    step = math.sqrt(0.19 * math.log(1.01))
    for jitter, spread in (("0.1:2", math.sqrt(math.log(1.01))), ("0.1:2:equal", step)):
        drifting = simulate(tuples, To(Setting(1)), workers=1, speed_jitter=jitter, seed=5)
        first = spread * normal(5, "jitter:0", 0)
        second = 0.9 * first + step * normal(5, "jitter:0", 1)
        third = 0.9 * second + step * normal(5, "jitter:0", 2)
        for r, x in zip(drifting.records, [first, first, second, second, third, third], strict=True):
            assert r.finish_ns - r.start_ns == pytest.approx(1e6 * math.exp(x), abs=1)


def test_normal_draws() -> None:
    for p in (2.0**-54, 1e-12, 0.001, 0.0749, 0.3, 0.5, 0.8, 0.97, 1 - 1e-9):
        assert inverse_normal(p) == pytest.approx(NormalDist().inv_cdf(p), rel=1e-14, abs=1e-15)
    drawn = [normal(0, "service", i) for i in range(20_000)]
    assert sum(drawn) / 20_000 == pytest.approx(0, abs=0.03)
    assert sum(x * x for x in drawn) / 20_000 == pytest.approx(1, abs=0.04)
    for x in (-40.0, -1.0, 0.0, 1e-9, 0.5, 3.0):
        assert exp(x) == pytest.approx(math.exp(x), rel=1e-15)


def test_warm_up_is_not_in_the_metrics() -> None:
    """#0 and #1 are warm-up, by count, by share (2 of 5) and by time (before 2): #2 waits for both of them."""
    tuples = stream((0, 4), (1, 4), (2, 1), (3, 1), (20, 1))
    rows = []
    for warmup in (("count", 2), ("share", Fraction(3, 10)), at_ms(2)):
        run = simulate(tuples, To(Setting(1)), workers=1, warmup=warmup, queue_capacity=9, when_full="block")
        assert [r.measured for r in run.records] == [False, False, True, True, True]
        rows.append(metrics(run, window=("time", 2 * MS)))
    assert rows[0] == rows[1] == rows[2]
    # #2 8..9, #3 9..10, #4 20..21: latencies 7, 7, 1; windows from 2 on: 0 (2, 3) and 9 (20)
    assert rows[0]["summary"]["latency_mean_ms"] == 5
    assert rows[0]["summary"]["makespan_s"] == 0.019
    assert rows[0]["summary"]["queue_max"] == 3
    assert [w["window"] for w in rows[0]["windows"]] == [0, 9]
    assert rows[0]["summary"]["utilization_mean"] == 3 / 19


def test_aggregation_by_time() -> None:
    """Windows of 2 from the first arrival: (0: key 0, 0), (2: 1), (4: 0, 1): pairs 1 + 1 + 2."""
    tuples = [(0, b"0", None), (1000, b"0", None), (3000, b"1", None), (4000, b"0", None), (5000, b"1", None)]
    run = simulate(tuples, To(Setting(2)), workers=2)
    assert summary(run)["aggregation_messages"] == 2
    assert summary(run, aggregate_every=("time", 2 * MS))["aggregation_messages"] == 4
