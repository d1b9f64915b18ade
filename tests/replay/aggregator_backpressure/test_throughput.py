"""A job runs at the rate of its slowest stage where full aggregators hold workers back."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

TUPLES = 2000
# Workers of 1,000 tuples a second each, aggregators of 500 partial results a second each.
OPTIONS: dict[str, Any] = {
    "workers": 2, "arrivals": "saturate", "max_pending": 50, "aggregators": 2, "aggregator_service": "2ms",
    "aggregator_grouping": "sg", "aggregate_every": "20",
}  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rows = [(at, b"%d" % at, None) for at in range(TUPLES)]
    return open_trace(write_trace(tmp_path_factory.mktemp("keys") / "x.trace", rows))


def test_the_aggregators_limit_the_workers(trace: Trace) -> None:
    found = summary(replay(trace, ReplayOptions("sg", **OPTIONS, queue_capacity=20), interpreted=True))
    assert found["partials"] == TUPLES
    assert found["throughput_tps"] == pytest.approx(1000, rel=0.03)
    assert found["bottleneck"] == "aggregators"
    assert found["sustainable_tps"] == pytest.approx(1000, rel=0.01)
    assert found["aggregator_utilization_max"] == pytest.approx(1, abs=0.02)
    # Without bounds the workers go on, and results are late by what they are ahead: a second.
    unbounded = summary(replay(trace, ReplayOptions("sg", **OPTIONS), interpreted=True))
    assert unbounded["throughput_tps"] == pytest.approx(2000, rel=0.01)
    assert unbounded["result_delay_ms_max"] > 900
    assert found["result_delay_ms_max"] < 110


def test_a_sooner_full_aggregator_holds_back_more(trace: Trace) -> None:
    """With windows of 500 the aggregators are idle while workers gather, unless they have room for a window."""
    options = {**OPTIONS, "aggregate_every": "500"}
    rates = [
        summary(replay(trace, ReplayOptions("sg", **options, queue_capacity=room), interpreted=True))["throughput_tps"]
        for room in (1, 20, 100, 1000)
    ]
    assert rates == sorted(rates)
    assert rates[0] < 850 < 1900 < rates[-1]


def test_idle_aggregators_do_not_limit(trace: Trace) -> None:
    options = {**OPTIONS, "aggregator_service": "100us"}
    found = summary(replay(trace, ReplayOptions("sg", **options, queue_capacity=20), interpreted=True))
    assert found["bottleneck"] == "workers"
    assert found["throughput_tps"] == pytest.approx(2000, rel=0.01)


def streamgroup(*words: str, cores: set[int] | None = None) -> str:
    preset = None if cores is None else lambda: os.sched_setaffinity(0, cores)
    done = subprocess.run(
        [sys.executable, "-m", "streamgroup", *words], capture_output=True, text=True, check=False, preexec_fn=preset
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_core_and_two_write_the_same_bytes(trace: Trace, tmp_path: Path) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    words = ["replay", str(trace.path), "-g", "pkg", "-n", "3", "--arrivals", "utilization=0.9", "--log"]
    words += ["--aggregators", "2", "--aggregator-service", "1ms:exponential", "--aggregate-every", "100"]
    words += ["--queue-capacity", "9", "--network-delay", "500us"]
    for name, cores in (("one", set(allowed[:1])), ("all", set(allowed))):
        streamgroup(*words, "-o", str(tmp_path / name), cores=cores)
    one, other = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.parquet")}
        for name in ("one", "all")
    )
    assert len(one) > 6
    assert one == other


def test_a_sweep_over_groupings(trace: Trace, tmp_path: Path) -> None:
    words = ["sweep", str(trace.path), "-g", "sg", "-g", "kg", "-n", "2,3", "--arrivals", "saturate"]
    words += ["--aggregators", "2", "--aggregator-service", "2ms", "--aggregate-every", "20", "--queue-capacity", "20"]
    streamgroup(*words, "-o", str(tmp_path / "sweep"))
    shown = streamgroup("summarize", str(tmp_path / "sweep"), "--metrics", "throughput_tps,bottleneck")
    rows = [line.split() for line in shown.splitlines()[2:]]
    assert [row[1:3] for row in rows] == [["sg", "2"], ["sg", "3"], ["kg", "2"], ["kg", "3"]]
    assert all(row[-1] == "aggregators" for row in rows)
