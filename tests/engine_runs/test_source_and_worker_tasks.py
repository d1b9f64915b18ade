"""The parts of a run in an engine, without one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import streamgroup as sg
from streamgroup.base.errors import UsageError
from streamgroup.cli.app import app
from streamgroup.engine_runs.engine_outcome import of_all, out_of_order
from streamgroup.engine_runs.machine_fast_enough import machine_of
from streamgroup.engine_runs.unsupported_options import BATCH, FLINK, STREAMING, Form, check_slots, refuse
from streamgroup.engine_runs.worker_task import serve_tuples
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import make_plan
from streamgroup.traces.trace import Trace, open_trace


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("engine") / "z.trace"
    sg.synth("zipf", path, tuples=200, keys=30, exponent=1.1, seed=3)
    return open_trace(path)


@pytest.mark.parametrize("spins", [False, True])
def test_a_worker_serves_first_come_first_served(spins: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that advances by 1 us at each look, and by what is slept, 7 us late."""
    now = 0

    def clock() -> int:
        nonlocal now
        now += 1_000
        return now

    def sleep(seconds: float) -> None:
        nonlocal now
        now += round(seconds * 1e9) + 17_000

    monkeypatch.setattr("streamgroup.engine_runs.precise_waits.time.sleep", sleep)
    state: dict[bytes | None, int] = {}
    arrival, service = [0, 1_000_000, 100_000_000], [5_000_000, 1_000_000, 2_000_000]
    found = serve_tuples(arrival, service, [b"a", None, b"a"], state, 10_000_000, spins=spins, clock=clock)
    assert state == {b"a": 2, None: 1}
    # It waits for the first and the third; the second comes while the first is served.
    assert [one >= 0 for one in found.late] == [True, False, True]
    for i, (start, finish) in enumerate(zip(found.start, found.finish, strict=True)):
        due = arrival[i] if i != 1 else found.finish[0]
        assert due <= start <= due + 20_000
        assert service[i] <= finish - start <= service[i] + 20_000


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"arrivals": "saturate"}, "holds sources back"),
        ({"join": ("1s",)}, "--join changes the workers"),
        ({"leave": ("1s",)}, "--leave changes the workers"),
        ({"crash": ("50",)}, "--crash changes the workers"),
        ({"queue_capacity": 5}, "--queue-capacity bounds"),
        ({"slowdown_at": ("1s=1,2",)}, "--slowdown-at a time"),
        ({"grouping": "posg", "sources": 1}, "-g posg listens to its workers"),
        ({"grouping": "fish"}, "-g fish listens to its workers"),
        ({"grouping": "dstream"}, "-g dstream: its sources report to one synopsis"),
        ({"grouping": "full_knowledge"}, "-g full_knowledge reads"),
        ({"engine_model": "micro-batch=10"}, "--engine-model is of a simulation"),
        ({"grouping": "dstream:coins=2,coin_service=1ms"}, "coin_service: control servers are simulated"),
        ({"grouping": "dstream:synopsis_service=1ms"}, "synopsis_service: control servers are simulated"),
        ({"grouping": "posg:message_service=1us", "sources": 1}, "message_service: control servers are simulated"),
        ({"grouping": "rivetti_dkg:learner_service=1us", "sources": 1}, "learner_service: control servers"),
        ({"grouping": "dstream:synopsis_service=0us"}, "its sources report to one synopsis"),
    ],
)
def test_what_an_engine_cannot_do_is_refused_with_the_reason(trace: Trace, given: dict[str, Any], reason: str) -> None:
    options = ReplayOptions(**{"grouping": "kg", "workers": 4, "arrivals": "rate=100", "sources": 5} | given)
    with pytest.raises(UsageError, match=reason):
        refuse(make_plan(trace, options), "sleep")


@pytest.mark.parametrize(("form", "grouping"), [(BATCH, "fish"), (FLINK, "fish"), (BATCH, "posg")])
def test_feedback_is_for_a_streaming_query(trace: Trace, form: Form, grouping: str) -> None:
    plan = make_plan(trace, ReplayOptions(grouping, 4, sources=1, arrivals="rate=100"))
    with pytest.raises(UsageError, match=f"listens to its workers, and nothing .* {form.engine}'s sources") as error:
        refuse(plan, "sleep", form)
    assert "--engine spark-streaming" in str(error.value.hint)
    assert ("fish:hwa=false" in str(error.value.hint)) == (grouping == "fish")
    refuse(plan, "sleep", STREAMING)


def test_what_it_can_do_is_not(trace: Trace) -> None:
    options = ReplayOptions("fish:hwa=false", 4, slowdown="half:2", slowdown_at=("50%=1,2",), warmup="10%")
    refuse(make_plan(trace, options), "spin")
    check_slots(4, 4, "local[4]")
    with pytest.raises(UsageError, match="no mode 'nap'"):
        refuse(make_plan(trace, options), "nap")
    with pytest.raises(UsageError, match=r"4 workers run at once, .* local\[2\] has 2 slots"):
        check_slots(4, 2, "local[2]")


def test_what_the_machine_did_is_summed_up() -> None:
    service, start = np.array([1000, 3000]), np.array([0, 5000])
    finish, late = np.array([1100, 8200]), np.array([-1, 60])
    reports = [{"cpu_ns": 5 * 10**8, "ready_spread_ns": 2_000_000, "behind_ns": -7}] * 2
    found = machine_of(service, start, finish, late, reports)
    assert (found.service_asked_ms, found.service_measured_ms, found.service_factor) == (0.002, 0.00215, 1.075)
    # Late by 60 ns at an arrival, by 100 and 200 ns at the ends of services.
    assert found.wake_ups == 3
    assert found.lateness_mean_ms == pytest.approx(120e-6)
    assert found.lateness_share == pytest.approx(0.06)
    assert (found.cpu_s, found.ready_spread_ms, found.begun_late_ms) == (1.0, 2.0, 0.0)


def test_order_within_each_worker() -> None:
    worker, arrival = np.array([0, 1, 0, 0, 1], np.int32), np.array([1, 2, 3, 3, 5])
    # Worker 0 serves those that came at 3 before that of 1; worker 1 keeps the order, and so do equal times.
    assert out_of_order(worker, arrival, np.array([30, 10, 20, 15, 11])) == 0.2
    assert out_of_order(worker, arrival, np.array([1, 2, 3, 4, 5])) == 0.0
    assert out_of_order(worker[:1], arrival[:1], arrival[:1]) == 0.0


def test_detectors_of_all_sources_are_added_up() -> None:
    own = np.array([1, 5, 2, 4, 2])
    assert of_all(own, np.array([0, 1, 0, 1, 0])).tolist() == [1, 6, 7, 6, 6]


def test_the_command_refuses_what_needs_a_comparison(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--app topk: workers in Spark count by key"):
        sg.run(trace.path, "kg", 2, app="topk", arrivals="rate=100")
    with pytest.raises(UsageError, match="--combine is simulated, and no part of a run in Spark"):
        sg.run(trace.path, "kg", 2, combine="10", arrivals="rate=100")
    with pytest.raises(UsageError, match="no engine 'storm'"):
        sg.run(trace.path, "kg", 2, engine="storm")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_dry_run_says_what_the_engine_would_refuse_and_needs_no_directory(trace: Trace) -> None:
    asked = ["run", str(trace.path), "-g", "pkg", "-n", "2", "--service", "1ms", "--dry-run"]
    assert CliRunner().invoke(app, asked).exit_code == 0
    refused = CliRunner().invoke(app, [*asked, "--combine", "10"])
    assert refused.exit_code == 2
    assert "--combine is simulated" in refused.stderr
