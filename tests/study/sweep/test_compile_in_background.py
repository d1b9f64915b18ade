"""Processes that compile ahead leave code on disk, and end with whoever started them."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgroup.replay.compile_grouping import compiled
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.sweep import compile_in_background
from streamgroup.study.sweep.compile_in_background import not_compiled
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


def test_few_tuples_or_one_loop_take_nobody(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(compile_in_background, "_start", fail)
    with compile_in_background.compile_ahead(trace, RUNS[:1], 4), compile_in_background.compile_ahead(trace, RUNS, 1):
        pass
    monkeypatch.setattr(compile_in_background, "_MANY", trace.tuples * len(RUNS))
    with compile_in_background.compile_ahead(trace, RUNS, 4):
        pass
    monkeypatch.setattr(compile_in_background, "SMALL", trace.tuples - 1)
    with pytest.raises(AssertionError), compile_in_background.compile_ahead(trace, RUNS, 4):
        pass


def test_what_is_wrong_with_a_run_is_left_to_it(trace: Trace) -> None:
    assert not_compiled([ReplayOptions("nothing", 2), ReplayOptions("pkg:d=0", 2)]) == []
