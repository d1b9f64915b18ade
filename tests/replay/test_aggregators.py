"""The aggregators against their naive twin, and against queueing theory."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation import event_driven
from streamgroup.replay.stages import aggregators, partial_results
from streamgroup.traces import layout
from streamgroup.traces.trace import open_trace
from tests.metrics.compare_with_naive import assert_same
from tests.naive.groupings.grouping_by_text import make
from tests.naive.groupings.simple_groupings import Setting
from tests.naive.metrics.aggregation import AGGREGATOR_METRICS, Merge, aggregator_metrics
from tests.naive.replay.random_scenarios import Scenario, scenarios, time_ns
from tests.replay.input.endless_trace import endless
from tests.traces_by_hand import write_trace

AGGREGATED = st.fixed_dictionaries(
    {
        "aggregators": st.integers(1, 4),
        "aggregator_service": st.sampled_from([None, "0", "1us", "5us", "3us:exponential", "2us:lognormal:0.8"]),
        "aggregator_grouping": st.sampled_from([None, None, "kg", "sg", "pkg", "sg_random", "d_choices"]),
    }
)


def options_of(scenario: Scenario, extra: dict[str, Any]) -> dict[str, Any]:
    """Those with bounded queues hold workers back: see `replay.aggregator_backpressure`."""
    return {**scenario.options, "queue_capacity": None, "when_full": None, **extra}


def merge_of(given: dict[str, Any]) -> Merge:
    workers = given["workers"] + len(given["join"])
    setting = Setting(given["aggregators"], workers, given["seed"], given["hash_seed"])
    service, _, kind = (given["aggregator_service"] or "0").partition(":")
    every = Scenario([], given).aggregate_every()
    return Merge(
        given["aggregators"], make(given["aggregator_grouping"] or "kg", setting), every, time_ns(service),
        kind or "deterministic", time_ns(given["network_delay"]), given["seed"],
    )  # fmt: skip


def agree(scenario: Scenario, extra: dict[str, Any], *, interpreted: bool) -> None:
    given = options_of(scenario, extra)
    plain = {name: value for name, value in given.items() if name not in extra}
    run = Scenario(scenario.tuples, plain).run()
    counts = Counter(key for _, key, _ in scenario.tuples)
    order = sorted(counts, key=lambda key: (-counts[key], key is not None, key or b""))
    measured = [record for record in run.records if record.measured]
    expected = aggregator_metrics(measured, merge_of(given), {key: place for place, key in enumerate(order)})
    with tempfile.TemporaryDirectory() as directory:
        trace = open_trace(write_trace(Path(directory) / "x.trace", scenario.tuples))
        found = summary(replay(trace, ReplayOptions(**given), interpreted=interpreted))
    for name in AGGREGATOR_METRICS:
        assert_same(name, found[name], expected[name])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios(["sg", "kg", "pkg"]), AGGREGATED, st.integers(1, 50), st.sampled_from([2, 1 << 10]))
def test_aggregators_agree_with_the_twin(scenario: Scenario, extra: dict[str, Any], rows: int, room: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        patch.setattr(event_driven, "_EVENTS", 8)
        patch.setattr(partial_results, "_FIRST_ROWS", room)
        patch.setattr(aggregators, "_CHUNK", room + 1)
        agree(Scenario(scenario.tuples, scenario.options), extra, interpreted=True)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios(), AGGREGATED, st.integers(1, 9), st.sampled_from([2, 64]))
def test_thousands_of_aggregators_agree_with_the_twin(
    scenario: Scenario, extra: dict[str, Any], rows: int, room: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        patch.setattr(event_driven, "_EVENTS", 4)
        patch.setattr(partial_results, "_FIRST_ROWS", room)
        patch.setattr(aggregators, "_CHUNK", room)
        agree(Scenario(scenario.tuples, scenario.options), extra, interpreted=True)


@pytest.mark.slow
def test_an_aggregator_is_an_mm1_queue(tmp_path: Path) -> None:
    """Workers that take no time send each tuple on as a partial result of its own: rho / (1 - rho) services of wait."""
    tuples, rho = 1_000_000, 0.5
    options = ReplayOptions(
        "kg", 1, sources=1, service="0", arrivals="poisson=500", aggregate_every="1", aggregators=1,
        aggregator_service="1ms:exponential", seed=3,
    )  # fmt: skip
    found = summary(replay(endless(tmp_path, tuples), options))
    assert found["partials"] == tuples
    assert found["result_delay_ms_mean"] == pytest.approx(1 / (1 - rho), rel=0.01)
    assert found["aggregator_utilization_max"] == pytest.approx(rho, rel=0.01)


@pytest.mark.slow
def test_tandem_queues_have_the_product_form(tmp_path: Path) -> None:
    """Jackson: what leaves an M/M/1 worker is a Poisson stream to the aggregator, whatever happened before."""
    tuples = 2_000_000
    options = ReplayOptions(
        "kg", 1, sources=1, service="1ms", service_distribution="exponential", arrivals="poisson=400",
        aggregate_every="1", aggregators=1, aggregator_service="1500us:exponential", seed=4,
    )  # fmt: skip
    found = summary(replay(endless(tmp_path, tuples), options))
    # In ms: 1 / (mu - lambda) at each.
    at_worker, at_aggregator = 1 / (1 - 0.4), 1.5 / (1 - 0.6)
    assert found["latency_mean_ms"] == pytest.approx(at_worker, rel=0.01)
    assert found["result_delay_ms_mean"] == pytest.approx(at_worker + at_aggregator, rel=0.01)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"aggregators": 0}, "--aggregators 0 is not between"),
        ({"aggregators": 1 << 40}, "is not between"),
        ({"aggregator_service": "1ms"}, "add --aggregators A"),
        ({"aggregator_grouping": "kg"}, "add --aggregators A"),
        ({"aggregators": 1, "aggregator_service": ""}, "--aggregator-service: '' is not a duration"),
        ({"aggregators": 1, "aggregator_grouping": ""}, "'' names no grouping"),
        ({"aggregators": 1, "aggregator_service": "soon"}, "--aggregator-service"),
        ({"aggregators": 1, "aggregator_service": "1ms:uniform"}, "--aggregator-service: there is no kind 'uniform'"),
        ({"aggregators": 1, "aggregator_service": "1ms:"}, "--aggregator-service: there is no kind ''"),
        ({"aggregators": 1, "aggregator_service": "-1ms"}, "--aggregator-service"),
        ({"aggregators": 1, "aggregator_service": "200d"}, "104 days"),
        ({"aggregators": 1, "aggregator_grouping": "no_such"}, "no_such"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    trace = open_trace(write_trace(tmp_path / "x.trace", [(0, b"a", None)]))
    with pytest.raises(UsageError) as refused:
        replay(trace, ReplayOptions("kg", 2, **given))
    assert told in str(refused.value) + str(refused.value.hint)


def test_a_run_in_which_nothing_finishes_has_no_result(tmp_path: Path) -> None:
    trace = open_trace(write_trace(tmp_path / "x.trace", [(0, b"a", None), (5, b"a", None)]))
    found = summary(replay(trace, ReplayOptions("sg", 1, sources=1, join=("6us",), crash=("6us:0",), aggregators=1)))
    assert (found["lost"], found["partials"], found["result_delay_ms_mean"]) == (2, 0, None)
