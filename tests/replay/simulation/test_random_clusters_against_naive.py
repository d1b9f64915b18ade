"""The whole cluster against its naive twin on random small replays: tuple by tuple, and every metric."""

import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from streamgroup.metrics.metric_names import METRICS
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario import import_user_code
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation import event_driven
from streamgroup.traces import layout
from streamgroup.traces.trace import open_trace
from tests.metrics.compare_with_naive import assert_rows_agree, assert_same, tables
from tests.naive.groupings.hot_by_counts import ByCounts
from tests.naive.groupings.simple_groupings import Setting
from tests.naive.metrics import metrics as naive
from tests.naive.metrics import tables as naive_tables
from tests.naive.metrics.hot_keys import Heads
from tests.naive.metrics.what_is_counted import measured_of
from tests.naive.replay.options import Span
from tests.naive.replay.random_scenarios import Scenario, scenarios
from tests.naive.replay.tuple_records import Run
from tests.random_cases import random_cases
from tests.traces_by_hand import write_trace

BY_COUNTS = str(Path(__file__).parents[1] / "groupings_outside_package" / "by_counts.py")
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


def check_tables(outcome: Outcome, run: Run, scenario: Scenario, heads: Heads | None = None) -> None:
    window: Span = scenario.window()
    queued = scenario.options["queue_capacity"] is not None
    expected = naive.metrics(
        run, window, run.options.warmup, aggregate_every=scenario.aggregate_every(),
        queues_known=True if queued else None, heads=heads,
    )  # fmt: skip
    found = summary(outcome)
    assert list(found) == list(METRICS)
    for name, value in found.items():
        if name != "queue_max" or queued:
            assert_same(name, value, expected["summary"][name])
    made = tables(outcome)
    for name in ("windows", "workers", "loads"):
        assert_rows_agree(made[name], expected[name])
    lag = naive_tables.lag_rows(run, measured_of(run, run.options.warmup))
    assert made["lag"].height == len(lag)
    if lag:
        assert_rows_agree(made["lag"], lag)
    # After a warm-up keys of one count come in the order of the whole trace.
    as_text = [{**row, "key": None if row["key"] is None else row["key"].decode()} for row in expected["keys"]]
    as_text.sort(key=lambda row: (row["key"] is not None, row["key"]))
    assert_rows_agree(made["keys"].sort("key", nulls_last=False), as_text)


# Two workers leave before one tuple of an instant, while a source waits for the first of them.
_TWO_LEAVE = {
    "grouping": "kg", "workers": 3, "sources": 1, "source_assignment": "shuffle", "arrivals": "trace",
    "spread_ties": False, "speedup": "0.5", "max_pending": 1000, "service": "1us", "service_distribution": None,
    "slowdown": None, "slowdown_at": (), "speed_jitter": None, "queue_capacity": 1, "when_full": "block",
    "join": ("0",), "leave": ("50%", "50%"), "crash": (), "redeliver": False, "network_delay": "0",
    "control_delay": None, "warmup": "0", "window": "1%", "aggregate_every": None, "seed": 0, "hash_seed": 1,
}  # fmt: skip


# The worker crashes before any tuple that is measured has come to it.
_CRASH_BEFORE_ALL = {
    **_TWO_LEAVE, "workers": 2, "speedup": "1", "service": None, "spread_ties": True, "when_full": "drop",
    "join": ("0", "0", "0us"), "leave": (), "crash": ("500ns",), "network_delay": "1us", "warmup": "50%",
    "hash_seed": 0,
}  # fmt: skip


@random_cases(400)
@given(scenarios())
@example(Scenario([(0, b"a", None)] * 9, _CRASH_BEFORE_ALL))
@example(Scenario([(0, b"", 0.0)] * 30, _TWO_LEAVE))
def test_interpreted_replays_agree_with_the_twin(scenario: Scenario) -> None:
    agree(scenario, interpreted=True)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios(), st.integers(1, 9), st.sampled_from([4, 8, 1 << 17]))
def test_thousands_of_replays_in_small_pieces_agree_with_the_twin(scenario: Scenario, rows: int, kept: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        patch.setattr(event_driven, "_EVENTS", kept)
        agree(scenario, interpreted=True)


def hot_keys_agree(scenario: Scenario, parts: int, *, cold: bool, interpreted: bool) -> None:
    given = scenario.options
    twin = ByCounts(Setting(given["workers"], given["sources"], given["seed"], given["hash_seed"]))
    run = scenario.run(twin)
    # By an option, or as the grouping says itself.
    own = parts if parts % 2 else 0
    threshold = "1/5n" if parts == 0 else "own" if own else f"1/{parts}"
    grouping = f"{BY_COUNTS}:parts={own},cold={str(cold).lower()}"
    options = {**given, "grouping": grouping, "hot_threshold": threshold}
    with tempfile.TemporaryDirectory() as directory:
        outcome, rows = fast(replace(scenario, options=options), Path(directory), interpreted=interpreted)
    assert rows == [(r.seq, r.arrival_ns, r.source, r.worker, r.start_ns, r.finish_ns) for r in run.records]
    heads = Heads(Fraction(1, parts) if parts else None, 1 if cold else None)
    check_tables(outcome, run, scenario, heads)


@random_cases(300)
@given(scenarios(), st.sampled_from([0, 1, 2, 3, 5, 40]), st.booleans(), st.integers(1, 50), st.sampled_from([4, 64]))
def test_hot_keys_agree_with_the_twin(scenario: Scenario, parts: int, cold: bool, rows: int, kept: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        patch.setattr(event_driven, "_EVENTS", kept)
        # As if the grouping were one of the package's: those are rewritten to be interpreted, and nothing is compiled.
        patch.setattr(import_user_code, "_with_companions", lambda path, digest: "")
        hot_keys_agree(scenario, parts, cold=cold, interpreted=True)


def one_variant(scenario: Scenario) -> Scenario:
    """The same, event-driven, with equal costs and sources in turn: one compiled loop serves all of them."""
    options = {
        **scenario.options,
        "source_assignment": "shuffle",
        "service": scenario.options["service"] or "4us",
        "service_distribution": None,
        "slowdown_at": (),
        "speed_jitter": None,
        "state_cost": None,
        "memory_limit": None,
    }
    if options["arrivals"] != "saturate" and options["queue_capacity"] is None:
        options |= {"queue_capacity": 2, "when_full": "block"}
    return Scenario([(at, key, None) for at, key, _ in scenario.tuples], options)


@random_cases(300)
@given(scenarios(["pkg"]))
def test_compiled_replays_agree_with_the_twin(scenario: Scenario) -> None:
    agree(one_variant(scenario), interpreted=False)
