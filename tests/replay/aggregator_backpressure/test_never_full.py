"""Aggregators that are never full change nothing of the workers: as the same run without aggregators."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.metrics.metric_names import METRICS
from streamgroup.metrics.run_tables import summary
from streamgroup.metrics.stages.aggregators import measure
from streamgroup.replay.aggregator_backpressure import simulation as held_back
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation import event_driven
from streamgroup.traces import layout
from streamgroup.traces.trace import open_trace
from tests.naive.replay.random_scenarios import Scenario, scenarios
from tests.traces_by_hand import write_trace

GROUPINGS = ["kg", "pkg", "sg", "sg_random", "greedy_d:d=3", "posg:batch=2", "fish", "load_aware"]
# Each is never full: it takes no time, or has room for all.
NEVER_FULL = st.one_of(
    st.fixed_dictionaries({"aggregator_service": st.sampled_from([None, "0"])}),
    st.fixed_dictionaries(
        {
            "aggregator_service": st.sampled_from(["1us", "3us:exponential", "1ms"]),
            "queue_capacity": st.just(1 << 39),
        }
    ),
)
# What the stages of the run without aggregators cannot say.
OF_AGGREGATORS = {
    "bottleneck",
    "sustainable_tps",
    "sustainable_tps_aggregators",
    "backlog_end_ms",
    "aggregation_messages",
}


def rows(directory: Path) -> Iterator[dict[str, Any]]:
    for part in sorted(directory.iterdir()):
        yield from pq.read_table(part).to_pylist()


def supported(scenario: Scenario) -> dict[str, Any]:
    """The scenario's options without those that are refused."""
    options = {
        **scenario.options, "queue_capacity": scenario.options["queue_capacity"] or 2, "when_full": None,
        "join": (), "leave": (), "crash": (), "redeliver": False, "combine": None,
    }  # fmt: skip
    options.pop("combine_cost", None)
    if options["arrivals"] == "saturate" and (options["aggregate_every"] or "").endswith("s"):
        options["aggregate_every"] = "3"
    return options


def both(scenario: Scenario, extra: dict[str, Any], *, interpreted: bool) -> None:
    given = {**supported(scenario), **extra}
    if extra["aggregator_service"] in (None, "0"):
        # A queue of what is on the network can be full.
        given["network_delay"] = "0"
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        trace = open_trace(write_trace(directory / "x.trace", scenario.tuples))
        if scenario.key_cost is not None:
            given["key_cost"] = str(scenario.write_key_cost(directory / "costs.csv"))
        with_them = ReplayOptions(**given)
        without = replace(with_them, aggregators=None, aggregator_service=None, aggregator_grouping=None)
        one = summary(replay(trace, without, log_directory=directory / "without", interpreted=interpreted))
        other_run = replay(trace, with_them, log_directory=directory / "with", interpreted=interpreted)
        other = summary(other_run)
        assert list(rows(directory / "with")) == list(rows(directory / "without"))
        ignored = OF_AGGREGATORS | set(measure(other_run))
        assert {k: one[k] for k in METRICS if k not in ignored} == {k: other[k] for k in METRICS if k not in ignored}
        assert other["partials"] is not None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    scenarios(GROUPINGS), NEVER_FULL, st.integers(1, 4), st.sampled_from(["kg", "sg", "pkg", "posg:batch=2"]),
    st.integers(1, 50), st.sampled_from([1, 2, 64]),
)  # fmt: skip
def test_every_tuple_is_served_as_without_aggregators(
    scenario: Scenario, extra: dict[str, Any], aggregators: int, grouping: str, read: int, room: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", read)
        patch.setattr(event_driven, "_EVENTS", 8)
        patch.setattr(held_back, "_ROWS", room)
        patch.setattr(held_back, "_LOG", room)
        both(scenario, {**extra, "aggregators": aggregators, "aggregator_grouping": grouping}, interpreted=True)
