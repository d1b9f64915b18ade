"""Cells run here and on a cluster of two executors, in the process of `tests.spark.session_on_cluster`."""

import contextlib
from pathlib import Path

from streamgroup.groupings import kg
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import Session
from streamgroup.study.replay_run import write_run
from streamgroup.study.sweep.cell import Cell, CellOutcome, make_cell, run_cell
from streamgroup.study.sweep.cells_on_spark import run_on_spark
from streamgroup.traces.trace import open_trace
from tests.spark.calls_on_cluster import shared

# In the run's record: what need not be the same.
OWN = ("timings", "host", "finished_at")


def cells_of(trace: str, folder: Path) -> list[Cell]:
    """Name some runs: one with a grouping from a file, one with a baseline, and one that fails."""
    mine = folder / "mine.py"
    mine.write_text(Path(kg.__file__).read_text())
    opened = open_trace(trace)
    plain = [ReplayOptions(grouping, workers) for grouping in ("kg", "pkg", str(mine)) for workers in (2, 5)]
    failing = ReplayOptions("kg", 3, key_cost=str(folder / "none.csv"))
    leaving = make_cell(opened, ReplayOptions("pkg", 3, leave=("50%",)), baseline=True)
    return [*(make_cell(opened, options) for options in (*plain, failing)), leaving]


def written(outcome: CellOutcome, folder: Path) -> dict[str, object]:
    """Give all that an outcome says, its tables as the files that they become."""
    record = {name: value for name, value in outcome.record.items() if name not in OWN}
    folder.mkdir()
    write_run(folder, outcome.tables, {})
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {"error": outcome.error, "row": outcome.row, "told": outcome.warnings, "record": record, "files": files}


def compare(session: Session, trace: str, place: str) -> dict[str, int]:
    """Run all cells twice and compare; return the numbers of cells, of those that are equal, and of those that failed.

    The trace is named relative to `place`, which becomes the current directory.
    """
    folder = Path(place)
    with contextlib.chdir(folder), shared(session):
        cells = cells_of(trace, folder)
        far = {outcome.cell.id: outcome for outcome in run_on_spark(cells, SparkOptions(master=session.master))}
        equal = [
            written(far[cell.id], folder / f"far-{cell.id}") == written(run_cell(cell), folder / f"near-{cell.id}")
            for cell in cells
        ]
    failed = [cell.id for cell in cells if far[cell.id].error is not None]
    return {"cells": len(cells), "equal": sum(equal), "failed": len(failed)}
