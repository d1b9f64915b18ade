"""Measured tuples are accounted as simulated ones: fed with a replay's own log, all metrics are the replay's."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import streamgroup as sg
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.account_given_times import Measured, Sent, account_measured, longest_queue
from streamgroup.replay.replay_trace import prepared, replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace

# How the loop was run, and what it cost.
_ASIDE = {"loop_s", "replay_s", "tuples_per_second"}


@pytest.mark.parametrize(
    "more",
    [{}, {"slowdown": "half:2", "network_delay": "300us"}, {"warmup": "10%", "window": "200ms"}, {"window": "77"}],
)
def test_a_log_gives_the_metrics_of_its_replay(tmp_path: Path, more: dict[str, Any]) -> None:
    sg.synth("zipf", tmp_path / "z.trace", tuples=5000, keys=200, exponent=1.1, seed=3)
    trace = open_trace(tmp_path / "z.trace")
    options = ReplayOptions("pkg", 4, sources=3, arrivals="poisson-utilization=0.9", service="1ms", **more)
    expected = replay(trace, options, log_directory=tmp_path / "log", interpreted=True)
    table = pq.read_table(tmp_path / "log").sort_by("seq")
    log = {name: table[name].to_numpy() for name in ("worker", "start_ns", "finish_ns")}
    run = prepared(trace, options, interpreted=True)
    found = account_measured(
        run, Measured(log["worker"], log["start_ns"], log["finish_ns"]), Sent(), tmp_path / "again"
    )
    assert pq.read_table(tmp_path / "again").sort_by("seq").equals(table)
    one, two = summary(expected), summary(found)
    assert {name for name in one if one[name] != two[name] and name not in _ASIDE} <= {"source_state_entries"}


def test_the_longest_queue_counts_who_finds_the_worker_busy() -> None:
    worker = np.array([0, 0, 0, 1, 0])
    reached = np.array([0, 1, 2, 2, 30])
    finish = np.array([10, 20, 30, 12, 40])
    assert longest_queue(worker, reached, finish) == 2
    assert longest_queue(worker[:1], reached[:1], finish[:1]) == 0
