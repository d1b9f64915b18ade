"""Cells of a sweep in order: the longest first, and no more at once than memory holds."""

import threading
from typing import Any

import pytest

from streamgroup.study.run_cost import CELL_S, START_S
from streamgroup.study.sweep import cells_in_threads
from streamgroup.study.sweep.cell import CellOutcome
from streamgroup.study.sweep.cells_in_threads import at_once, run_tasks
from streamgroup.study.sweep.schedule import longest_first, makespan, open_traces, plan_tasks
from tests.study.small_hand_written_traces import write_trace
from tests.study.sweep.make_cells import cell

KEYS = [f"k{i * i % 17}" for i in range(300)]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_trace(tmp_path_factory.mktemp("trace") / "small.trace", [i * 1500 for i in range(300)], KEYS))


def test_the_longest_first_and_what_others_wait_for(trace: str) -> None:
    cells = [cell(trace, "kg", 2), cell(trace, "fish", 2), cell(trace, "d_choices", 2)]
    cells.append(cell(trace, "fish", 3, baseline=True, leave=("50%",)))
    planned = plan_tasks(cells, open_traces([trace]))
    assert [task.hidden for task in planned] == [False] * 4 + [True]
    order = [(task.cell.options.grouping, task.hidden) for task in longest_first(planned)]
    assert order == [("fish", True), ("fish", False), ("fish", False), ("d_choices", False), ("kg", False)]
    assert makespan(planned, 1) == pytest.approx(START_S + sum(CELL_S + task.seconds for task in planned))
    assert makespan(planned[:2], 2) == START_S + CELL_S + planned[1].seconds


def test_no_more_at_once_than_memory_holds(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan_tasks([cell(trace, "kg", n) for n in (1, 2, 3, 4)], open_traces([trace]))
    each = planned[0].memory
    for free, wanted in ((each * 10, 4), (each * 4, 2), (each, 1), (0, 1)):
        monkeypatch.setattr(cells_in_threads, "free_memory", lambda free=free: free)
        assert at_once(planned, 4) == wanted
        running, most = [0], [0]

        def watched(one: Any, running: list[int] = running, most: list[int] = most, **more: Any) -> CellOutcome:
            running[0] += 1
            most[0] = max(most[0], running[0])
            threading.Event().wait(0.02)
            running[0] -= 1
            return CellOutcome(one, "not run")

        monkeypatch.setattr(cells_in_threads, "run_cell", watched)
        assert len(list(run_tasks(planned, 4))) == 4
        assert most[0] == wanted
