"""The whole cluster against its naive twin on random small replays: tuple by tuple, and every metric."""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.metrics.names import METRICS
from streamgroup.metrics.tables import summary
from streamgroup.replay import ordered_machine
from streamgroup.replay.options import ReplayOptions
from streamgroup.replay.outcome import Outcome
from streamgroup.replay.run import replay
from streamgroup.traces import schema
from streamgroup.traces.trace import open_trace
from tests.metrics.compare import assert_rows_agree, assert_same, tables
from tests.naive import metrics as naive
from tests.naive.options import Span
from tests.naive.records import Run
from tests.naive.scenarios import Scenario, scenarios
from tests.traces_by_hand import write_trace

COLUMNS = ("seq", "arrival_ns", "source", "worker", "start_ns", "finish_ns")


def fast(scenario: Scenario, directory: Path, *, interpreted: bool) -> tuple[Outcome, list[tuple[Any, ...]]]:
    """The outcome and the rows of the log."""
    trace = open_trace(write_trace(directory / "x.trace", scenario.tuples))
    options = dict(scenario.options)
    if scenario.key_cost is not None:
        options["key_cost"] = str(scenario.write_key_cost(directory / "costs.csv"))
    outcome = replay(trace, ReplayOptions(**options), log_directory=directory / "log", interpreted=interpreted)
    return outcome, [
        tuple(row[name] for name in COLUMNS)
        for part in sorted((directory / "log").iterdir())
        for row in pq.read_table(part).to_pylist()
    ]


def agree(scenario: Scenario, *, interpreted: bool) -> None:
    run = scenario.run()
    with tempfile.TemporaryDirectory() as directory:
        outcome, rows = fast(scenario, Path(directory), interpreted=interpreted)
    assert rows == [(r.seq, r.arrival_ns, r.source, r.worker, r.start_ns, r.finish_ns) for r in run.records]
    check_tables(outcome, run, scenario)


def check_tables(outcome: Outcome, run: Run, scenario: Scenario) -> None:
    window: Span = scenario.window()
    queued = scenario.options["queue_capacity"] is not None
    expected = naive.metrics(
        run, window, run.options.warmup, aggregate_every=scenario.aggregate_every(),
        queues_known=True if queued else None,
    )  # fmt: skip
    found = summary(outcome)
    assert list(found) == list(METRICS)
    for name, value in found.items():
        if name != "queue_max" or queued:
            assert_same(name, value, expected["summary"][name])
    made = tables(outcome)
    for name in ("windows", "workers", "loads"):
        assert_rows_agree(made[name], expected[name])


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_interpreted_replays_agree_with_the_twin(scenario: Scenario) -> None:
    agree(scenario, interpreted=True)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios(), st.integers(1, 9), st.sampled_from([4, 8, 1 << 17]))
def test_thousands_of_replays_in_small_pieces_agree_with_the_twin(scenario: Scenario, rows: int, kept: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "BLOCK_ROWS", rows)
        patch.setattr(ordered_machine, "_ROWS", kept)
        agree(scenario, interpreted=True)


def one_variant(scenario: Scenario) -> Scenario:
    """The same in the ordered loop, with equal costs and sources in turn: one compiled loop serves all of them."""
    options = {
        **scenario.options,
        "source_assignment": "shuffle",
        "service": scenario.options["service"] or "4us",
        "service_distribution": None,
        "slowdown_at": (),
        "speed_jitter": None,
    }
    if options["arrivals"] != "saturate" and options["queue_capacity"] is None:
        options |= {"queue_capacity": 2, "when_full": "block"}
    return Scenario([(at, key, None) for at, key, _ in scenario.tuples], options)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios(["pkg"]))
def test_compiled_replays_agree_with_the_twin(scenario: Scenario) -> None:
    agree(one_variant(scenario), interpreted=False)
