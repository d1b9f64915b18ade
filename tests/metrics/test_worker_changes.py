"""Runs in which workers come and go and not all tuples finish: each figure worked out by hand."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streamgroup.kernels.latency_histogram import BUCKETS, bucket_of
from streamgroup.metrics.imbalance import cumulative_imbalance, deviation, own_imbalance, row_deviation
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.accounting.outcome import Outcome, WindowTable, WorkerTable
from tests.metrics.compare_with_naive import tables
from tests.metrics.outcome_from_records import outcome_of
from tests.naive.groupings.simple_groupings import Setting, Sg
from tests.naive.replay.simulate import simulate

MS = 1_000_000
NEVER = 1 << 62


def ints(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def histogram(*latencies_ms: tuple[int, ...]) -> Any:
    counts = np.zeros((len(latencies_ms), BUCKETS), dtype=np.int64)
    for worker, found in enumerate(latencies_ms):
        for ms in found:
            counts[worker, bucket_of(ms * MS)] += 1
    return counts


def changed() -> Outcome:
    """Ten of twelve tuples measured, from 2 ms to a last finish at 22 ms, on two workers and one that joins.

    Worker 0 is there all the time: 4 accepted, 4 finished after 1, 2, 3 and 4 ms. Worker 1 crashes at 12 ms: 5
    accepted, 2 finished after 6 and 8 ms, one of the others delivered again, two lost. Worker 2 joins at 17 ms and
    gets the one that is delivered again, which takes 20 ms. One tuple is dropped, alone in the last window.
    """
    base = outcome_of(simulate([(i, b"k", None) for i in range(12)], Sg(Setting(2)), workers=2), ("count", 12))
    window = WindowTable(
        number=ints(0, 1, 2),
        start_ns=ints(2 * MS, 7 * MS, 14 * MS),
        tuples=np.array([[1, 4, 1], [3, 1, 0], [0, 0, 0]], dtype=np.int64),
        busy_ns=np.array([[1, 2, 1], [3, 0, 0], [0, 0, 0]], dtype=np.int64) * MS,
        latency_min_ns=ints(1 * MS, 2 * MS, NEVER),
        latency_max_ns=ints(20 * MS, 4 * MS, -1),
        latency_sum_ns=[35 * MS, 9 * MS, 0],
        quantile_ns=np.array([[6.0, 6.0, 7.0, 8.0, 20.0, 20.0], [2.0, 2.0, 3.0, 4.0, 4.0, 4.0], [-1.0] * 6]) * MS,
        pairs=ints(3, 2, 0),
        detector_entries=None,
        finished=None,
        served=ints(4, 3, 0),
        alive=np.array([[True, True, False], [True, False, False], [True, False, True]]),
        ever=ints(2, 2, 3),
        joined=ints(0, 0, 1),
        left=ints(0, 1, 0),
    )
    worker = WorkerTable(
        tuples=ints(4, 5, 1),
        busy_ns=ints(4 * MS, 2 * MS, 1 * MS),
        wait_max_ns=ints(3 * MS, 7 * MS, 0),
        keys=ints(1, 1, 1),
        latency_sum_ns=[10 * MS, 14 * MS, 20 * MS],
        histogram=histogram((1, 2, 3, 4), (6, 8), (20,)),
        head_tuples=None,
        finished=ints(4, 2, 1),
        alive_from_ns=ints(0, 0, 17 * MS),
        alive_to_ns=ints(NEVER, 12 * MS, NEVER),
    )
    return replace(
        base,
        tuples=12,
        measured=10,
        first_arrival_ns=2 * MS,
        last_finish_ns=22 * MS,
        window=window,
        worker=worker,
        latency_min_ns=1 * MS,
        latency_max_ns=20 * MS,
        service_ns=None,
        steady=False,
        queue_known=True,
        queue_max=3,
        dropped=1,
        lost=2,
        redelivered=1,
        aggregation_messages=17,
        remapped_replicas=1,
    )


def nothing_finished() -> Outcome:
    """The same run in which every tuple was dropped."""
    run = changed()
    none, zeros = ints(0, 0, 0), np.zeros((3, 3), dtype=np.int64)
    window = replace(
        run.window,
        tuples=zeros,
        busy_ns=zeros,
        latency_min_ns=ints(NEVER, NEVER, NEVER),
        latency_max_ns=ints(-1, -1, -1),
        latency_sum_ns=[0, 0, 0],
        served=none,
        pairs=none,
    )
    worker = replace(
        run.worker,
        tuples=none,
        finished=none,
        busy_ns=none,
        wait_max_ns=none,
        keys=none,
        latency_sum_ns=[0, 0, 0],
        histogram=histogram((), (), ()),
    )
    limits: dict[str, Any] = {"latency_min_ns": NEVER, "latency_max_ns": -1, "last_finish_ns": None}
    return replace(run, window=window, worker=worker, queue_max=None, dropped=10, lost=0, redelivered=0, **limits)


def test_loads_are_of_accepted_deliveries_on_the_workers_ever_alive() -> None:
    found = summary(changed())
    assert found["imbalance"] == pytest.approx(5 / 10 - 1 / 3, rel=1e-15)
    assert found["peak_to_mean"] == 1.5
    assert found["idle_workers"] == 0
    assert found["load_stddev_percent"] == pytest.approx(10 * deviation([4, 5, 1]), rel=1e-15)


def test_grown_imbalance_is_among_the_workers_ever_alive_by_then() -> None:
    """4 of 6 against a mean of 5/12 of two workers, 5 of 10 against 9/20; then 5 of 10 among three."""
    run = changed()
    expected = [4 / 6 - 5 / 12, 5 / 10 - 9 / 20, 5 / 10 - 1 / 3]
    assert cumulative_imbalance(run.window) == pytest.approx(expected, rel=1e-14)
    assert summary(run)["imbalance_mean"] == pytest.approx(sum(expected) / 3, rel=1e-14)
    assert tables(run)["windows"]["imbalance"].to_list() == pytest.approx(expected, rel=1e-14)


def test_a_windows_own_imbalance_is_among_those_alive_at_its_end_in_shares_of_all_its_tuples() -> None:
    """Max 4/6 and mean 5/12 of the two alive; then one worker, which is even by itself."""
    run = changed()
    assert own_imbalance(run.window)[:2] == pytest.approx([4 / 6 - 5 / 12, 0.0], rel=1e-15)
    found = summary(run)
    assert found["window_imbalance_mean"] == pytest.approx(1 / 8, rel=1e-15)
    assert found["window_imbalance_max"] == pytest.approx(1 / 4, rel=1e-15)
    assert found["window_load_stddev_mean"] == pytest.approx((1.5 + 0 + 0) / 3, rel=1e-15)


def test_a_window_in_which_nothing_was_accepted_has_no_imbalance_and_no_latency() -> None:
    rows = tables(changed())["windows"].to_dicts()
    assert rows[2]["tuples"] == 0
    assert rows[2]["window_imbalance"] is None
    assert rows[2]["imbalance"] == pytest.approx(5 / 10 - 1 / 3, rel=1e-15)
    latencies = [name for name in rows[0] if name.startswith("latency")]
    assert len(latencies) == 9
    assert all(rows[2][name] is None for name in latencies)
    assert [rows[1][name] for name in latencies] == [2.0, 3.0, 2.0, 2.0, 3.0, 4.0, 4.0, 4.0, 4.0]
    assert [row["workers_joined"] for row in rows] == [0, 0, 1]
    assert [row["workers_left"] for row in rows] == [0, 1, 0]
    assert rows[0]["latency_mean_ms"] == 35 / 4


def test_latency_and_throughput_are_of_finished_tuples() -> None:
    found = summary(changed())
    assert found["latency_mean_ms"] == 44 / 7
    assert found["latency_p50_ms"] == pytest.approx(4.0, rel=0.005)
    assert found["latency_max_ms"] == 20.0
    assert found["latency_worst_worker_mean_ms"] == 20.0
    assert found["makespan_s"] == 0.02
    assert found["throughput_tps"] == 350.0
    assert found["throughput_limit_tps"] == 1750.0
    assert found["backlog_max_ms"] == 7.0
    assert tables(changed())["workers"]["latency_mean_ms"].to_list() == [2.5, 7.0, 20.0]


def test_utilization_is_of_the_time_alive_within_the_makespan() -> None:
    """Worker 0: 4 of 20 ms; worker 1: 2 of 10 until its crash; worker 2: 1 of 5 from its join; its mean is theirs."""
    run = changed()
    assert tables(run)["workers"]["utilization"].to_list() == [0.2, 0.2, 0.2]
    busy = replace(run.worker, busy_ns=ints(4 * MS, 5 * MS, 1 * MS))
    found = summary(replace(run, worker=busy))
    assert found["utilization_mean"] == 0.3
    assert found["utilization_max"] == 0.5
    before = replace(run.worker, alive_to_ns=ints(NEVER, 1 * MS, NEVER), busy_ns=ints(4 * MS, 0, 1 * MS))
    assert tables(replace(run, worker=before))["workers"]["utilization"].to_list() == [0.2, None, 0.2]
    assert summary(replace(run, worker=before))["utilization_mean"] == 0.2
    after = replace(run.worker, alive_from_ns=ints(0, 0, 30 * MS), busy_ns=ints(4 * MS, 2 * MS, 0))
    assert tables(replace(run, worker=after))["workers"]["utilization"].to_list() == [0.2, 0.2, None]


def test_every_worker_ever_alive_has_rows() -> None:
    made = tables(changed())
    assert made["workers"]["worker"].to_list() == [0, 1, 2]
    assert made["workers"]["tuples"].to_list() == [4, 5, 1]
    assert made["loads"].height == 9
    assert made["loads"]["tuples"].sum() == made["windows"]["tuples"].sum() == 10


def test_what_was_lost_dropped_and_delivered_again_is_told() -> None:
    found = summary(changed())
    names = ("dropped", "lost", "redelivered", "aggregation_messages", "remapped_replicas", "replicas")
    assert [found[name] for name in names] == [1, 2, 1, 17, 1, 3]


def test_no_least_imbalance_where_workers_change_or_a_tuple_has_more_chances() -> None:
    """All ten tuples have one key, which key grouping sends to one worker of three."""
    run = replace(changed(), choices_per_key=1, count=ints(10), dropped=0, redelivered=0)
    assert summary(run)["bound_imbalance"] is None
    stays = replace(run, worker=replace(run.worker, alive_from_ns=None, alive_to_ns=None))
    assert summary(stays)["bound_imbalance"] == pytest.approx(1 - 1 / run.workers, rel=1e-15)
    assert summary(replace(stays, choices_per_key=2))["bound_imbalance"] == pytest.approx(0.5 - 1 / run.workers)
    for more in ({"dropped": 1}, {"redelivered": 1}, {"choices_per_key": None}):
        assert summary(replace(stays, **more))["bound_imbalance"] is None


def test_no_lower_bound_where_speeds_or_workers_change() -> None:
    run = changed()
    assert summary(run)["makespan_vs_lower_bound"] is None
    assert summary(replace(run, steady=True))["makespan_vs_lower_bound"] == pytest.approx(20 / 6, rel=1e-15)


def test_the_longest_queue_is_the_known_one_or_follows_from_the_waits_or_is_null() -> None:
    run = changed()
    assert summary(run)["queue_max"] == 3
    assert summary(replace(run, queue_max=None))["queue_max"] is None
    assert summary(replace(run, queue_known=False))["queue_max"] is None
    even = replace(run, queue_known=False, service_ns=ints(MS, 2 * MS, MS))
    assert summary(even)["queue_max"] == 4


def test_where_nothing_finished_figures_are_null_and_counts_are_zero() -> None:
    run = nothing_finished()
    found = summary(run)
    zeros = {name for name, value in found.items() if value == 0}
    assert zeros >= {"replicas", "replication_factor", "state_entries_max", "lost", "redelivered", "skew_score"}
    assert found["dropped"] == 10
    assert found["idle_workers"] == 3
    nothing = [name for name in found if name.split("_")[0] in ("latency", "imbalance", "work", "makespan")]
    nothing += ["throughput_tps", "throughput_limit_tps", "backlog_max_ms", "queue_max", "peak_to_mean"]
    nothing += ["utilization_mean", "utilization_max", "window_imbalance_mean", "window_imbalance_max"]
    assert {name: found[name] for name in nothing} == dict.fromkeys(nothing)
    made = tables(run)
    assert made["latency"].height == 0
    for table in made.values():
        floats = [name for name, kind in table.schema.items() if kind.is_float()]
        assert not any(table[name].is_nan().any() or table[name].is_infinite().any() for name in floats)
    assert made["windows"]["imbalance"].null_count() == made["windows"]["window_imbalance"].null_count() == 3
    assert made["workers"]["utilization"].null_count() == 3


def test_shares_of_keys_are_of_the_measured_tuples() -> None:
    run = changed()
    top = replace(run.top_keys[0], count=10)
    assert tables(replace(run, top_keys=[top]))["keys"]["share"].to_list() == [1.0]
    assert replace(run, measured=0).measured == 12


def test_neutral_values_say_that_all_finished_on_workers_that_stay() -> None:
    """The same run, once with what the simple case leaves out written down."""
    base = outcome_of(simulate([(i * 100, b"k", None) for i in range(9)], Sg(Setting(3)), workers=3), ("count", 2))
    rows, workers = base.window.tuples.shape
    window = replace(
        base.window,
        served=base.window.tuples.sum(axis=1),
        alive=np.ones((rows, workers), dtype=np.bool_),
        ever=np.full(rows, workers, dtype=np.int64),
    )
    worker = replace(
        base.worker,
        finished=base.worker.tuples.copy(),
        alive_from_ns=ints(*[0] * workers),
        alive_to_ns=ints(*[NEVER] * workers),
    )
    told = replace(base, window=window, worker=worker, aggregation_messages=int(base.worker.keys.sum()))
    assert summary(told) == summary(base)
    for name, table in tables(told).items():
        assert table.equals(tables(base)[name])


def test_deviation_among_some_past_64_bits() -> None:
    huge = np.array([[1 << 40, (1 << 40) + 2, 7], [3, 1, 5]], dtype=np.int64)
    among = np.array([[True, True, False], [False, True, True]])
    assert row_deviation(huge, among).tolist() == [1.0, 2.0]
    assert row_deviation(huge[1:], among[1:]).tolist() == [2.0]


def test_a_mean_utilization_of_unlike_lives_is_exact() -> None:
    """Thirds and sevenths have no exact sum in floats."""
    run = changed()
    worker = replace(
        run.worker,
        busy_ns=ints(1, 1, 2),
        alive_from_ns=ints(2 * MS, 2 * MS, 2 * MS),
        alive_to_ns=ints(2 * MS + 3, 2 * MS + 7, 2 * MS + 21),
    )
    expected = (Fraction(1, 3) + Fraction(1, 7) + Fraction(2, 21)) / 3
    assert summary(replace(run, worker=worker))["utilization_mean"] == float(expected)
