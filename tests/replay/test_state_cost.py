"""State that costs, in whole replays: by hand, where it costs nothing, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import DataError, StreamgroupError
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

LOOPS: dict[str, dict[str, Any]] = {"feed-forward": {}, "event-driven": {"queue_capacity": 1000}}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """A tuple every 10 us: a, b, c, d in turn."""
    tuples = [(10 * at, b"abcd"[at % 4 : at % 4 + 1], None) for at in range(40)]
    return open_trace(write_trace(tmp_path_factory.mktemp("state") / "x.trace", tuples))


def metrics(trace: Trace, **options: Any) -> dict[str, Any]:
    given = {"grouping": "sg", "workers": 1, "sources": 1, "service": "1us", **options}
    return summary(replay(trace, ReplayOptions(**given), interpreted=True))


@pytest.mark.parametrize("loop", LOOPS)
def test_by_hand(trace: Trace, loop: str) -> None:
    """The four keys are there after four tuples: 1.5 + 2 + 2.5 + 37 x 3 us; over two entries it takes twice as long."""
    found = metrics(trace, state_cost="1/2", **LOOPS[loop])
    assert (found["held_entries_max"], found["state_slowdown_mean"]) == (4, (6 + 37 * 3) / 40)
    assert found["latency_mean_ms"] == pytest.approx(found["state_slowdown_mean"] / 1000)
    found = metrics(trace, state_cost="1/2", memory_limit="2:2", **LOOPS[loop])
    assert found["state_slowdown_mean"] == (3.5 + 2 * (2.5 + 37 * 3)) / 40


@pytest.mark.parametrize("loop", LOOPS)
def test_windows_release_and_the_warm_up_has_windows_of_its_own(trace: Trace, loop: str) -> None:
    found = metrics(trace, state_cost="1/1", aggregate_every="20us", **LOOPS[loop])
    assert (found["held_entries_max"], found["state_slowdown_mean"]) == (2, 2.5)
    # Windows of 2 from tuple 3 on, not from 0: 18 whole ones, and a tuple.
    found = metrics(trace, state_cost="1/1", aggregate_every="2", warmup="3", **LOOPS[loop])
    assert (found["held_entries_max"], found["state_slowdown_mean"]) == (2, (18 * 5 + 2) / 37)


@pytest.mark.parametrize("loop", LOOPS)
def test_who_joins_holds_nothing_and_what_a_leaver_held_is_gone(trace: Trace, loop: str) -> None:
    """Worker 1 serves all from tuple 20 on: it begins with no keys."""
    found = metrics(trace, state_cost="1/1", join=("20",), crash=("20:0",), **LOOPS[loop])
    assert found["state_slowdown_mean"] == 2 * (2 + 3 + 4 + 17 * 5) / 40


@pytest.mark.parametrize("loop", LOOPS)
def test_costing_nothing_is_as_without(trace: Trace, loop: str) -> None:
    plain, free = metrics(trace, **LOOPS[loop]), metrics(trace, state_cost="0/7", memory_limit="0:1", **LOOPS[loop])
    differ = {name for name in plain if plain[name] != free[name]}
    assert differ <= {"held_entries_max", "state_slowdown_mean", "queue_max"}
    assert free["state_slowdown_mean"] == 1


@pytest.mark.parametrize(
    ("options", "most", "slowdown"),
    [
        # Both stay: a is served with one entry, b with two.
        ({}, 2, (2 + 2 + 3 + 3) / 4),
        # The last a is of the window of tuples 0 to 2, the last b of the next one.
        ({"aggregate_every": "3"}, 1, 2),
        ({"aggregate_every": "25us"}, 1, 2),
        ({"aggregate_every": "4"}, 2, 2.5),
        # The warm-up ends between the last a and the last b: what is of it is released. One original is measured.
        ({"aggregate_every": "9", "warmup": "3"}, 1, 2),
        # It ends before the last a: both are of the first measured window, each with one measured original.
        ({"aggregate_every": "9", "warmup": "2"}, 2, (2 + 3) / 2),
        # That window begins with the last a, at 20 us, and ends before the last b.
        ({"aggregate_every": "10us", "warmup": "2"}, 1, 2),
    ],
)
def test_a_merged_tuple_is_held_for_the_window_of_its_last_original(
    tmp_path: Path, options: dict[str, Any], most: int, slowdown: float
) -> None:
    """A mini-batch of a, b, a, b, one every 10 us: two merged tuples, each with two originals."""
    stream = [(10 * at, key, None) for at, key in enumerate([b"a", b"b", b"a", b"b"])]
    trace = open_trace(write_trace(tmp_path / "x.trace", stream))
    found = metrics(trace, state_cost="1/1", combine="4", **options)
    assert (found["held_entries_max"], found["state_slowdown_mean"]) == (most, slowdown)


@pytest.mark.parametrize(
    "options",
    [
        {"service": "1h", "state_cost": "1e9/1"},
        {"service": "50d", "memory_limit": "3:3"},
        {"service": "50d", "state_cost": "1/100", "memory_limit": "0:2", "slowdown": "1.05"},
    ],
)
def test_services_that_would_be_too_long_are_refused(trace: Trace, options: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="over 2\\^53 ns"):
        metrics(trace, **options)
    if "state_cost" not in options:
        metrics(trace, **{**options, "memory_limit": "4:3"})


def test_what_is_wrong_is_said_before_any_tuple(trace: Trace, tmp_path: Path) -> None:
    for options in ({"state_cost": "-1/5"}, {"state_cost": "1/0"}, {"memory_limit": "5:0"}, {"memory_limit": "5"}):
        with pytest.raises(StreamgroupError):
            metrics(trace, **options)
