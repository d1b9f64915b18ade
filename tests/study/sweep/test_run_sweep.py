"""Sweeps: the same tables whatever the jobs, resumed where they were left, and failures that stop nothing."""

import functools
import io
import json
import os
import sys
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, RunError, UsageError
from streamgroup.metrics.metric_names import METRICS
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study import replay_run as study
from streamgroup.study.read_run import TABLES
from streamgroup.study.replay_run import run_to_directory
from streamgroup.study.run_option_columns import OPTION_COLUMNS
from streamgroup.study.summary.load_runs import load_runs
from streamgroup.study.sweep import cells_in_threads, schedule
from streamgroup.study.sweep.cell import Cell, CellOutcome, run_cell
from streamgroup.study.sweep.cells_in_threads import run_tasks
from streamgroup.study.sweep.run_sweep import find_cells, run_sweep
from streamgroup.study.sweep.schedule import open_traces, plan_tasks
from tests.study.small_hand_written_traces import write_trace
from tests.study.sweep.make_cells import cell

KEYS = [f"k{i * i % 17}" for i in range(300)]


@pytest.fixture(autouse=True)
def _interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "compiled" not in request.fixturenames:
        monkeypatch.setattr(study, "replay", functools.partial(replay, interpreted=True))


@pytest.fixture
def compiled() -> None:
    """Ask for the compiled loop."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_trace(tmp_path_factory.mktemp("trace") / "small.trace", [i * 1500 for i in range(300)], KEYS))


def run_cells(cells: Sequence[Cell], *, jobs: int, **more: Any) -> Generator[CellOutcome]:
    return run_tasks(plan_tasks(cells, open_traces(one.trace for one in cells)), jobs, **more)


def sweep(cells: Sequence[Cell], output: Path, jobs: int = 2, note: Any = None) -> Any:
    traces = open_traces(one.trace for one in cells)

    def run(missing: Sequence[Cell]) -> Generator[CellOutcome]:
        return run_tasks(plan_tasks(missing, traces), jobs)

    return run_sweep(cells, output, traces, run, note)


def content(directory: Path) -> dict[str, bytes]:
    files = (path for path in sorted(directory.rglob("*")) if path.is_file() and path.name != "run.json")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def test_the_same_bytes_with_any_number_of_jobs_and_as_a_run(trace: str, tmp_path: Path, compiled: None) -> None:
    cells = [cell(trace, grouping, workers) for grouping in ("kg", "pkg", "sg") for workers in (2, 3)]
    cells += [cell(trace, "kg", n, baseline=True, leave=("50%",), arrivals="utilization=0.8") for n in (2, 3)]
    for jobs in (1, 2, 5):
        sweep(cells, tmp_path / str(jobs), jobs)
    one = content(tmp_path / "1")
    assert one == content(tmp_path / "2") == content(tmp_path / "5")
    assert {"sweep.json", "summary.parquet"} < set(one)
    for each in cells:
        run_to_directory(trace, each.options, tmp_path / each.id, baseline=each.baseline)
        made = tmp_path / "1" / "cells" / each.id
        assert content(tmp_path / each.id) == content(made)
        records = [json.loads((folder / "run.json").read_bytes()) for folder in (made, tmp_path / each.id)]
        for record in records:
            del record["timings"], record["finished_at"]
        assert records[0] == records[1]


def test_a_row_a_cell_in_the_order_asked(trace: str, tmp_path: Path) -> None:
    cells = [cell(trace, "kg", 1), cell(trace, "kg", 3, crash=("50%:2",)), cell(trace, "kg", 2, crash=("50%:2",))]
    found = sweep(cells, tmp_path / "out")
    frame = pl.read_parquet(tmp_path / "out" / "summary.parquet")
    assert frame.to_dicts() == found.rows
    assert frame.columns == [*OPTION_COLUMNS, "cell", "status", "error", *METRICS, "schema_version"]
    assert frame["cell"].to_list() == [one.id for one in cells]
    assert frame["status"].to_list() == ["ok", "ok", "failed"]
    assert frame["workers"].to_list() == [1, 3, 2]
    assert [error is None for error in frame["error"]] == [True, True, False]
    assert "worker 2" in frame["error"][2]
    assert frame["imbalance"][2] is None
    assert (found.ran, found.reused, found.failed) == (3, 0, 1)
    assert sorted(found.warnings) == sorted(one.id for one in cells[:2])
    assert not (tmp_path / "out" / "cells" / cells[2].id).exists()
    listed = json.loads((tmp_path / "out" / "sweep.json").read_bytes())["cells"]
    assert [one["id"] for one in listed] == [one.id for one in cells]
    assert listed[2]["options"]["crash"] == "50%:2"


def test_cells_of_other_code_are_noted(trace: str, tmp_path: Path) -> None:
    out, told = tmp_path / "out", list[str]()
    cells = [cell(trace, "kg", 1), cell(trace, "kg", 2)]
    sweep(cells, out)
    path = out / "cells" / cells[0].id / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "code": {**record["code"], "program": "0" * 16}}))
    assert sweep(cells, out, note=told.append).reused == 2
    assert told == ["2 reused, 0 to run; 1 of the reused was made by other code, --overwrite runs all again"]


def test_a_sweep_goes_on_where_it_was_left(trace: str, tmp_path: Path) -> None:
    out, told = tmp_path / "out", list[str]()
    first, second, third = (cell(trace, "kg", n) for n in (1, 2, 3))
    assert sweep([first, second], out, note=told.append).ran == 2
    before = {path: path.stat().st_mtime_ns for path in (out / "cells").rglob("*")}
    found = sweep([third, second], out, note=told.append)
    assert (found.ran, found.reused) == (1, 1)
    assert told == ["1 reused, 1 to run"]
    assert [row["workers"] for row in found.rows] == [3, 2]
    assert all(path.stat().st_mtime_ns == time for path, time in before.items() if path != out / "cells")
    assert sweep([first, second, third], out, note=told.append).ran == 0
    assert told[1:] == ["3 reused, 0 to run"]
    sweep([first, second, third], tmp_path / "at once")
    assert content(out) == content(tmp_path / "at once")


@pytest.mark.parametrize("harm", ["cut", "gone", "record", "version", "metric", "overwritten", "file", *TABLES])
def test_a_damaged_cell_is_run_again_and_said_so(trace: str, tmp_path: Path, harm: str) -> None:
    one, told = cell(trace), list[str]()
    out = tmp_path / "out"
    sweep([one], out)
    whole, place = content(out), out / "cells" / one.id
    if harm == "cut":
        os.truncate(place / "loads.parquet", 300)
    elif harm == "gone":
        (place / "keys.parquet").unlink()
    elif harm == "record":
        (place / "run.json").unlink()
    elif harm == "version":
        record = json.loads((place / "run.json").read_bytes())
        (place / "run.json").write_text(json.dumps({**record, "schema_version": 0}))
    elif harm == "metric":
        summary = pq.read_table(place / "summary.parquet", partitioning=None)
        pq.write_table(summary.drop_columns(["imbalance"]), place / "summary.parquet")
    elif harm in TABLES:
        # One bit, where the values are.
        flipped = bytearray((place / f"{harm}.parquet").read_bytes())
        flipped[12] ^= 1
        (place / f"{harm}.parquet").write_bytes(flipped)
    elif harm == "overwritten":
        bytes_there = (place / "windows.parquet").read_bytes()
        (place / "windows.parquet").write_bytes(bytes_there[:40] + b"\xff" * 200 + bytes_there[240:])
    else:
        for path in place.iterdir():
            path.unlink()
        place.rmdir()
        place.write_text("")
    assert sweep([one], out, note=told.append).ran == 1
    assert told == [f"0 reused, 1 to run (1 of them was damaged: {one.id})"]
    assert content(out) == whole


def test_a_failed_cell_is_tried_again(trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [cell(trace, "kg"), cell(trace, "pkg")]

    def fail_kg(trace: Any, options: ReplayOptions, **more: Any) -> Any:
        if options.grouping == "kg":
            raise MemoryError
        return replay(trace, options, interpreted=True, **more)

    with monkeypatch.context() as patch:
        patch.setattr(study, "replay", fail_kg)
        found = sweep(cells, tmp_path / "out")
    assert [(row["status"], row["error"]) for row in found.rows] == [("failed", "not enough memory"), ("ok", None)]
    again = sweep(cells, tmp_path / "out")
    assert (again.ran, again.reused, again.failed) == (1, 1, 0)


def test_a_baseline_is_run_once_and_not_at_all_if_it_is_there(
    trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, tuple[str, ...]]] = []

    def counted(trace: Any, options: ReplayOptions, **more: Any) -> Any:
        ran.append((options.grouping, options.leave))
        return replay(trace, options, interpreted=True, **more)

    monkeypatch.setattr(study, "replay", counted)
    changing = [cell(trace, "kg", baseline=True, leave=(when,)) for when in ("10%", "50%", "90%")]
    for jobs in (1, 3):
        ran.clear()
        found = sweep(changing, tmp_path / f"alone{jobs}", jobs)
        assert sorted(ran) == [("kg", ()), ("kg", ("10%",)), ("kg", ("50%",)), ("kg", ("90%",))]
        assert all(row["remapped_replicas"] > 0 for row in found.rows)
    ran.clear()
    with_plain = sweep([*changing, cell(trace, "kg")], tmp_path / "there", 1)
    assert len(ran) == 4
    assert with_plain.rows[:3] == found.rows
    # What is there from an earlier sweep does not say which worker held which key.
    ran.clear()
    sweep([cell(trace, "kg")], tmp_path / "later")
    found = sweep([cell(trace, "kg"), changing[0]], tmp_path / "later")
    assert ran == [("kg", ()), ("kg", ()), ("kg", ("10%",))]
    assert found.rows[1] == with_plain.rows[0]


def test_a_baseline_that_fails_is_told(trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_plain(trace: Any, options: ReplayOptions, **more: Any) -> Any:
        if not options.leave:
            raise RunError("no luck")
        return replay(trace, options, interpreted=True, **more)

    monkeypatch.setattr(study, "replay", fail_plain)
    [row] = sweep([cell(trace, "kg", baseline=True, leave=("50%",))], tmp_path / "out").rows
    assert row["error"] == "the run to compare with failed: no luck"


def test_pairs_of_a_baseline_are_kept_until_the_last_cell_has_them(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two baselines, each with three cells, one is kept at a time, and none at the end or in an outcome.

    One of them is itself a cell.
    """
    cells = [
        cell(trace, name, baseline=True, leave=(when,)) for name in ("kg", "pkg") for when in ("10%", "50%", "90%")
    ]
    cells.append(cell(trace, "kg"))
    tasks = plan_tasks(cells, open_traces([trace]))
    assert len(tasks) == len(cells) + 1
    pool = cells_in_threads._Pool(tasks, None)
    kept: list[int] = []

    def watched(one: Cell, **more: Any) -> CellOutcome:
        kept.append(len(pool._baselines))
        return run_cell(one, **more)

    monkeypatch.setattr(cells_in_threads, "run_cell", watched)
    pool.work()
    outcomes = [pool.ended.get() for _ in cells]
    assert all(isinstance(one, CellOutcome) and one.error is None and one.touched is None for one in outcomes)
    assert kept == [0, 1, 1, 1] * 2
    assert pool._baselines == {}


@pytest.mark.parametrize("kind", ["file", "run", "link"])
def test_what_is_no_sweep_is_not_touched(trace: str, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("mine")
    elif kind == "run":
        out.mkdir()
        (out / "run.json").write_text("{}")
    else:
        out.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="out exists"):
        sweep([cell(trace)], out)
    with pytest.raises(UsageError, match="out exists"):
        find_cells(out, [])


def test_traces_of_one_name_are_told_apart(trace: str, tmp_path: Path) -> None:
    other = str(write_trace(tmp_path / "small.trace", list(range(300)), KEYS[::-1]))
    cells = [cell(other, "kg"), cell(trace, "kg"), cell(trace, "kg", 2, crash=("50%:2",))]
    rows = sweep(cells, tmp_path / "out").rows
    marks = [open_traces([path])[path].fingerprint()[:8] for path in (other, trace, trace)]
    assert [row["trace"] for row in rows] == [f"small@{mark}" for mark in marks]
    assert load_runs([tmp_path / "out"], failed=True)["trace"].to_list() == [row["trace"] for row in rows]


def test_an_empty_directory_will_do(trace: str, tmp_path: Path) -> None:
    assert sweep([cell(trace)], tmp_path).ran == 1


def test_two_sweeps_do_not_write_to_one_directory(trace: str, tmp_path: Path) -> None:
    cells = [cell(trace, "kg", n) for n in (1, 2)]

    def run(missing: Sequence[Cell]) -> Generator[CellOutcome]:
        with pytest.raises(RunError, match="another sweep writes"):
            sweep(cells, tmp_path / "out")
        yield from run_cells(missing, jobs=1)

    assert run_sweep(cells, tmp_path / "out", open_traces([trace]), run).ran == 2
    assert sweep(cells, tmp_path / "out").reused == 2


def test_what_a_killed_sweep_began_goes(trace: str, tmp_path: Path) -> None:
    one = cell(trace)
    begun = tmp_path / "out" / "cells" / ".0123456789abcdef.partial-999999-1"
    begun.mkdir(parents=True)
    (tmp_path / "out" / "sweep.json").write_text("cut sho")
    sweep([one], tmp_path / "out")
    assert [path.name for path in (tmp_path / "out" / "cells").iterdir()] == [one.id]


def test_whoever_stops_early_leaves_what_has_ended(trace: str, tmp_path: Path) -> None:
    cells = [cell(trace, "kg", n) for n in (1, 2, 3)]

    def run(missing: Sequence[Cell]) -> Generator[CellOutcome]:
        outcomes = run_cells(missing, jobs=1)
        yield next(outcomes)
        outcomes.close()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(cells, tmp_path / "out", open_traces([trace]), run)
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 1
    assert not (tmp_path / "out" / "summary.parquet").exists()
    assert sweep(cells, tmp_path / "out").reused == 1


def test_threads_end_when_nobody_wants_more(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    ran: list[int] = []

    def slow(trace: Any, options: ReplayOptions, *, progress: Any, **more: Any) -> Any:
        ran.append(options.workers)
        if options.workers > 1:
            begun.set()
            go_on.wait(10)
            progress(1)
        return replay(trace, options, interpreted=True, **more)

    monkeypatch.setattr(study, "replay", slow)
    monkeypatch.setattr(schedule, "loop_seconds", lambda plan, tuples: -plan.options.workers)
    outcomes = run_cells([cell(trace, "kg", n) for n in (1, 2, 3)], jobs=1)
    assert next(outcomes).cell.options.workers == 1
    begun.wait(10)
    threading.Timer(0.2, go_on.set).start()
    outcomes.close()
    assert ran == [1, 2]
    assert not any(thread.name.startswith("streamgroup-cell") for thread in threading.enumerate())


def test_progress_counts_every_tuple(trace: str) -> None:
    told: list[int] = []
    outcomes = list(run_cells([cell(trace, "kg", n) for n in (1, 2, 3)], jobs=2, progress=told.append))
    assert sum(told) == 900
    assert all(outcome.error is None for outcome in outcomes)


def test_what_a_grouping_prints_is_no_result(trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.py"
    kg = Path(study.__file__).parents[1] / "groupings" / "kg.py"
    mine.write_text(
        kg.read_text().replace(
            "def start(", "def start(*args):\n    print('hello')\n    return _start(*args)\n\n\ndef _start("
        )
    )
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    found = list(run_cells([cell(trace, str(mine), n) for n in range(1, 9)], jobs=4))
    assert [outcome.error for outcome in found] == [None] * 8
    assert sys.stdout is out
    assert out.getvalue() == ""
    assert err.getvalue() == "hello\n" * 8


def test_a_trace_that_cannot_be_opened_stops_all(tmp_path: Path) -> None:
    empty = write_trace(tmp_path / "empty.trace", [], [])
    with pytest.raises(DataError, match="empty"):
        open_traces([str(empty)])
    with pytest.raises(UsageError, match="nosuch"):
        open_traces(["nosuch"])


def test_cells_with_an_application_have_results_and_are_reused(trace: str, tmp_path: Path) -> None:
    cells = [cell(trace, name, app="topk:k=2", aggregators=1) for name in ("kg", "sg")]
    sweep(cells, tmp_path / "sweep")
    found = [pl.read_parquet(tmp_path / "sweep" / "cells" / one.id / "results.parquet") for one in cells]
    assert found[0].height == 2
    assert found[0].equals(found[1])
    assert not find_cells(tmp_path / "sweep", cells).damaged
    assert len(find_cells(tmp_path / "sweep", cells).rows) == 2
