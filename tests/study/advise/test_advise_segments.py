"""Stretches of a trace, replayed apart and put together."""

import dataclasses
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import RunError, UsageError
from streamgroup.groupings import kg as kg_module
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import make_plan
from streamgroup.study.advise import measure_candidates
from streamgroup.study.advise.candidate_groupings import candidates
from streamgroup.study.advise.measure_candidates import SEGMENTS, Sample, measure, sample_of
from streamgroup.study.replay_run import run_to_directory
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    # A key with half of the first half, and another with half of the second.
    keys = [b"a" if i % 2 and i < 1000 else b"b" if i % 2 else b"k%d" % (i % 90) for i in range(2000)]
    return open_trace(write_trace(tmp_path / "t", [(i * 1000, key, None) for i, key in enumerate(keys)]))


@pytest.mark.parametrize(("tuples", "most"), [(1, 1), (1, 100), (4, 2), (100, 99), (100, 7), (1000, 100), (10**9, 5)])
def test_a_sample_covers_the_stream(tuples: int, most: int) -> None:
    found = sample_of(tuples, most)
    assert (found.segments[0][0], found.segments[-1][1]) == (0, tuples)
    assert found.whole == (found.segments == ((0, tuples),))
    assert all(first < end for first, end in found.segments)
    assert all(end <= begin for (_, end), (begin, _) in zip(found.segments, found.segments[1:], strict=False))
    assert found.tuples <= max(most, SEGMENTS) or found.whole


def test_a_whole_trace_is_what_replay_says(trace: Trace) -> None:
    options = ReplayOptions("pkg", 4, arrivals="utilization=0.8")
    (found,) = measure(trace, sample_of(2000, 2000), [options], 1)
    told = run_to_directory(trace.path, options).row
    assert found.row is not None
    for name in ("latency_p99_ms", "latency_mean_ms", "latency_max_ms", "peak_to_mean", "replicas"):
        assert getattr(found.row, name) == told[name]
    assert found.row.replication_factor == told["replication_factor"]
    assert found.row.state_entries_max == told["state_entries_max"]
    # In virtual time: 2000 tuples of 1 ms at 0.8 of 4 workers.
    assert found.row.worker_load_mean == pytest.approx(0.8)
    assert found.row.worker_load_max == pytest.approx(0.8 * told["peak_to_mean"])


def test_segments_are_pooled_and_the_worst_is_kept(trace: Trace) -> None:
    sample = Sample(((0, 400), (1600, 2000)), whole=False)
    options = ReplayOptions("kg", 8, arrivals="rate=6400")
    (both,) = measure(trace, sample, [options], 1)
    alone = [measure(trace, Sample((one,), whole=False), [options], 1)[0].row for one in sample.segments]
    assert both.row is not None
    assert alone[0] is not None
    assert alone[1] is not None
    # All keys but the hot ones are those of both segments.
    assert both.row.replicas == max(one.replicas for one in alone if one)
    assert both.row.replication_factor == 1
    assert both.row.latency_max_ms == max(one.latency_max_ms for one in alone if one)
    assert both.row.latency_p99_high_ms == max(one.latency_p99_high_ms for one in alone if one)
    assert both.row.latency_p99_low_ms == min(one.latency_p99_low_ms for one in alone if one)
    assert min(one.latency_p99_ms for one in alone if one) <= both.row.latency_p99_ms
    assert both.row.latency_p99_ms <= max(one.latency_p99_ms for one in alone if one)
    # Each segment has its hot key on a worker of its own, which the sum of both hides.
    assert both.row.peak_to_mean < both.row.peak_to_mean_low


def test_threads_change_nothing_and_errors_stay_with_their_grouping(trace: Trace) -> None:
    runs = [ReplayOptions(name, 4, arrivals="utilization=0.8") for name in ("kg", "nobody", "pkg", "sg")]
    one, three = (measure(trace, sample_of(2000, 500), runs, jobs) for jobs in (1, 3))
    assert one == three
    assert [found.row is None for found in one] == [False, True, False, False]
    assert "nobody" in (one[1].error or "")


def test_an_interrupt_does_not_wait_for_what_runs_to_end(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    def long(*_: Any, progress: Callable[[int], None], **__: Any) -> Outcome:
        for _chunk in range(500):
            time.sleep(0.01)
            progress(1)
        ended.append(True)
        raise RunError("it went on to its end")

    def first(given: Trace, options: ReplayOptions, **told: Any) -> Outcome:
        return replay(given, options, interpreted=True, **told) if options.grouping == "kg" else long(**told)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measure_candidates, "replay", first)
    runs = [ReplayOptions("kg", 3), ReplayOptions("pkg", 3)]
    with pytest.raises(KeyboardInterrupt):
        measure(trace, sample_of(2000, 2000), runs, 2, interrupt)
    assert not ended


def test_what_groupings_print_is_no_result(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(Path(kg_module.__file__).read_text(encoding="utf-8"))
    out, err, seen = io.StringIO(), io.StringIO(), []

    def watched(*_: Any, **__: Any) -> Outcome:
        seen.append(sys.stdout)
        raise UsageError("not run")

    monkeypatch.setattr(measure_candidates, "replay", watched)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    for text, place in ((str(mine), err), ("kg", out)):
        runs = [ReplayOptions(text, workers) for workers in (1, 2)]
        assert [one.error for one in measure(trace, sample_of(2000, 2000), runs, 2)] == ["not run"] * 2
        # Not by each thread for itself: the last would put back what another found turned away.
        assert [one is place for one in seen] == [True, True]
        assert sys.stdout is out
        seen.clear()


def test_groupings_that_are_asked_can_run_and_follow_what_differs(trace: Trace, tmp_path: Path) -> None:
    plain = ReplayOptions("kg", 4, arrivals="utilization=0.8")
    costly = open_trace(write_trace(tmp_path / "c", [(i * 1000, b"k%d" % (i % 9), 1.0 + i % 3) for i in range(90)]))
    even, slow = candidates(trace, plain), candidates(trace, dataclasses.replace(plain, slowdown="half:2"))
    assert candidates(costly, plain) == slow
    assert candidates(costly, dataclasses.replace(plain, service="1ms")) == even
    assert set(slow) - set(even) == {"posg", "consistent_grouping"}
    for name in slow:
        assert make_plan(trace, dataclasses.replace(plain, grouping=name)).selection.text


def test_one_instant_has_no_rate(tmp_path: Path) -> None:
    trace = open_trace(write_trace(tmp_path / "one", [(5, b"a", None)] * 6))
    (found,) = measure(trace, sample_of(6, 6), [ReplayOptions("sg", 2)], 1)
    assert found.row is not None
    assert (found.row.worker_load_max, found.row.keeps_up) == (None, True)
