"""Published vectors, sums past 64 bits, and sizes that only whole-array arithmetic can do in time."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from streamgroup.kernels.latency_histogram import BUCKETS, bucket_of, lower_bounds, middle
from streamgroup.metrics import latency
from streamgroup.metrics.imbalance import (
    cumulative_imbalance,
    deviation,
    imbalance,
    peak_to_mean,
    row_deviation,
    skew_score,
)
from streamgroup.metrics.metric_names import METRICS
from streamgroup.metrics.run_tables import FAMILIES, summary
from tests.metrics.compare_with_naive import tables
from tests.metrics.outcome_from_records import outcome_of
from tests.naive.groupings.simple_groupings import Setting, Sg
from tests.naive.replay.simulate import simulate


def outcome(tuples=8, workers=4):  # type: ignore[no-untyped-def]
    trace = [(i * 1000, b"k", None) for i in range(tuples)]
    return outcome_of(simulate(trace, Sg(Setting(workers)), workers=workers), ("share", Fraction(1, 4)))


@pytest.mark.parametrize(
    ("loads", "score"),
    [([1, 1, 1, 5, 10], 86.67), ([1, 1, 5, 5, 5], 56.47), ([4, 5, 5, 5, 5], 6.67), ([0, 0, 0], 0.0)],
)
def test_skew_score_of_flink(loads: list[int], score: float) -> None:
    assert skew_score(loads) == pytest.approx(score, abs=0.005)


def test_skew_score_is_at_most_100() -> None:
    assert skew_score([100] + [0] * 99) == 100.0


def test_the_fullest_worker_is_named_against_the_mean() -> None:
    assert peak_to_mean([9, 1, 1, 1]) == 3.0
    assert imbalance([9, 1, 1, 1]) == 0.5
    assert imbalance([0, 0]) is None
    assert peak_to_mean([0, 0]) is None


def test_a_hot_key_that_moves_shows_in_the_windows_only() -> None:
    base = outcome(tuples=8, workers=4)
    moving = np.eye(4, dtype=np.int64) * 2
    moved = replace(base, window=replace(base.window, tuples=moving))
    found = summary(moved)
    assert found["imbalance"] == 0.0
    assert found["window_imbalance_mean"] == found["window_imbalance_max"] == 0.75


def test_latency_sums_past_64_bits() -> None:
    base = outcome(tuples=8, workers=4)
    huge = [(1 << 64) + 2, 1 << 64, 3, 0]
    worker = replace(base.worker, latency_sum_ns=huge)
    window = replace(base.window, latency_sum_ns=[(1 << 70) + 1, 1, 2, 3])
    found = summary(replace(base, worker=worker, window=window))
    assert found["latency_mean_ms"] == ((1 << 65) + 5) / 8e6
    assert found["latency_worst_worker_mean_ms"] == ((1 << 63) + 1) / 1e6
    made = tables(replace(base, worker=worker, window=window))
    assert made["windows"]["latency_mean_ms"][0] == ((1 << 70) + 1) / 2e6
    assert made["workers"]["latency_mean_ms"][1] == (1 << 63) / 1e6


def test_busy_times_past_64_bits() -> None:
    base = outcome(tuples=8, workers=4)
    worker = replace(base.worker, busy_ns=np.array([1 << 62] * 3 + [0], dtype=np.int64))
    found = summary(replace(base, worker=worker))
    assert found["work_peak_to_mean"] == pytest.approx(4 / 3, rel=1e-15)
    assert found["work_imbalance"] == pytest.approx(1 / 12, rel=1e-15)


def test_deviations_whose_squares_pass_64_bits() -> None:
    table = np.array([[1 << 40, (1 << 40) + 2, 1 << 40, (1 << 40) + 2], [0, 4, 0, 4]], dtype=np.int64)
    assert row_deviation(table).tolist() == [1.0, 2.0]
    wide = np.array([[0, 1 << 40]], dtype=np.int64)
    assert row_deviation(wide).tolist() == [float(1 << 39)]
    small = np.arange(12, dtype=np.int64).reshape(3, 4)
    assert row_deviation(small).tolist() == [deviation(row) for row in small.tolist()]


def test_bucket_middles_are_those_of_the_kernel() -> None:
    middles = latency.middles()
    bounds = lower_bounds()
    reached = [b for b in range(BUCKETS - 1) if bounds[b] < bounds[b + 1]]
    assert [middles[b] for b in reached] == [middle(b) for b in reached]
    for ns in (0, 1, 2, 127, 128, 255, 256, 257, 10**6, 10**9 + 7, (1 << 62) - 1):
        assert middles[bucket_of(ns)] == pytest.approx(ns, rel=0.004)


def test_percentiles_are_pooled_over_the_workers() -> None:
    """99 tuples of 1 ms on one worker, one of 100 ms on another: a mean of percentiles would say 50 ms."""
    histogram = np.zeros((2, BUCKETS), dtype=np.int64)
    histogram[0, bucket_of(1_000_000)] = 99
    histogram[1, bucket_of(100_000_000)] = 1
    pooled = histogram.sum(axis=0)
    limits = 1_000_000, 100_000_000
    assert latency.quantile_ns(pooled, Fraction(99, 100), *limits) == pytest.approx(1e6, rel=0.005)
    assert latency.quantile_ns(pooled, Fraction(999, 1000), *limits) == pytest.approx(1e8, rel=0.005)
    assert latency.quantile_ns(np.zeros(BUCKETS, dtype=np.int64), Fraction(1, 2), 0, 0) is None


def test_an_idle_worker_has_no_latency_but_a_load() -> None:
    made = tables(outcome(tuples=2, workers=7))["workers"]
    idle = made.filter(made["tuples"] == 0)
    assert idle.height == 5
    for column in ("latency_mean_ms", "latency_p99_ms", "backlog_max_ms", "head_tuples", "tail_tuples"):
        assert idle[column].null_count() == 5
    assert idle["busy_s"].to_list() == idle["utilization"].to_list() == [0.0] * 5


def test_hot_treatment_when_a_detector_reports_it() -> None:
    base = outcome(tuples=8, workers=4)
    found = summary(replace(base, hot_tuples=3, hot_choices_sum=8, choices_max=4))
    assert found["choices_max"] == 4
    assert found["choices_mean"] == 8 / 3
    none = summary(replace(base, hot_tuples=0, hot_choices_sum=0, choices_max=0))
    assert none["choices_max"] is none["choices_mean"] is None
    heads = replace(base.worker, head_tuples=np.array([1, 0, 2, 0], dtype=np.int64))
    made = tables(replace(base, worker=heads))["workers"]
    assert (made["head_tuples"] + made["tail_tuples"]).to_list() == made["tuples"].to_list()


def test_estimates_that_do_not_exist_are_null() -> None:
    base = outcome(tuples=8, workers=4)
    found = summary(replace(base, choices_per_key=None, source_state_entries=None, service_ns=None))
    for name in ("memory_estimate", "source_state_entries", "source_state_bytes", "queue_max"):
        assert found[name] is None


def test_every_family_gives_names_of_the_list_and_no_two_the_same() -> None:
    made = outcome(tuples=8, workers=4)
    names = [name for family in FAMILIES for name in family.measure(made)]
    assert len(names) == len(set(names))
    assert set(names) <= set(METRICS)
    assert set(METRICS) - set(names) == {
        "hot_keys_mean",
        "hot_precision",
        "hot_recall",
        "hot_detection_delay_tuples",
        "hot_detection_delay_ms",
        "trees",
        *(f"latency_tree_{name}_ms" for name in ("mean", "p50", "p95", "p99", "max")),
    }


def test_types_of_a_summary_do_not_depend_on_what_is_null() -> None:
    frame = tables(outcome(tuples=8, workers=4))["summary"]
    kinds = {float: pl.Float64, int: pl.Int64, str: pl.String}
    assert all(frame.schema[name] == kinds[kind] for name, kind in METRICS.items())


def test_many_windows_on_many_workers() -> None:
    base = outcome(tuples=8, workers=4)
    rows, workers = 100_000, 50
    rng = np.random.default_rng(5)
    loads = rng.integers(0, 9, (rows, workers), dtype=np.int64)
    ones = np.ones(rows, dtype=np.int64)
    window = replace(
        base.window,
        number=np.arange(rows, dtype=np.int64),
        start_ns=ones,
        tuples=loads,
        busy_ns=loads * 1_000_000,
        latency_min_ns=ones,
        latency_max_ns=ones,
        latency_sum_ns=[1] * rows,
        quantile_ns=np.ones((rows, 6)),
        pairs=ones,
    )
    grown = cumulative_imbalance(window)
    total = loads.sum(axis=0).tolist()
    assert math.isclose(grown[-1], imbalance(total) or 0.0, rel_tol=1e-15)
    made = tables(replace(base, window=window))
    assert made["loads"].height == rows * workers
    assert made["windows"]["load_stddev"][7] == deviation(loads[7].tolist())
