"""Processes that compile ahead leave code on disk, and end with whoever started them."""

import dataclasses
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from streamgroup.replay.compile_grouping import compiled
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.sweep import compile_in_background
from streamgroup.study.sweep.compile_in_background import _not_marked, not_compiled
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

RUNS = [ReplayOptions(name, workers=4, arrivals="rate=100", join=("50%",)) for name in ("pkg", "kg", "sg")]


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trace]:
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_in_background, "_MANY", 0)
    yield open_trace(write_trace(tmp_path / "t", [(place, b"k%d" % (place % 7), None) for place in range(50)]))
    compiled.cache_clear()


def test_loops_are_compiled_by_others(trace: Trace) -> None:
    assert not_compiled(RUNS) == RUNS
    with compile_in_background.compile_ahead(trace, RUNS, 2):
        until = time.monotonic() + 600
        while len(not_compiled(RUNS)) == len(RUNS) and time.monotonic() < until:
            time.sleep(0.1)
    assert not_compiled(RUNS) == RUNS[:2], "the last is compiled first"


def test_what_was_compiled_ahead_takes_nobody(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others compile until all is, however often the runs end before."""
    taken = []

    def started(trace: Trace, runs: Sequence[ReplayOptions]) -> "subprocess.Popen[str]":
        taken.append([run.grouping for run in runs])
        return subprocess.Popen([sys.executable, "-c", ""], text=True)

    with compile_in_background.compile_ahead(trace, RUNS[1:], 2):
        until = time.monotonic() + 600
        while _not_marked(RUNS) != RUNS[:1] and time.monotonic() < until:
            time.sleep(0.1)
    monkeypatch.setattr(compile_in_background, "_start", started)
    with compile_in_background.compile_ahead(trace, RUNS, 4):
        pass
    with compile_in_background.compile_ahead(trace, RUNS[1:], 4):
        pass
    assert taken == [["pkg"]]


def test_runs_that_differ_in_numbers_are_compiled_once(trace: Trace) -> None:
    same = [dataclasses.replace(RUNS[0], workers=7, arrivals="rate=2.5", grouping=f"pkg:d={d}") for d in (2, 3)]
    other = dataclasses.replace(RUNS[0], service="1ms")
    assert _not_marked([*same, other]) == [same[0], other]


def test_few_tuples_or_threads_take_nobody(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(compile_in_background, "_start", fail)
    with compile_in_background.compile_ahead(trace, RUNS, 1), compile_in_background.compile_ahead(trace, RUNS, 4, 0):
        pass
    monkeypatch.setattr(compile_in_background, "_MANY", trace.tuples * len(RUNS))
    with compile_in_background.compile_ahead(trace, RUNS, 4):
        pass
    with pytest.raises(AssertionError), compile_in_background.compile_ahead(trace, RUNS, 4, trace.tuples * 4):
        pass
    monkeypatch.setattr(compile_in_background, "SMALL", trace.tuples - 1)
    # The one run of a large trace is compiled by who needs it.
    with compile_in_background.compile_ahead(trace, RUNS[:1], 4):
        pass
    with pytest.raises(AssertionError), compile_in_background.compile_ahead(trace, RUNS, 4):
        pass


def test_what_is_wrong_with_a_run_is_left_to_it(trace: Trace) -> None:
    assert not_compiled([ReplayOptions("nothing", 2), ReplayOptions("pkg:d=0", 2)]) == []
