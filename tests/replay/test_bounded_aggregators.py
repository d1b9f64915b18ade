"""Aggregators that hold workers back against their naive twin, and the twin against runs without aggregators."""

import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.metrics.run_tables import summary
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation import event_driven
from streamgroup.traces import layout
from streamgroup.traces.trace import open_trace
from tests.metrics.compare_with_naive import assert_rows_agree, assert_same, tables
from tests.naive.groupings.grouping_by_text import make
from tests.naive.groupings.simple_groupings import Setting
from tests.naive.metrics import metrics as naive
from tests.naive.metrics import tables as naive_tables
from tests.naive.metrics.aggregation import Merge, merged_metrics
from tests.naive.metrics.what_is_counted import measured_of, windows_of
from tests.naive.replay.bounded_aggregators import Bounded, simulate_bounded
from tests.naive.replay.random_scenarios import Scenario, scenarios, time_ns
from tests.naive.replay.tuple_records import Run
from tests.random_cases import random_cases
from tests.traces_by_hand import write_trace

GROUPINGS = [
    "kg",
    "sg",
    "sg",
    "pkg",
    "posg:batch=4,mu=1,columns=20",
    "posg:batch=2,mu=2,rows=2,columns=5,sync=exec",
    "fish:interval=3us,epoch=5,capacity=3,alpha=0.5",
    "dstream:r=1,zeta=1",
    "dstream:r=1,p=0.1,filter=exact",
]
COLUMNS = ("seq", "arrival_ns", "source", "worker", "start_ns", "finish_ns")


@st.composite
def bounded(draw: st.DrawFn) -> Scenario:
    """A scenario in which workers may wait for aggregators, with the options of these."""
    scenario = draw(scenarios(GROUPINGS))
    options = dict(scenario.options)
    windows = [None, "10%", "25%", "40%", "1", "1", "2", "3", "5"]
    # about as long as the services of tuples, which are 1 ms unless something says otherwise
    services = ["0", "1us", "5us", "20us", "20us", "300us", "4us:exponential", "9us:lognormal:0.8"]
    if scenario.tuples[0][2] is None and options["service"] is None and scenario.key_cost is None:
        services = [None, "300us", "1ms", "2ms", "5ms", "5ms", "2ms:exponential", "1ms:lognormal:0.8"]
    if options["arrivals"] != "saturate":
        # In a closed loop windows of time are refused: nobody knows their last tuple before the next one comes.
        windows += ["1us", "4us", "30us"]
    options |= {
        "queue_capacity": draw(st.sampled_from([1, 1, 2, 3])),
        "when_full": "block",
        "join": (),
        "leave": (),
        "crash": (),
        "redeliver": False,
        "combine": None,
        "combine_cost": "max",
        "state_cost": None,
        "memory_limit": None,
        "aggregate_every": draw(st.sampled_from(windows)),
        "aggregators": draw(st.sampled_from([1, 1, 2, 3])),
        "aggregator_service": draw(st.sampled_from(services)),
        "aggregator_grouping": draw(st.sampled_from([None, "kg", "sg", "pkg", "sg_random"])),
    }
    return Scenario(scenario.tuples, options, scenario.key_cost)


def merge_of(options: dict[str, Any]) -> Merge:
    setting = Setting(options["aggregators"], options["workers"], options["seed"], options["hash_seed"])
    service, _, kind = (options["aggregator_service"] or "0").partition(":")
    return Merge(
        options["aggregators"], make(options["aggregator_grouping"] or "kg", setting),
        Scenario([], options).aggregate_every(), time_ns(service), kind or "deterministic",
        time_ns(options["network_delay"]), options["seed"],
    )  # fmt: skip


def twin(scenario: Scenario) -> Bounded:
    return simulate_bounded(scenario.tuples, scenario.grouping(), merge_of(scenario.options), **scenario.twin_options())


def rows_of(run: Run) -> list[tuple[Any, ...]]:
    return [(r.seq, r.arrival_ns, r.source, r.worker, r.start_ns, r.finish_ns) for r in run.records]


@random_cases(100)
@given(bounded())
def test_the_twin_is_a_run_without_aggregators_if_they_are_never_full(scenario: Scenario) -> None:
    """They take no time, and nor does the network to them: what is accepted has started."""
    options = {**scenario.options, "aggregator_service": None, "network_delay": "0", "control_delay": "1us"}
    never = replace(scenario, options=options)
    assert rows_of(twin(never).run) == rows_of(never.run())


@random_cases(100)
@given(bounded())
def test_workers_of_the_twin_wait_no_longer_than_they_have_to(scenario: Scenario) -> None:
    """By the records alone: a tuple starts once it is there, the worker idle, and rid of what it had to send."""
    found = twin(scenario)
    delay, capacity = time_ns(scenario.options["network_delay"]), scenario.options["queue_capacity"]
    finished = {
        (record.worker, window, record.key)
        for window, content in windows_of(
            [r for r in found.run.records if r.measured], scenario.aggregate_every() or ("share", Fraction(1))
        ).items()
        for record in content
    }
    assert sorted(map(str, finished)) == sorted(str((one.worker, one.window, one.key)) for one in found.partials)
    for worker in range(scenario.options["workers"]):
        own = sorted((r.start_ns, r.finish_ns) for r in found.run.records if r.worker == worker)
        reached = {r.start_ns - r.deliveries[0].wait_ns for r in found.run.records if r.worker == worker}
        sent = [one for one in found.partials if one.worker == worker]
        rid = {one.accepted_ns for one in sent}
        for (_, before), (start, _) in zip([(0, 0), *own], own, strict=False):
            assert before <= start
            assert start == before or start in reached | rid
            assert not any(one.chosen_ns < start < one.accepted_ns for one in sent)
    for aggregator in range(scenario.options["aggregators"]):
        own_partials = [one for one in found.partials if one.aggregator == aggregator]
        for one in own_partials:
            assert one.start_ns >= one.accepted_ns + delay
            full = [o for o in own_partials if o.accepted_ns <= one.accepted_ns < o.start_ns]
            assert len(full) <= capacity


def agree(scenario: Scenario, *, interpreted: bool) -> None:
    expected = twin(scenario)
    options = dict(scenario.options)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        trace = open_trace(write_trace(directory / "x.trace", scenario.tuples))
        if scenario.key_cost is not None:
            options["key_cost"] = str(scenario.write_key_cost(directory / "costs.csv"))
        given = ReplayOptions(**options)
        outcome = replay(trace, given, log_directory=directory / "log", interpreted=interpreted)
        logged = [row for part in sorted((directory / "log").iterdir()) for row in pq.read_table(part).to_pylist()]
    assert [tuple(row[name] for name in COLUMNS) for row in logged] == rows_of(expected.run)
    check_metrics(outcome, expected, scenario)


def of_the_grouping(name: str) -> bool:
    """What a grouping reports of its hot keys and messages is compared with the twins of groupings."""
    others = ("memory_estimate", "bound_imbalance", *naive.DETECTOR_METRICS)
    return name in others or any(part in name for part in ("hot_", "head_", "tail_", "detector_", "control_"))


def check_metrics(outcome: Outcome, expected: Bounded, scenario: Scenario) -> None:
    run, every = expected.run, scenario.aggregate_every()
    measured, busy = measured_of(run, run.options.warmup), expected.busy(scenario.options["aggregators"])
    wanted = naive.metrics(run, scenario.window(), run.options.warmup, aggregate_every=every, queues_known=True)
    row = wanted["summary"]
    row |= naive.stage_metrics(run, measured, max(busy))
    row |= merged_metrics(measured, every, expected.complete(), busy, len(expected.partials))
    if row["source_state_entries"] is not None:
        # That of the row is the largest of the whole run, warm-up included.
        first = min(record.seq for record in measured)
        entries = max(choice.state_entries for choice in run.choices if choice.seq >= first)
        row["source_state_entries"] = entries
        row["source_state_bytes"] = getattr(run.grouping, "state_entry_bytes", 8) * entries
    for name, value in summary(outcome).items():
        if not of_the_grouping(name):
            assert_same(name, value, row[name])
    made = tables(outcome)
    for table in ("windows", "workers", "loads"):
        frame = made[table]
        kept = frame.select([name for name in frame.columns if not of_the_grouping(name)])
        rows = [{name: value for name, value in row.items() if not of_the_grouping(name)} for row in wanted[table]]
        assert_rows_agree(kept, rows)
    assert_rows_agree(made["lag"], naive_tables.lag_rows(run, measured))


@random_cases(120)
@given(bounded(), st.integers(1, 50), st.sampled_from([8, 1 << 17]))
def test_bounded_aggregators_agree_with_the_twin(scenario: Scenario, rows: int, kept: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        patch.setattr(event_driven, "_EVENTS", kept)
        agree(scenario, interpreted=True)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bounded(), st.integers(1, 9), st.sampled_from([4, 8]))
def test_thousands_of_bounded_aggregators_agree_with_the_twin(scenario: Scenario, rows: int, kept: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        patch.setattr(event_driven, "_EVENTS", kept)
        agree(scenario, interpreted=True)
