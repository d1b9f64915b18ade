"""What is not simulated with aggregators that hold workers back is refused, with the reason; all else is not."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import make_plan
from streamgroup.study.dry_run import dry_run
from streamgroup.study.run_cost import TUPLES_PER_S
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

HELD = ReplayOptions("kg", 2, sources=1, aggregators=3, aggregator_service="1ms", queue_capacity=5)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_trace(write_trace(tmp_path / "x.trace", [(at, b"a", None) for at in range(9)]))


@pytest.mark.parametrize(
    ("given", "flag", "why"),
    [
        ({"when_full": "drop"}, "--when-full drop", "never dropped"),
        ({"join": ("50%",)}, "--join", "comes or goes"),
        ({"leave": ("50%",)}, "--leave", "comes or goes"),
        ({"crash": ("50%",)}, "--crash", "comes or goes"),
        ({"combine": "3"}, "--combine", "originals of several windows"),
        ({"grouping": "full_knowledge"}, "-g full_knowledge", "sees the simulated workers"),
        ({"grouping": "oracle"}, "-g oracle", "sees the simulated workers"),
        ({"grouping": "fish:pw=oracle"}, "-g fish:pw=oracle", "sees the simulated workers"),
        ({"aggregator_grouping": "oracle"}, "--aggregator-grouping oracle", "sees the simulated workers"),
        ({"arrivals": "saturate", "aggregate_every": "1s"}, "--aggregate-every 1s", "in a closed loop"),
    ],
)
def test_what_cannot_be_simulated(trace: Trace, given: dict[str, Any], flag: str, why: str) -> None:
    options = dataclasses.replace(HELD, **given)
    with pytest.raises(UsageError) as refused:
        make_plan(trace, options)
    assert f"--queue-capacity with --aggregators does not go with {flag}" in str(refused.value)
    assert why in str(refused.value)
    assert refused.value.hint == "leave out one of them"
    # Each alone goes.
    if given.get("when_full") != "drop":
        make_plan(trace, dataclasses.replace(options, queue_capacity=None))
    plain = dataclasses.replace(options, aggregators=None, aggregator_service=None, aggregator_grouping=None)
    make_plan(trace, plain)


def test_an_engine_that_runs_in_batches(trace: Trace) -> None:
    with pytest.raises(UsageError, match="--engine-model micro-batch=5s does not go with --queue-capacity"):
        make_plan(trace, dataclasses.replace(HELD, engine_model="micro-batch=5s"))


@pytest.mark.parametrize(
    "given",
    [
        {"aggregate_every": "3us"},
        {"arrivals": "saturate", "aggregate_every": "3"},
        {"arrivals": "saturate", "aggregate_every": "50%"},
        {"source_service": "1us", "network_delay": "1us", "control_delay": "2us"},
        {"service_distribution": "exponential", "slowdown": "1,2", "speed_jitter": "0.1:2"},
        {"state_cost": "1/10", "memory_limit": "1:2"},
        {"app": "count", "aggregate_every": "2"},
    ],
)
def test_what_is_simulated(trace: Trace, given: dict[str, Any]) -> None:
    outcome = replay(trace, dataclasses.replace(HELD, **given), interpreted=True)
    assert outcome.worker.tuples.sum() == trace.tuples
    assert outcome.aggregation is not None
    assert outcome.aggregation.partials >= 1
    assert (outcome.results is None) == ("app" not in given)


def test_a_run_that_would_not_end_within_the_clock(tmp_path: Path) -> None:
    late = dataclasses.replace(HELD, aggregator_service="104d", aggregate_every="1")
    keys = [(at, b"a", None) for at in range(600)]
    many = open_trace(write_trace(tmp_path / "many.trace", keys))
    with pytest.raises(DataError, match="past the clock's 146 years"):
        replay(many, dataclasses.replace(late, queue_capacity=1 << 30), interpreted=True)


def test_a_dry_run_says_so(trace: Trace) -> None:
    found = dry_run(trace.path, HELD)
    assert found["loop"] == "ordered"
    assert found["aggregators"] == (
        "3 by kg, 1 ms for every partial result, 5 waiting for each, a full one holds workers back"
    )
    assert found["assumed_tuples_per_s"] == TUPLES_PER_S["held back"]
    alone = dry_run(trace.path, dataclasses.replace(HELD, queue_capacity=None))
    assert alone["aggregators"] == "3 by kg, 1 ms for every partial result"
