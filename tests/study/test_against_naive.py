"""From the trace's files to the row of a run, against the slow twin: arrivals, choices, service, metrics at once."""

import functools
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study import replay_run as study
from tests.metrics.compare_with_naive import assert_rows_agree, assert_same, frames
from tests.naive.groupings.simple_groupings import GreedyD, Kg, Pkg, Setting, Sg, SgRandom
from tests.naive.metrics import metrics as naive
from tests.naive.replay.simulate import simulate
from tests.study.small_hand_written_traces import write_trace

KEYS = [f"k{int(1 / ((i * 0.6180339887) % 1 + 0.01))}" for i in range(500)]
TIMES = [1_700_000_000_000_000 + i * i for i in range(500)]
GROUPINGS = {"sg": Sg, "sg_random": SgRandom, "kg": Kg, "pkg": Pkg, "greedy_d:d=3": functools.partial(GreedyD, d=3)}
CASES: list[tuple[dict[str, Any], dict[str, Any], naive.Span]] = [
    ({}, {}, ("share", Fraction(1, 100))),
    (
        {"arrivals": "utilization=0.8", "slowdown": "half:2", "window": "33"},
        {"arrivals": ("utilization", "0.8"), "slowdown": "half:2"},
        ("count", 33),
    ),
    (
        {"service": "200us", "network_delay": "3ms", "source_assignment": "key", "window": "10ms"},
        {"service_ns": 200_000, "network_delay_ns": 3_000_000, "source_assignment": "key"},
        ("time", 10_000_000),
    ),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_run_agrees_with_the_slow_twin(
    grouping: str, case: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, twin, window = CASES[case]
    monkeypatch.setattr(study, "replay", functools.partial(replay, interpreted=True))
    trace = write_trace(tmp_path / "t", TIMES, KEYS)
    found = study.run_to_directory(trace, ReplayOptions(grouping=grouping, workers=7, sources=3, **given))
    tuples = [(time, key.encode(), None) for time, key in zip(TIMES, KEYS, strict=True)]
    run = simulate(tuples, GROUPINGS[grouping](Setting(7, 3)), workers=7, sources=3, **twin)
    expected = naive.metrics(run, window)
    for name, value in expected["summary"].items():
        if name != "source_state_bytes":
            assert_same(name, found.row[name], value)
    for name in ("windows", "workers", "loads"):
        assert_rows_agree(frames(found.tables)[name], expected[name])
