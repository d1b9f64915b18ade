"""The `sweep` command: replays all combinations of lists of options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import streamgroup as sg
from streamgroup.api.option_types import SweepKeywords
from streamgroup.base.errors import RunError
from streamgroup.base.output_formats import PEOPLE
from streamgroup.cli.console import Console
from streamgroup.cli.reader_and_generator_commands import complete_grouping
from streamgroup.cli.replay_flags import DEFAULTS, Simulation
from streamgroup.cli.typer_command import utf8_path

__all__ = ["Options", "run"]

# What people see of each cell; a mean never without its maximum.
_SHOWN = (
    "trace", "grouping", "workers", "peak_to_mean", "imbalance", "replication_factor", "throughput_tps",
    "latency_p50_ms", "latency_p99_ms", "latency_max_ms",
)  # fmt: skip
# What is said in a file unless a flag is given.
_NAMES = ("grouping", "workers", *SweepKeywords.__annotations__)
_MOST_WARNINGS = 8
_MB = 1e6


@dataclass(frozen=True, kw_only=True)
class Options(Simulation):
    """The flags of `sweep`."""

    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC.toml|TRACE...", help="A file that says what to run, or traces (URLs and patterns, too).",
            show_default=False, callback=utf8_path,
        ),
    ] = ()  # type: ignore[assignment]  # fmt: skip
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
    sources: Annotated[
        list[str],
        typer.Option(
            "--sources", metavar="S,...", show_default=False,
            help="Numbers of sources, for all groupings (default: 5; 1 where posg is alone).",
        ),
    ] = ()  # type: ignore[assignment]  # fmt: skip
    arrivals: Annotated[
        list[str],
        typer.Option(
            "--arrivals", metavar="KIND,...",
            help="trace, rate=R, poisson=R, utilization=RHO, poisson-utilization=RHO, saturate, max or poisson-max. "
            "Can be repeated.",
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
    synth: Annotated[
        list[str],
        typer.Option(
            "--synth", metavar="GENERATOR:P=V,...", show_default=False,
            help="Also generated traces, as zipf:exponent=0.8..2.0..0.2,seed=0..2; kept in the sweep. Can be repeated.",
        ),
    ] = ()  # type: ignore[assignment]  # fmt: skip
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
    given = {name: getattr(options, name) for name in _NAMES if name in console.asked}
    if options.dry_run:
        _print_plan(console, options, given)
        return
    try:
        with console.bar("tuples") as bar:
            result = sg.sweep(
                options.inputs, output=options.output, overwrite=options.overwrite, jobs=options.jobs, progress=bar,
                **given,
            )  # fmt: skip
            seconds = bar.seconds
    except KeyboardInterrupt:
        if options.output.is_dir():
            console.note(f"stopped: the same command resumes from the cells in {options.output}")
        raise
    _finish(console, result, f"{result.ran} cells in {seconds:.1f} s")
    console.note(f"wrote {options.output}")
    if result.failed:
        raise RunError(
            f"{result.failed} of {len(result.rows)} cells failed",
            "column error says why; run it again to try only those",
        )


def _print_plan(console: Console, options: Options, given: Mapping[str, Any]) -> None:
    from streamgroup.api.option_texts import spark_values
    from streamgroup.api.studies import planned_sweep
    from streamgroup.study.sweep.cells_in_threads import at_once, default_jobs
    from streamgroup.study.sweep.compile_in_background import note_of_compiling
    from streamgroup.study.sweep.plan_sweep import spark_of
    from streamgroup.study.sweep.schedule import makespan, plan_tasks, with_keys_checked

    spark_of(spark_values(given), options.jobs)
    planned = planned_sweep(options.inputs, given, options.output, overwrite=options.overwrite)
    for note in planned.notes:
        console.note(note)
    cells, reused, jobs = planned.cells, planned.reused, options.jobs or default_jobs()
    tasks = with_keys_checked(plan_tasks(cells, planned.traces))
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
    if uncompiled := note_of_compiling([task.cell.options for task in left]):
        console.note(uncompiled)
    people = console.form in PEOPLE
    kept = [name for name in rows[0] if not people or name in ("trace", "grouping", "workers") or _varies(rows, name)]
    console.rows(rows, [name for name in kept if not people or name != "cell"])
    if lost := sum(row["status"] == "fails" for row in rows):
        raise RunError(f"{lost} of {len(rows)} cells would fail", "column error says why")


def _varies(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return name in ("tuples", "time_s", "memory_mb", "status") or len({row[name] for row in rows}) > 1


def _finish(console: Console, result: sg.Sweep, done: str) -> None:
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
    if console.form not in PEOPLE:
        console.rows(rows)
        return
    options = [name for name in ("sources", "arrivals", "capacity", "seed") if len({row[name] for row in rows}) > 1]
    names = [*_SHOWN[:3], *options, *_SHOWN[3:], *(["error"] if result.failed else [])]
    console.rows(rows, names)
