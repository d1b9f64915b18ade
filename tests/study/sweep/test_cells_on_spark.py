"""Cells as tasks of Spark: what crosses, and what is told when an executor sees something else."""

import functools
import pickle
import shutil
from pathlib import Path

import pytest

import streamgroup
from streamgroup.groupings import kg
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study import replay_run as study
from streamgroup.study.sweep import cells_on_spark
from streamgroup.study.sweep.cell import Cell, CellOutcome, make_cell, run_cell
from streamgroup.traces.trace import open_trace
from tests.spark.session_on_cluster import Cluster
from tests.study.small_hand_written_traces import write_trace
from tests.study.sweep.run_cells_on_cluster import written

TIMES, KEYS = [i * 1500 for i in range(300)], [f"k{i * i % 17}" for i in range(300)]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "replay", functools.partial(replay, interpreted=True))
    cells_on_spark._opened.cache_clear()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "small.trace", TIMES, KEYS)


def crossed(cell: Cell, version: str = streamgroup.__version__, directory: str = "") -> CellOutcome:
    """Run a cell as a task does, and bring its outcome back."""
    here = cells_on_spark._Here(directory or str(Path.cwd()), version)
    packed = pickle.loads(pickle.dumps(cells_on_spark._in_task(here, pickle.loads(pickle.dumps(cell)))))
    return cells_on_spark._outcome(packed)


@pytest.mark.parametrize(
    "options",
    [
        ReplayOptions("pkg", 3),
        ReplayOptions("kg", 3, warmup="299", top_keys=0),
        ReplayOptions("pkg", 3, leave=("50%",)),
        ReplayOptions("kg", 3, key_cost="none.csv"),
    ],
)
def test_what_crosses_is_the_same(trace: Path, tmp_path: Path, options: ReplayOptions) -> None:
    cell = make_cell(open_trace(trace), options, baseline=bool(options.leave))
    found, wanted = crossed(cell), run_cell(cell)
    assert (wanted.error is None) == (options.key_cost is None)
    assert found.cell == cell
    assert written(found, tmp_path / "found") == written(wanted, tmp_path / "wanted")


def test_an_executor_that_sees_something_else_says_so(trace: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(Path(kg.__file__).read_text())
    cell = make_cell(open_trace(trace), ReplayOptions(str(mine), 3))
    assert crossed(cell).error is None
    assert f"has version {streamgroup.__version__} of streamgroup, not 0.0" in str(crossed(cell, "0.0").error)
    mine.write_text(mine.read_text() + "# Another.\n")
    assert "sees other contents in" in str(crossed(cell).error)
    cell = make_cell(open_trace(trace), ReplayOptions("kg", 3))
    shutil.rmtree(trace)
    cells_on_spark._opened.cache_clear()
    told = str(crossed(cell).error)
    assert f"does not see {trace} (name a trace by its URL, or put it at the same path on all machines" in told


def test_relative_paths_are_those_of_the_command(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cell = make_cell(open_trace("small.trace"), ReplayOptions("kg", 3))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert crossed(cell, directory=str(tmp_path)).error is None
    monkeypatch.chdir(tmp_path / "elsewhere")
    cells_on_spark._opened.cache_clear()
    assert "does not see small.trace" in str(crossed(cell, directory=str(tmp_path / "none")).error)


@pytest.mark.spark
def test_a_cluster_gives_the_same_as_this_process(trace: Path, tmp_path: Path, cluster: Cluster) -> None:
    """Relative to the command's directory, by executors whose cache of compiled code is empty at first."""
    answer = cluster.call("tests.study.sweep.run_cells_on_cluster:compare", trace.name, str(tmp_path))
    assert answer == {"cells": 8, "equal": 8, "failed": 1}
