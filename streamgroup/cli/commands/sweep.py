"""The `sweep` command: replays all combinations of lists of options."""

import contextlib
import dataclasses
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgroup.base.errors import RunError, UsageError
from streamgroup.cli.command import utf8_path
from streamgroup.cli.console import Bar, Console
from streamgroup.cli.plugins import complete_grouping
from streamgroup.cli.replay_flags import DEFAULTS, REPEATED, Simulation

if TYPE_CHECKING:
    from streamgroup.spark.options import SparkOptions
    from streamgroup.study.sweep.cell import Cell, CellOutcome
    from streamgroup.study.sweep.run import SweepResult
    from streamgroup.study.sweep.schedule import Task
    from streamgroup.traces.trace import Trace

__all__ = ["Options", "run"]

# What people see of each cell; a mean never without its maximum.
_SHOWN = (
    "trace", "grouping", "workers", "peak_to_mean", "imbalance", "replication_factor", "throughput_tps",
    "latency_p50_ms", "latency_p99_ms", "latency_max_ms",
)  # fmt: skip
_MOST_WARNINGS = 8
_MB = 1e6


@dataclass(frozen=True, kw_only=True)
class Options(Simulation):
    """The flags of `sweep`."""

    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC.toml|TRACE...", help="A file that says what to run, or traces (URLs, too).",
            show_default=False, callback=utf8_path,
        ),
    ]  # fmt: skip
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="SWEEP", show_default=False, callback=utf8_path,
            help="Directory of the sweep; an existing one is resumed.",
        ),
    ]  # fmt: skip
    grouping: Annotated[
        list[str],
        typer.Option(
            "--grouping", "-g", metavar="GROUPING", autocompletion=complete_grouping, show_default=False,
            help="A grouping; its parameters may have lists and ranges, as in fish:alpha=0,0.2,epoch=1000..3000..500. "
            "Can be repeated.",
        ),
    ] = ()  # type: ignore[assignment]  # fmt: skip
    workers: Annotated[
        list[str],
        typer.Option(
            "--workers", "-n", metavar="N,...", show_default=False, help="Numbers of workers: 16,32 or 8..64..8."
        ),
    ] = ()  # type: ignore[assignment]
    sources: Annotated[list[str], typer.Option("--sources", metavar="S,...", help="Numbers of sources.")] = (
        str(DEFAULTS.sources),
    )  # type: ignore[assignment]
    arrivals: Annotated[
        list[str],
        typer.Option(
            "--arrivals", metavar="KIND,...",
            help="trace, rate=R, poisson=R, utilization=RHO, poisson-utilization=RHO or saturate. Can be repeated.",
        ),
    ] = (DEFAULTS.arrivals,)  # type: ignore[assignment]  # fmt: skip
    capacity: Annotated[
        list[str], typer.Option("--capacity", metavar="FILE", help="A capacity model (TOML). Can be repeated.")
    ] = ()  # type: ignore[assignment]
    seed: Annotated[
        list[str], typer.Option("--seed", metavar="S,...", help="Replicates, as in replay: 1,2 or 0..9.")
    ] = (str(DEFAULTS.seed),)  # type: ignore[assignment]
    seeds: Annotated[
        int | None, typer.Option("--seeds", metavar="K", help="So many replicates: seeds from 0 on, instead of --seed.")
    ] = None
    baseline: Annotated[
        bool,
        typer.Option("--baseline", help="Also run each without workers that join, leave or crash: remapped_replicas."),
    ] = False
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing sweep, instead of resuming it.")
    ] = False
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Cells at once (default: as many as there are cores).")
    ] = None
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="Run the cells as tasks of this Spark cluster.")
    ] = None
    remote: Annotated[
        str | None,
        typer.Option("--remote", metavar="URL", help="Run the cells on this Spark Connect server: sc://HOST:PORT."),
    ] = None
    spark_conf: Annotated[
        list[str],
        typer.Option(
            "--spark-conf", metavar="K=V", help="A setting of Spark's (with --master or --remote); repeatable."
        ),
    ] = ()  # type: ignore[assignment]
    driver_memory: Annotated[
        str | None,
        typer.Option(
            "--driver-memory", metavar="SIZE", show_default=False,
            help="Heap of Spark's driver (with --master; default: 2g).",
        ),
    ] = None  # fmt: skip
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, list the cells with estimates, and stop.")
    ] = False


def run(console: Console, options: Options) -> None:
    """Replay every combination of traces, groupings and options, and keep each as a run in one directory.

    A cell that fails is a row with its error; the others continue, and the exit code is 1. Run again, it resumes where
    it was stopped.
    """
    from streamgroup.study.sweep.run import find_cells, run_sweep
    from streamgroup.study.sweep.schedule import open_traces, plan_tasks, with_keys_checked
    from streamgroup.study.sweep.spec import cells_of, groupings_without_draws, make_spec
    from streamgroup.study.sweep.threads import default_jobs

    spark = _spark(options)
    spec = make_spec(_given(console, options))
    traces = open_traces(spec.traces)
    cells, again = cells_of(spec, traces)
    if again:
        console.note(f"note: {again} of {len(cells) + again} combinations are the same as others, and count once")
    if fixed := groupings_without_draws(spec, cells):
        console.note(f"note: nothing is drawn for {', '.join(fixed)}: one run, not one for each seed")
    found = find_cells(options.output, [] if options.overwrite else cells)
    tasks = plan_tasks([cell for cell in cells if cell.id not in found.rows], traces)
    if not found.rows:
        _check(tasks)
    jobs = options.jobs or default_jobs()
    if options.dry_run:
        _print_plan(console, cells, found.rows, with_keys_checked(plan_tasks(cells, traces)), jobs)
        return
    try:
        with console.bar("tuples") as bar:
            runner = _on_spark(console, spark, bar, traces) if spark else _in_threads(console, jobs, bar, traces)
            result = run_sweep(cells, options.output, traces, runner, console.note, overwrite=options.overwrite)
            seconds = bar.seconds
    except KeyboardInterrupt:
        if options.output.is_dir():
            console.note(f"stopped: the same command resumes from the cells in {options.output}")
        raise
    _finish(console, result, f"{result.ran} cells in {seconds:.1f} s")
    console.note(f"wrote {options.output}")
    if result.failed:
        raise RunError(
            f"{result.failed} of {len(cells)} cells failed", "column error says why; run it again to try only those"
        )


def _spark(options: Options) -> "SparkOptions | None":
    """Check how Spark is to be started, if it is; UsageError for flags that mean nothing then."""
    if options.master is None and options.remote is None:
        if options.spark_conf:
            raise UsageError("--spark-conf is for Spark, and there is no --master", "add --master, or leave it out")
        return None
    if options.jobs is not None:
        flag = "--remote" if options.master is None else "--master"
        raise UsageError(
            f"--jobs is for threads, and {flag} runs the cells on Spark", "its executors' cores say how many at once"
        )
    from streamgroup.spark.options import SparkOptions, checked

    asked = {name: getattr(options, name) for name in SparkOptions.model_fields}
    return checked(SparkOptions, {name: value for name, value in asked.items() if value is not None})


def _given(console: Console, options: Options) -> dict[str, Any]:
    """Merge flags over the values of the file."""
    from streamgroup.base.storage.places import locate
    from streamgroup.study.sweep.spec import read_file

    def is_spec(text: str) -> bool:
        return text.endswith(".toml") and locate(text).is_local and not Path(text).is_dir()

    flags = {
        name: value
        for field in dataclasses.fields(options)
        if (name := field.name) in console.asked and (value := getattr(options, name)) is not None
    }
    for name in REPEATED:
        if name in flags:
            flags[name] = tuple(flags[name])
    if "grouping" in flags:
        flags["groupings"] = flags.pop("grouping")
    files = [Path(text) for text in options.inputs if is_spec(text)]
    traces = [locate(text).reference for text in options.inputs if not is_spec(text)]
    if len(files) > 1:
        raise UsageError(f"{len(files)} files say what to run", "name one of them")
    said = read_file(files[0]) if files else {}
    if traces:
        flags["traces"] = traces
    if "seed" in flags and "seeds" not in flags:
        said.pop("seeds", None)
    if "seeds" in flags and "seed" not in flags:
        said.pop("seed", None)
    return {**said, **flags}


def _check(tasks: Sequence["Task"]) -> None:
    """Refuse a sweep of which no cell can be run: its options are wrong, not a cell."""
    errors = [task.error for task in tasks if not task.hidden]
    first = errors[0] if errors else None
    if isinstance(first, UsageError) and all(isinstance(error, UsageError) for error in errors):
        raise first


def _print_plan(
    console: Console, cells: Sequence["Cell"], reused: Mapping[str, Any], tasks: Sequence["Task"], jobs: int
) -> None:
    from streamgroup.study.sweep.schedule import makespan
    from streamgroup.study.sweep.threads import at_once

    rows = []
    for task in tasks:
        if task.hidden:
            continue
        chosen = task.cell.options
        status = "reused" if task.cell.id in reused else "to run" if task.error is None else "fails"
        rows.append({
            "trace": task.trace.name, "grouping": task.description.get("grouping", chosen.grouping),
            "workers": chosen.workers, "sources": chosen.sources,
            "arrivals": chosen.arrivals, "capacity": chosen.capacity, "seed": chosen.seed,
            "tuples": task.trace.tuples, "memory_mb": task.memory / _MB, "time_s": task.seconds, "status": status,
            "error": None if task.error is None else task.error.message, "cell": task.cell.id,
        })  # fmt: skip
    left = [task for task in tasks if task.hidden or task.cell.id not in reused]
    together = at_once(left, jobs) if left else jobs
    console.note(
        f"{len(cells)} cells, {len(reused)} reused, {len(cells) - len(reused)} to run: "
        f"about {makespan(left, together):.3g} s with {together} at once"
    )
    people = console.form in ("table", "markdown")
    kept = [name for name in rows[0] if not people or name in ("trace", "grouping", "workers") or _varies(rows, name)]
    console.rows(rows, [name for name in kept if not people or name != "cell"])
    if lost := sum(row["status"] == "fails" for row in rows):
        raise RunError(f"{lost} of {len(rows)} cells would fail", "column error says why")


def _varies(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return name in ("tuples", "time_s", "memory_mb", "status") or len({row[name] for row in rows}) > 1


def _in_threads(console: Console, jobs: int, bar: Bar, traces: Mapping[str, "Trace"]) -> Any:
    from streamgroup.study.sweep.schedule import plan_tasks
    from streamgroup.study.sweep.threads import at_once, run_tasks

    def run_them(cells: Sequence["Cell"], known: Mapping[str, int]) -> Generator["CellOutcome"]:
        tasks = plan_tasks(cells, traces, known)
        together = at_once(tasks, jobs) if tasks else jobs
        if together < min(jobs, len(tasks)):
            console.note(f"note: memory holds {together} of these cells at once")
        # After all notes: the bar is to be the last line.
        bar.start(_tuples(tasks), f"0/{len(cells)} cells")
        with contextlib.closing(run_tasks(tasks, jobs, known=known, progress=bar.advance)) as outcomes:
            for ended, outcome in enumerate(outcomes, 1):
                bar.describe(f"{ended}/{len(cells)} cells")
                yield outcome

    return run_them


def _tuples(tasks: Sequence["Task"]) -> int:
    return sum(task.trace.tuples for task in tasks if task.error is None)


def _on_spark(console: Console, spark: "SparkOptions", bar: Bar, traces: Mapping[str, "Trace"]) -> Any:
    from streamgroup.study.sweep.on_spark import run_on_spark
    from streamgroup.study.sweep.schedule import longest_first, plan_tasks

    def run_them(cells: Sequence["Cell"], known: Mapping[str, int]) -> Generator["CellOutcome"]:
        tasks = [task for task in longest_first(plan_tasks(cells, traces, known)) if not task.hidden]
        ordered = [task.cell for task in tasks]
        bar.start(_tuples(tasks), f"0/{len(cells)} cells")
        with contextlib.closing(run_on_spark(ordered, spark, console.note)) as outcomes:
            for ended, outcome in enumerate(outcomes, 1):
                bar.describe(f"{ended}/{len(cells)} cells")
                bar.advance(0 if outcome.error else traces[outcome.cell.trace].tuples)
                yield outcome

    return run_them


def _finish(console: Console, result: "SweepResult", done: str) -> None:
    rows = result.rows
    by_text: dict[str, list[str]] = {}
    for row in rows:
        for text in result.warnings.get(row["cell"], ()):
            by_text.setdefault(text, []).append(f"{row['trace']}, {row['grouping']} on {row['workers']} workers")
    sentences = [
        f"{cells[0]}{f' and {len(cells) - 1} more' if len(cells) > 1 else ''}: {text}"
        for text, cells in by_text.items()
    ]
    for text in sentences[:_MOST_WARNINGS]:
        console.warn(text)
    if len(sentences) > _MOST_WARNINGS:
        console.warn(f"{len(sentences) - _MOST_WARNINGS} more, which --verbose lists")
        for text in sentences[_MOST_WARNINGS:]:
            console.detail(text)
    console.detail(done)
    if console.form not in ("table", "markdown"):
        console.rows(rows)
        return
    options = [name for name in ("sources", "arrivals", "capacity", "seed") if len({row[name] for row in rows}) > 1]
    names = [*_SHOWN[:3], *options, *_SHOWN[3:], *(["error"] if result.failed else [])]
    console.rows(rows, names)
