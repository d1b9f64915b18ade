"""Plans a sweep from what is given, and runs it in threads or on Spark."""

import contextlib
import dataclasses
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from streamgroup.base.errors import UsageError
from streamgroup.base.memory import release_memory
from streamgroup.base.progress import Silent, Watcher
from streamgroup.base.storage.storage_path import locate
from streamgroup.spark.options import SparkOptions, checked
from streamgroup.study.rate_search import TYPICAL_TRIALS, is_searched
from streamgroup.study.sweep.cell import Cell, CellOutcome
from streamgroup.study.sweep.cells_in_threads import at_once, default_jobs, run_tasks
from streamgroup.study.sweep.cells_of_spec import cells_of, groupings_without_draws
from streamgroup.study.sweep.run_sweep import Runner, SweepResult, find_cells, run_sweep
from streamgroup.study.sweep.schedule import Task, longest_first, open_traces, plan_tasks
from streamgroup.study.sweep.sweep_spec import make_spec, read_file
from streamgroup.study.sweep.synth_traces import synth_traces
from streamgroup.traces.trace import Trace

__all__ = ["PlannedSweep", "plan_sweep", "run_planned", "spark_of"]


@dataclass(frozen=True)
class PlannedSweep:
    """The cells of a sweep, its open traces by path, rows of cells that `output` holds already, and notes on these."""

    cells: list[Cell]
    traces: dict[str, Trace]
    output: Path
    overwrite: bool
    reused: Mapping[str, Mapping[str, Any]]
    notes: list[str]


def plan_sweep(
    inputs: Sequence[str],
    given: Mapping[str, Any],
    output: Path,
    *,
    overwrite: bool = False,
    progress: Watcher | None = None,
) -> PlannedSweep:
    """Plan a sweep of traces, or of a file that says what to run, among `inputs`.

    `given` are the values of options by name; they win over the file's. Nothing is written but the traces of `synth`.
    UsageError for what is wrong in itself, where no cell can be run, and for an `output` that is no sweep; DataError
    for a trace that is not sound.
    """
    spec = make_spec(_merged(inputs, given))
    if spec.synth:
        find_cells(output, [])
        made = synth_traces(spec.synth, output, progress or Silent())
        spec = dataclasses.replace(spec, traces=(*spec.traces, *made))
    traces = open_traces(spec.traces)
    cells, again = cells_of(spec, traces)
    notes = []
    if again:
        notes.append(f"note: {again} of {len(cells) + again} combinations are the same as others, and count once")
    if fixed := groupings_without_draws(spec, cells):
        notes.append(f"note: nothing is drawn for {', '.join(fixed)}: one run, not one for each seed")
    reused = find_cells(output, [] if overwrite else cells).rows
    if not reused:
        _check(plan_tasks(cells, traces))
    return PlannedSweep(cells, traces, output, overwrite, reused, notes)


def run_planned(
    planned: PlannedSweep,
    *,
    jobs: int | None = None,
    spark: SparkOptions | None = None,
    progress: Watcher | None = None,
) -> SweepResult:
    """Run what is planned, in so many threads (None: as many as there are cores), or on Spark; see `run_sweep`.

    `progress` receives tuples, and notes on how it is run.
    """
    progress = progress or Silent()
    if spark is None:
        runner: Runner = partial(_in_threads, planned.traces, jobs or default_jobs(), progress)
    else:
        runner = partial(_on_spark, planned.traces, spark, progress)
    try:
        return run_sweep(
            planned.cells, planned.output, planned.traces, runner, progress.note, overwrite=planned.overwrite
        )
    finally:
        release_memory()


def spark_of(given: Mapping[str, Any], jobs: int | None) -> SparkOptions | None:
    """Check how Spark is to be started, None if it is not; UsageError for options that mean nothing then."""
    if given.get("master") is None and given.get("remote") is None:
        if given.get("spark_conf"):
            raise UsageError("--spark-conf is for Spark, and there is no --master", "add --master, or leave it out")
        return None
    if jobs is not None:
        flag = "--remote" if given.get("master") is None else "--master"
        raise UsageError(
            f"--jobs is for threads, and {flag} runs the cells on Spark", "its executors' cores say how many at once"
        )
    return checked(SparkOptions, given)


def _merged(inputs: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Put what is given over the values of the file among the inputs; the other inputs are traces."""

    def is_spec(text: str) -> bool:
        return text.endswith(".toml") and locate(text).is_local and not Path(text).is_dir()

    files = [Path(text) for text in inputs if is_spec(text)]
    traces = [locate(text).reference for text in inputs if not is_spec(text)]
    if len(files) > 1:
        raise UsageError(f"{len(files)} files say what to run", "name one of them")
    said = read_file(files[0]) if files else {}
    if traces:
        said["traces"] = traces
    if "seed" in given and "seeds" not in given:
        said.pop("seeds", None)
    if "seeds" in given and "seed" not in given:
        said.pop("seed", None)
    return {**said, **given}


def _check(tasks: Sequence[Task]) -> None:
    """Refuse a sweep of which no cell can be run: its options are wrong, not a cell."""
    errors = [task.error for task in tasks if not task.hidden]
    first = errors[0] if errors else None
    if isinstance(first, UsageError) and all(isinstance(error, UsageError) for error in errors):
        raise first


def _in_threads(
    traces: Mapping[str, Trace], jobs: int, progress: Watcher, cells: Sequence[Cell]
) -> Generator[CellOutcome]:
    tasks = plan_tasks(cells, traces)
    together = at_once(tasks, jobs) if tasks else jobs
    if together < min(jobs, len(tasks)):
        progress.note(f"note: memory holds {together} of these cells at once")
    # After all notes: the bar is to be the last line.
    progress.start(_tuples(tasks), f"0/{len(cells)} cells")
    with contextlib.closing(run_tasks(tasks, jobs, progress=progress.advance)) as outcomes:
        for ended, outcome in enumerate(outcomes, 1):
            progress.describe(f"{ended}/{len(cells)} cells")
            yield outcome


def _on_spark(
    traces: Mapping[str, Trace],
    spark: SparkOptions,
    progress: Watcher,
    cells: Sequence[Cell],
) -> Generator[CellOutcome]:
    # It imports Spark.
    from streamgroup.study.sweep.cells_on_spark import run_on_spark

    tasks = [task for task in longest_first(plan_tasks(cells, traces)) if not task.hidden]
    ordered = [task.cell for task in tasks]
    progress.start(_tuples(tasks), f"0/{len(cells)} cells")
    with contextlib.closing(run_on_spark(ordered, spark, progress.note)) as outcomes:
        for ended, outcome in enumerate(outcomes, 1):
            progress.describe(f"{ended}/{len(cells)} cells")
            progress.advance(0 if outcome.error else traces[outcome.cell.trace].tuples)
            yield outcome


def _tuples(tasks: Sequence[Task]) -> int:
    """Estimate the tuples that tasks replay; a search replays a trace several times."""
    return sum(
        task.trace.tuples * (1 + TYPICAL_TRIALS * is_searched(task.cell.options))
        for task in tasks
        if task.error is None
    )
