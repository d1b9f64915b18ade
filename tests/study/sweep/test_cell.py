"""A cell: its name changes with all that its tables depend on, and with nothing else; what fails is told."""

import functools
import pickle
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study import replay_run as study
from streamgroup.study.replay_run import run_to_directory
from streamgroup.study.sweep import cell as cells
from streamgroup.study.sweep.cell import make_cell, run_cell, simulation_of
from streamgroup.traces.trace import open_trace
from tests.study.small_hand_written_traces import write_trace

KEYS = [f"k{i * i % 17}" for i in range(300)]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "replay", functools.partial(replay, interpreted=True))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trace(tmp_path_factory.mktemp("trace") / "small.trace", [i * 1500 for i in range(300)], KEYS)


def options(grouping: str = "pkg", workers: int = 3, **more: Any) -> ReplayOptions:
    return ReplayOptions(grouping=grouping, workers=workers, **more)


def test_a_cell_gives_what_the_run_gives(trace: Path) -> None:
    changed = options("pkg", leave=("50%",))
    made = make_cell(open_trace(trace), changed, baseline=True)
    outcome = pickle.loads(pickle.dumps(run_cell(made)))
    wanted = run_to_directory(trace, changed, baseline=True)
    assert (outcome.cell, outcome.error, outcome.row, outcome.warnings) == (made, None, wanted.row, wanted.warnings)
    assert outcome.tables == wanted.tables
    assert outcome.record["options"] == wanted.record["options"]
    assert 0 < outcome.loop_seconds < outcome.seconds
    # Pairs of the baseline that are known are not made again.
    assert outcome.touched is None
    kept = run_cell(made, keep=True).touched
    assert kept is not None
    row = run_cell(made, baseline=kept).row
    assert row is not None
    assert row["remapped_replicas"] == 0


def test_the_same_run_has_the_same_name(trace: Path) -> None:
    opened = open_trace(trace)
    one = make_cell(opened, options("greedy_d:d=3"))
    assert one.id == make_cell(open_trace(trace), options("greedy_d:d= 3")).id
    assert make_cell(opened, options("greedy_d:d=2")).id == make_cell(opened, options("greedy_d")).id


def test_whatever_changes_a_table_changes_the_name(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_trace(trace)
    file, mine, cost, hot = (tmp_path / name for name in ("cluster.toml", "mine.py", "cost.csv", "hot"))
    kg = Path(study.__file__).parents[1] / "groupings" / "kg.py"
    file.write_text("service = '2ms'\n")
    mine.write_text(kg.read_text())
    cost.write_text("key,cost\n")
    hot.write_text("k1\n")
    outside, capacity, keyed = options(str(mine)), options(capacity=str(file)), options(key_cost=str(cost))
    salted = options(f"salted:keys={hot}")
    names = [make_cell(opened, one).id for one in (outside, capacity, keyed, salted, options(), options(seed=1))]
    names.append(make_cell(opened, options(leave=("50%",))).id)
    names.append(make_cell(opened, options(leave=("50%",)), baseline=True).id)
    file.write_text("service = '3ms'\n")
    mine.write_text(kg.read_text() + "\n")
    cost.write_text("key,cost\nk1,1\n")
    hot.write_text("k4\n")
    names += [make_cell(opened, one).id for one in (outside, capacity, keyed, salted)]
    other = write_trace(tmp_path / "small.trace", [i * 1500 for i in range(300)], KEYS[::-1])
    names.append(make_cell(open_trace(other), options()).id)
    monkeypatch.setattr(cells, "SCHEMA_VERSION", 2)
    names.append(make_cell(opened, options()).id)
    assert len(set(names)) == len(names)


def test_a_simulation_is_the_same_whatever_its_capacity_file_is_called(trace: Path, tmp_path: Path) -> None:
    opened = open_trace(trace)
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text("service = '2ms'\n")
    one, two = (options(capacity=str(tmp_path / name)) for name in ("a.toml", "b.toml"))
    assert simulation_of(opened, one) == simulation_of(opened, two) == simulation_of(opened, options(service="2ms"))
    assert make_cell(opened, one).id != make_cell(opened, two).id


def test_what_is_wrong_in_itself_is_no_cell(trace: Path, tmp_path: Path) -> None:
    for one in (options("pgk"), options("greedy_d:d=0"), options(capacity=str(tmp_path / "none.toml"))):
        with pytest.raises(UsageError):
            make_cell(open_trace(trace), one)


def test_what_fails_in_a_run_is_told(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_cell(open_trace(trace), options(crash=("50%:7",)))
    outcome = run_cell(made)
    assert (outcome.cell, outcome.row, outcome.tables) == (made, None, {})
    assert outcome.error is not None
    assert "worker 7" in outcome.error

    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("of\nall")

    monkeypatch.setattr(study, "replay", fail)
    assert run_cell(made, trace=open_trace(trace)).error == "ZeroDivisionError: of all"
