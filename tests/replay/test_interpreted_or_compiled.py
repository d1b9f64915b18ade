"""Interpreted while nothing is compiled: the same bytes, and no call of the compiler."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from streamgroup.base.compiling.plain_python_kinds import NotPlainError
from streamgroup.replay import interpreted_or_compiled
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.interpreted_or_compiled import Tiers
from streamgroup.replay.scenario.grouping_selection import family
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

PROGRAM = """
import json, sys, warnings
from numba.core import event
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.replay_trace import replay
from streamgroup.traces.trace import open_trace

class Compilations(event.Listener):
    def __init__(self):
        self.names = set()
    def on_start(self, event):
        self.names.add(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass

seen = Compilations()
event.register("numba:compile", seen)
trace = open_trace(sys.argv[1])
found = {}
for given in json.loads(sys.argv[2]):
    seen.names.clear()
    outcome = replay(trace, ReplayOptions(**given))
    assert outcome.interpreted_seconds > 0
    found[json.dumps(given)] = sorted(seen.names)
print(json.dumps(found))
"""
CHANGES: dict[str, Any] = {"leave": ["60%"], "join": ["30%"]}
QUEUES: dict[str, Any] = {"queue_capacity": 3, "when_full": "drop"}
# Options of which each brings code of its own.
EXTRAS: dict[str, dict[str, Any]] = {
    "open": {"aggregate_every": "5ms", "service_distribution": "exponential", "speed_jitter": "0.3:500"},
    "workers change": CHANGES,
    "crash": {"crash": ["40%"], "redeliver": True},
    "queues": QUEUES,
    "merging": {"aggregators": 3, "aggregator_service": "9us:exponential", "aggregate_every": "7ms", "app": "count"},
    "sources": {"source_service": "9us:exponential", "combine": "10"},
    "state": {"state_cost": "1/100", "memory_limit": "20:2", "aggregate_every": "7ms"},
    "merged state": {"combine": "10", "state_cost": "1/100", "aggregate_every": "7ms"},
    "closed": {"arrivals": "saturate", "max_pending": 5, "queue_capacity": 2},
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rng = np.random.default_rng(7)
    keys = rng.zipf(1.2, 9000) % 500
    times = np.cumsum(rng.integers(0, 60, 9000))
    tuples = [(int(time), b"%d" % key, None) for time, key in zip(times, keys, strict=True)]
    return open_trace(write_trace(tmp_path_factory.mktemp("interpreted_or_compiled") / "t", tuples, parts=2))


def options(name: str, **extras: Any) -> dict[str, Any]:
    return {"grouping": name, "workers": 9, "sources": 3, "arrivals": "utilization=1.1", "service": "90us", **extras}


def compiled_by(trace: Trace, runs: list[dict[str, Any]], cache: Path) -> dict[str, list[str]]:
    env = {**os.environ, "STREAMGROUP_CACHE_DIR": str(cache)}
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(trace.path), json.dumps(runs)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_nothing_is_compiled_for_a_small_trace(trace: Trace, tmp_path: Path) -> None:
    runs = [options(name) for name in family()]
    found = compiled_by(trace, runs, tmp_path)
    assert len(found) == len(runs)
    assert not any(found.values()), {run: names for run, names in found.items() if names}


@pytest.mark.slow
def test_nothing_is_compiled_for_the_extras(trace: Trace, tmp_path: Path) -> None:
    runs = [options(name, **extra) for extra in EXTRAS.values() for name in ("pkg", "d_choices")]
    found = compiled_by(trace, runs, tmp_path)
    assert not any(found.values()), {run: names for run, names in found.items() if names}


def compiled_from(tuples: int, each: float, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """Return the number of the tuple from which on a run is compiled if interpreting takes so many seconds a tuple."""
    clock = [0.0]
    monkeypatch.setattr(interpreted_or_compiled.time, "thread_time", lambda: clock[0])
    tiers = Tiers(tuples, interpreted=None)
    tiers.used_plain = True
    blank = np.zeros(tuples, dtype=np.int64)
    ready = Ready(0, blank, blank.astype(np.uint32), None, None, 0, blank[:0], blank[:0])
    for piece in tiers.pieces(ready, 0):
        if tiers._always:
            return piece.offset
        clock[0] += each * len(piece.key)
    return None


def test_a_run_that_takes_longer_than_compiling_is_compiled_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of 10 us a tuple compiling takes 3 s and the time of 350,000 tuples, 6.5 s.
    assert compiled_from(640_000, 10e-6, monkeypatch) is None
    interpreted_or_compiled._SPENT.clear()
    assert compiled_from(660_000, 10e-6, monkeypatch) == 3 * interpreted_or_compiled._FIRST


def test_several_runs_are_compiled_when_they_take_twice_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each takes 4 s.
    found = [compiled_from(400_000, 10e-6, monkeypatch) for _ in range(4)]
    assert found[:3] == [None] * 3
    assert found[3] is not None


class Cells(NamedTuple):
    value: Any


class Span(NamedTuple):
    begin: int
    end: int


def add(cells: Any, span: Any) -> Any:
    cells.value[span.begin] += span.end
    return cells.value[span.begin]


def test_the_view_of_a_state_is_kept_while_spans_come_and_go() -> None:
    rewritten, cells = interpreted_or_compiled._Rewritten(add), Cells(np.zeros(3, dtype=np.int64))
    spans = [Span(place % 3, place) for place in range(3 * interpreted_or_compiled._KEPT)]
    bound = [rewritten.bind((cells, span)) for span in spans]
    assert all(views[0] is bound[0][1][0] for _, views in bound)
    assert [run(*views) for run, views in bound[:6]] == [0, 1, 2, 3, 5, 7]
    assert cells.value.tolist() == [3, 5, 7]
    # Words are not added to signed numbers: it is looked at anew.
    with pytest.raises(NotPlainError):
        rewritten.bind((Cells(np.zeros(3, dtype=np.uint64)), spans[0]))
