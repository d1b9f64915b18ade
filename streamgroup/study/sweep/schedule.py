"""The tasks of a sweep: their order, and estimates of their memory and time."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from streamgroup.base.errors import StreamgroupError
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import make_plan
from streamgroup.replay.scenario.typed_keys import typed_keys
from streamgroup.study.dry_run import describe_plan
from streamgroup.study.rate_search import TYPICAL_TRIALS, is_searched
from streamgroup.study.replay_run import checked, without_changes
from streamgroup.study.run_cost import BASE_MB, CELL_S, START_S
from streamgroup.study.sweep.cell import Cell, make_cell, simulation_of
from streamgroup.study.sweep.estimate_seconds import loop_seconds
from streamgroup.traces.trace import Trace

__all__ = ["Task", "longest_first", "makespan", "open_traces", "plan_tasks", "with_keys_checked"]

# Chunks on their way through one more replay.
_CHUNKS_MB = 64
_MB = 1_000_000


@dataclass(frozen=True)
class Task:
    """A run to do: a cell, or a `hidden` one that only others compare with.

    `seconds` and `memory` (bytes, beyond the program's own) are estimates, `description` is that of `describe_plan`;
    `error` is set where the options cannot be simulated. `simulation` names what is simulated, `needs` that of the
    baseline which must be known before, None without one.
    """

    cell: Cell
    trace: Trace
    seconds: float
    memory: int
    description: Mapping[str, Any]
    error: StreamgroupError | None
    simulation: str
    needs: str | None
    hidden: bool = False


def open_traces(paths: Iterable[str]) -> dict[str, Trace]:
    """Open each trace once; UsageError or DataError for the first that cannot be replayed."""
    found: dict[str, Trace] = {}
    for path in paths:
        if path not in found:
            found[path], _ = checked(path, ReplayOptions("kg", 1), log=False)
    return found


def plan_tasks(cells: Sequence[Cell], traces: Mapping[str, Trace]) -> list[Task]:
    """Plan a task for each cell, in their order, and behind them the baselines that are not among the cells."""
    tasks = [_task(cell, traces[cell.trace]) for cell in cells]
    there = {task.simulation for task in tasks}
    for task in list(tasks):
        if task.needs is not None and task.needs not in there:
            there.add(task.needs)
            plain = without_changes(task.cell.options)
            tasks.append(_task(make_cell(task.trace, plain), task.trace, hidden=True))
    return tasks


def with_keys_checked(tasks: Iterable[Task]) -> list[Task]:
    """Set the `error` of tasks whose grouping refuses the keys of the trace, as their run would report it."""
    tasks = list(tasks)
    traces = {task.cell.trace: task.trace for task in tasks}

    @lru_cache(maxsize=1)
    def read(trace: str, kind: str) -> Keys:
        return typed_keys(traces[trace], kind)

    found = []
    for task in tasks:
        error, options = task.error, task.cell.options
        if error is None:

            def keys(kind: str = options.key_type, trace: str = task.cell.trace) -> Keys:
                return read(trace, kind)

            try:
                select(options.grouping).params.check_keys(keys, options.workers)
            except StreamgroupError as refused:
                error = refused
        found.append(replace(task, error=error))
    return found


def _task(cell: Cell, trace: Trace, *, hidden: bool = False) -> Task:
    description: Mapping[str, Any] = {}
    seconds, memory, error, needs = 0.0, 0, None, None
    options = cell.options
    try:
        plan = make_plan(trace, options)
        if cell.baseline:
            needs = simulation_of(trace, without_changes(options))
        description = describe_plan(trace, plan, baseline=cell.baseline)
        seconds = loop_seconds(plan, trace.tuples) * (1 + TYPICAL_TRIALS * is_searched(options))
        memory = round((description["memory_mb"] - BASE_MB + _CHUNKS_MB) * _MB)
    except StreamgroupError as found:
        error, needs = found, None
    return Task(cell, trace, seconds, memory, description, error, simulation_of(trace, options), needs, hidden)


def longest_first(tasks: Sequence[Task]) -> list[Task]:
    """Sort the longest first; a task that others wait for counts with the longest of those."""
    waiting: dict[str, float] = {}
    for task in tasks:
        if task.needs is not None:
            waiting[task.needs] = max(waiting.get(task.needs, 0.0), task.seconds)
    return sorted(tasks, key=lambda task: -(task.seconds + waiting.get(task.simulation, 0.0)))


def makespan(tasks: Sequence[Task], jobs: int) -> float:
    """Estimate the seconds until tasks are done that whichever job is free begins in the order of `longest_first`."""
    free = [START_S] * jobs
    for task in longest_first(tasks):
        heapq.heapreplace(free, free[0] + CELL_S + task.seconds)
    return max(free)
