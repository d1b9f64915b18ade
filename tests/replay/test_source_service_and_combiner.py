"""Sources that take time, and combiners: against queueing theory, against runs without them, and what is refused."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, StreamgroupError, UsageError
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces import layout
from streamgroup.traces.trace import open_trace
from tests.metrics.compare_with_naive import assert_same
from tests.naive.metrics.metrics import held_metrics
from tests.naive.replay.random_scenarios import SOURCE_SERVICES, STATE, Scenario, draw_combiner, scenarios
from tests.random_cases import random_cases
from tests.replay.input.endless_trace import endless
from tests.replay.simulation.test_random_clusters_against_naive import agree, fast
from tests.traces_by_hand import write_trace

STAGES = ("source_utilization_max", "source_wait_ms_mean", "source_wait_ms_p99", "combined")


@st.composite
def staged(draw: st.DrawFn, *, combine: bool) -> Scenario:
    """A scenario in which sources take time, or merge."""
    scenario = draw(scenarios())
    options = dict(scenario.options)
    if combine:
        options |= draw_combiner(draw, options)
    options["source_service"] = draw(st.sampled_from(SOURCE_SERVICES[3:]))
    return Scenario(scenario.tuples, options, scenario.key_cost)


@random_cases(60)
@given(staged(combine=False), st.integers(1, 50))
def test_sources_that_take_time_agree_with_the_twin(scenario: Scenario, rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        agree(scenario, interpreted=True)


@random_cases(60)
@given(staged(combine=True), st.integers(1, 50))
def test_combiners_agree_with_the_twin(scenario: Scenario, rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        agree(scenario, interpreted=True)


@st.composite
def merged_with_state(draw: st.DrawFn) -> Scenario:
    """A scenario in which sources merge and state costs, mostly with windows and a warm-up."""
    scenario = draw(staged(combine=True))
    count = len(scenario.tuples)
    state_cost, memory_limit = draw(st.sampled_from([one for one in STATE if any(one)]))
    options = {
        **scenario.options,
        "state_cost": state_cost,
        "memory_limit": memory_limit,
        "aggregate_every": draw(st.sampled_from([None, "25%", "40%", "1", "2", "3", "1us", "4us", "20us"])),
        "warmup": str(draw(st.sampled_from([0, count // 3, count // 2]))),
    }
    return Scenario(scenario.tuples, options, scenario.key_cost)


@random_cases(200)
@given(merged_with_state(), st.integers(1, 50))
def test_what_merged_tuples_make_workers_hold_agrees_with_the_twin(scenario: Scenario, rows: int) -> None:
    run = scenario.run()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as directory:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        outcome, found = fast(scenario, Path(directory), interpreted=True)
    assert found == [(r.seq, r.arrival_ns, r.source, r.worker, r.start_ns, r.finish_ns) for r in run.records]
    row = summary(outcome)
    for name, value in held_metrics(run, [r for r in run.records if r.measured]).items():
        assert_same(name, row[name], value)


def plain(scenario: Scenario) -> Scenario:
    """Without a stage, and such that all of it can be combined."""
    none = {"redeliver": False, "combine": None, "combine_cost": "max", "source_service": None}
    options = {**scenario.options, **none}
    if options["arrivals"] == "saturate":
        options |= {"arrivals": "rate=500000", "max_pending": 1000}
    # By index a change of workers comes before its tuple, but with a combiner before all of the instant.
    membership = {kind: tuple(t for t in options[kind] if "s" in t) for kind in ("join", "leave", "crash")}
    slower = tuple(t for t in options["slowdown_at"] if "us=" in t)
    return Scenario(scenario.tuples, options | membership | {"slowdown_at": slower}, scenario.key_cost)


@pytest.mark.parametrize("stage", [{"combine": "1"}, {"source_service": "0"}])
def test_a_stage_that_does_nothing_changes_nothing(tmp_path_factory: Any, stage: dict[str, str]) -> None:
    @settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
    @given(scenarios())
    def check(scenario: Scenario) -> None:
        scenario = plain(scenario)
        found = []
        for options in (scenario.options, {**scenario.options, **stage}):
            given = replace(scenario, options=options)
            outcome, rows = fast(given, tmp_path_factory.mktemp("run"), interpreted=True)
            row = {name: value for name, value in summary(outcome).items() if name not in STAGES}
            # What is not known with a stage: see docs/metrics.md.
            del row["queue_max"], row["makespan_vs_lower_bound"]
            found.append((rows, row))
        assert found[0] == found[1]

    check()


def one_source(directory: Path, tuples: int, **options: Any) -> dict[str, Any]:
    given = ReplayOptions(grouping="kg", workers=1, sources=1, **options)
    return summary(replay(endless(directory, tuples), given))


@pytest.mark.parametrize("grouping", ["kg", "w_choices", "dstream:r=1"])
@pytest.mark.parametrize("service", ["2ms", "3ms:exponential"])
def test_sources_that_nothing_holds_back_are_those_before_queues_that_are_never_full(
    tmp_path: Path, grouping: str, service: str
) -> None:
    """Each of the two has a loop of its own."""
    keys = [b"%d" % (place * place % 97 if place % 3 else 0) for place in range(1500)]
    trace = open_trace(write_trace(tmp_path / "t", [(place * 700, key, None) for place, key in enumerate(keys)]))
    logs = []
    for more in ({}, {"queue_capacity": 1_000_000}):
        options = ReplayOptions(
            grouping, 6, sources=4, service="3ms", source_service=service, network_delay="1ms", warmup="10%", **more
        )
        directory = tmp_path / f"{len(logs)}"
        outcome = replay(trace, options, log_directory=directory)
        row = summary(outcome)
        logs.append((pq.read_table(directory), row["source_utilization_max"], row["latency_p99_ms"]))
    assert logs[0] == logs[1]


def test_a_source_waits_as_in_an_m_d_1_queue(tmp_path: Path) -> None:
    """Pollaczek and Khinchine: rho / (2 (1 - rho)) services."""
    row = one_source(tmp_path, 4_000_000, arrivals="poisson=700", source_service="1ms", service="1ns")
    assert row["source_wait_ms_mean"] == pytest.approx(0.7 / (2 * 0.3), rel=0.01)
    assert row["source_utilization_max"] == pytest.approx(0.7, rel=0.005)
    assert row["latency_mean_ms"] == pytest.approx(1 + 0.7 / 0.6, rel=0.01)


@pytest.mark.slow
def test_a_source_and_a_worker_are_a_product(tmp_path: Path) -> None:
    """Jackson: in M/M/1 - M/M/1 the second queue is as if the arrivals were Poisson; 1 / (mu - lambda) each."""
    row = one_source(
        tmp_path, 30_000_000, arrivals="poisson=600", source_service="1ms:exponential", service="1.25ms",
        service_distribution="exponential", seed=1,
    )  # fmt: skip
    assert row["source_wait_ms_mean"] == pytest.approx(0.6 / 0.4, rel=0.01)
    assert row["latency_mean_ms"] == pytest.approx(1000 / 400 + 1000 / 200, rel=0.01)


def by_hand(directory: Path, tuples: list[tuple[int, bytes]], **options: Any) -> Outcome:
    trace = open_trace(write_trace(directory / "x.trace", [(at, key, None) for at, key in tuples]))
    return replay(trace, ReplayOptions(grouping="kg", workers=1, **{"sources": 1, "service": "1ms", **options}))


def test_a_saturated_source_is_never_idle(tmp_path: Path) -> None:
    row = summary(by_hand(tmp_path, [(0, b"a")] * 1000, arrivals="saturate", source_service="2ms", max_pending=5))
    assert row["throughput_tps"] == pytest.approx(1000 / 2.001)
    assert row["latency_max_ms"] == 3
    assert row["source_wait_ms_mean"] == 0


def test_a_blocked_source_does_not_serve(tmp_path: Path) -> None:
    """Service 1 ms, the worker's 10 ms with one place: tuples leave at 1, 2, 11, 21 and 31 ms."""
    row = summary(
        by_hand(tmp_path, [(0, b"a")] * 5, arrivals="trace", source_service="1ms", service="10ms", queue_capacity=1)
    )
    assert row["source_wait_ms_mean"] == pytest.approx((0 + 1 + 10 + 20 + 30) / 5)
    assert row["latency_max_ms"] == 51


def test_a_mini_batch_is_one_tuple_for_each_key(tmp_path: Path) -> None:
    """Four tuples at 0 to 3 ms leave at 3 ms as a, then b; the last one at the end of the trace."""
    stream = [(0, b"a"), (1000, b"b"), (2000, b"a"), (3000, b"a"), (9000, b"b")]
    found = by_hand(tmp_path, stream, combine="4")
    row = summary(found)
    assert row["combined"] == 3
    # Finishes: a at 4 ms, b at 5 ms, the last b at 10 ms.
    assert row["latency_mean_ms"] == pytest.approx((4 + 4 + 2 + 1 + 1) / 5)
    assert found.worker.tuples.tolist() == [5]
    assert found.worker.busy_ns.tolist() == [3_000_000]


@pytest.mark.parametrize(("cost", "busy_ms"), [("max", 3), ("sum", 5), ("0.5", 1.5 + 0.5 + 0.5)])
def test_what_a_merged_tuple_costs(tmp_path: Path, cost: str, busy_ms: float) -> None:
    stream = [(0, b"a"), (1000, b"b"), (2000, b"a"), (3000, b"a"), (9000, b"b")]
    found = by_hand(tmp_path, stream, combine="4", combine_cost=cost)
    assert found.worker.busy_ns.tolist() == [busy_ms * 1_000_000]


def test_of_merged_tuples_those_count_that_leave_after_the_warm_up(tmp_path: Path) -> None:
    """The second mini-batch begins in the warm-up; its busy time is that of its first measured tuple."""
    stream = [(1000 * i, b"a") for i in range(6)]
    found = by_hand(tmp_path, stream, combine="2", warmup="3")
    assert found.combined == 2
    assert found.worker.tuples.tolist() == [3]
    assert found.worker.busy_ns.tolist() == [2_000_000]


def test_a_time_s_mini_batch_ends_at_its_multiple(tmp_path: Path) -> None:
    """What comes at 10 ms is of the next one; the last one leaves at its end, after the end of the trace."""
    row = summary(by_hand(tmp_path, [(0, b"a"), (9999, b"a"), (10_000, b"a")], combine="10ms"))
    assert row["combined"] == 2
    assert row["latency_mean_ms"] == pytest.approx((11 + 1.001 + 11) / 3)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"source_service": "-1us"}, "is not a duration"),
        ({"source_service": "1us,"}, "is not a duration"),
        ({"source_service": "1us:"}, "there is no kind ''"),
        ({"source_service": "1us:uniform"}, "there is no kind 'uniform'"),
        ({"source_service": "1us:lognormal"}, "needs a coefficient of variation"),
        ({"source_service": "105d"}, "would last over 2^53 ns"),
        ({"source_service": "104d:lognormal:5"}, "could stay with its source for over 2^53 ns"),
        ({"combine": "0"}, "is not between 1 and 2^40"),
        ({"combine": "-3"}, "is not a time, a count or a share"),
        ({"combine": "0ms"}, "is not between 1 ns"),
        ({"combine": "1000d"}, "is not between 1 ns and 2^53 ns"),
        ({"combine": str(1 << 40)}, "is not between 1 and 2^40"),
        ({"combine": "5%"}, "is a number of tuples or a time"),
        ({"combine": "2", "combine_cost": "mean"}, "--combine-cost is max, sum or a share: 'mean' is not a number"),
        ({"combine": "2", "combine_cost": "0"}, "is not a share over 0"),
        ({"combine": "2", "combine_cost": "1.5"}, "is not a share over 0"),
        ({"combine_cost": "sum"}, "needs a combiner"),
        ({"combine": "2", "arrivals": "saturate"}, "would wait for tuples that wait for it"),
        ({"combine": "2", "crash": ("1",), "redeliver": True}, "is not taken apart again"),
        ({"combine": "2", "slowdown_at": ("2=3",)}, "merged tuples are other tuples"),
        ({"combine": "5", "combine_cost": "sum", "service": "60d"}, "a merged tuple would be served for over 2^53 ns"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises((UsageError, DataError)) as error:
        by_hand(tmp_path, [(i, b"a") for i in range(9)], **options)
    assert reason in str(error.value)


@pytest.mark.parametrize("more", [{}, {"combine": "1"}, {"arrivals": "saturate"}])
def test_the_end_of_the_clock_is_reported(tmp_path: Path, more: dict[str, str]) -> None:
    with pytest.raises(StreamgroupError, match="past the clock's 146 years"):
        by_hand(tmp_path, [(0, b"a")] * 600, source_service="104d", **more)


@pytest.mark.parametrize("text", ['["20us", "40us:exponential"]', '"1ms,2ms"'])
def test_a_capacity_file_gives_the_time(tmp_path: Path, text: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f"source_service = {text}\n")
    row = summary(by_hand(tmp_path, [(0, b"a")] * 9, capacity=str(file)))
    assert row["source_utilization_max"] > 0
