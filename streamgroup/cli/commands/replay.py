"""`replay`: one run."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import streamgroup as sg
from streamgroup.api.option_types import ReplayKeywords
from streamgroup.base.errors import UsageError
from streamgroup.base.output_formats import PEOPLE
from streamgroup.cli.console import Console, listed
from streamgroup.cli.reader_and_generator_commands import complete_grouping
from streamgroup.cli.replay_flags import DEFAULTS, SEED_HELP, Simulation
from streamgroup.cli.shared_flags import Trace, Workers
from streamgroup.cli.typer_command import utf8_path

__all__ = ["Options", "as_replay", "print_plan", "run", "show"]

# What people see of a run; a mean never without its maximum.
_SHOWN = (
    "trace", "grouping", "workers", "sources", "arrivals", "offered_load",
    "peak_to_mean", "imbalance", "bound_imbalance", "imbalance_mean", "window_imbalance_mean", "window_imbalance_max",
    "load_stddev_percent", "idle_workers",
    "replication_factor", "replicas", "state_entries_max", "aggregation_messages",
    "max_rate_tps", "bottleneck", "sustainable_tps",
    "throughput_tps", "throughput_limit_tps", "makespan_s", "utilization_mean", "utilization_max",
    "latency_p50_ms", "latency_p99_ms", "latency_mean_ms", "latency_max_ms", "backlog_max_ms",
    "partials", "aggregator_utilization_max", "result_delay_ms_mean", "result_delay_ms_p99", "result_delay_ms_max",
    "completion_s", "completion_tps",
    "trees", "latency_tree_p99_ms", "latency_tree_mean_ms",
    "hot_keys_mean", "choices_mean", "choices_max", "control_messages",
    "dropped", "lost", "redelivered", "remapped_replicas",
)  # fmt: skip
# Zero goes without saying, but after a crash that was asked for.
_SHOWN_IF_ANY = ("bound_imbalance", "dropped", "lost", "redelivered")
_OF_CRASH = ("lost", "redelivered")


@dataclass(frozen=True, kw_only=True)
class Options(Simulation):
    """The flags of `replay`."""

    trace: Trace
    grouping: Annotated[
        list[str],
        typer.Option(
            "--grouping", "-g", metavar="GROUPING", autocompletion=complete_grouping,
            help="Name and parameters, as in greedy_d:d=3, or a file, as in ./mine.py:x=1.",
        ),
    ]  # fmt: skip
    workers: Workers
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="RUN", help="Directory for the tables of the run.", callback=utf8_path),
    ] = None
    sources: Annotated[
        int | None, typer.Option("--sources", help="Number of sources (default: 5; 1 for posg).", show_default=False)
    ] = None
    arrivals: Annotated[
        str,
        typer.Option(
            "--arrivals", metavar="KIND",
            help="trace, rate=R, poisson=R, utilization=RHO, poisson-utilization=RHO, saturate (a closed loop), max or "
            "poisson-max (the highest rate that is kept).",
        ),
    ] = DEFAULTS.arrivals  # fmt: skip
    capacity: Annotated[
        str | None,
        typer.Option(
            "--capacity", metavar="FILE",
            help="The capacity model from a TOML file: service, key_cost, service_distribution, slowdown, slowdown_at, "
            "speed_jitter, source_service, state_cost, memory_limit, aggregators, aggregator_service, "
            "aggregator_grouping, queue_capacity, when_full, join, leave, crash, redeliver. A flag wins.",
        ),
    ] = None  # fmt: skip
    seed: Annotated[int, typer.Option("--seed", help=SEED_HELP)] = DEFAULTS.seed
    log: Annotated[bool, typer.Option("--log/--no-log", help="Write the assignment log too (needs -o).")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")] = False
    baseline: Annotated[
        bool,
        typer.Option("--baseline", help="Also run it without workers that join, leave or crash: remapped_replicas."),
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, print what would be simulated, and stop.")
    ] = False


def as_replay(name: str) -> Any:
    """Return the flag and the help of an option, for a command that has it, too."""
    return typing.get_type_hints(Options, include_extras=True)[name].__metadata__[0]


def run(console: Console, options: Options) -> None:
    """Replay a trace through one grouping and measure balance, latency and state.

    Prints the metrics; with -o writes all tables of the run into a directory.
    """
    if len(options.grouping) != 1:
        raise UsageError("replay takes one -g", "run it once for each grouping")
    given = {name: getattr(options, name) for name in ReplayKeywords.__annotations__}
    if options.dry_run:
        print_plan(console, options, given)
        return
    with console.bar("tuples") as bar:
        run = sg.replay(
            options.trace, options.grouping[0], options.workers, output=options.output,
            log=options.log, overwrite=options.overwrite, baseline=options.baseline, progress=bar, **given,
        )  # fmt: skip
        done, seconds = bar.done, bar.seconds
    console.detail(f"{done} tuples in {seconds:.2f} s, {done / seconds:,.0f} tuples/s, start and metrics included")
    show(console, options, run)


def show(console: Console, options: Options, run: sg.Run) -> None:
    """Print the metrics of a run, and what is to be said of it."""
    load = run.metrics.get("offered_load")
    if load is not None:
        console.note(f"offered load: {100 * load:.4g} % of the capacity of {options.workers} workers")
    if options.sources is None and (sources := run.options["sources"]) != DEFAULTS.sources:
        console.note(f"sources: {sources}, the default of {run.grouping}; --sources takes another number")
    console.facts(run.record["grouping"].get("facts", {}))
    for note in run.notes:
        console.note(note)
    for warning in run.warnings:
        console.warn(warning)
    with_app = run.options["app"] is not None
    if run.output is not None:
        console.note(f"wrote {run.output}" + (", the results of --app in results.parquet" if with_app else ""))
    elif with_app:
        console.note("the results of --app are kept with -o RUN, in RUN/results.parquet")
    if console.form in PEOPLE:
        crashed = _OF_CRASH if run.options["crash"] is not None else ()
        shown = [name for name in _SHOWN if name not in _SHOWN_IF_ANY or name in crashed or run.metrics.get(name)]
        trials = run.record.get("rate_search", {}).get("trials", [])
        console.rows([*listed(run.row, shown), *({"name": "trial", "value": trial["text"]} for trial in trials)])
    else:
        console.rows([run.row])


def print_plan(console: Console, options: Options, given: Mapping[str, Any]) -> None:
    """Print what would be simulated; of several things of one name, each is a line for people."""
    from streamgroup.api.make_options import made_options
    from streamgroup.study.dry_run import dry_run
    from streamgroup.study.sweep.compile_in_background import note_of_compiling

    made = made_options(options.grouping[0], options.workers, given)
    plan = dry_run(
        options.trace, made, options.output, log=options.log, overwrite=options.overwrite, baseline=options.baseline
    )
    if note := note_of_compiling([made]):
        console.note(note)
    if console.form in PEOPLE:
        console.rows([row for name in plan for row in _lines(name, plan[name])])
    else:
        console.rows([plan])


def _lines(name: str, value: Any) -> list[dict[str, Any]]:
    values = value if isinstance(value, list) else [value] * (value is not None)
    return [{"name": name, "value": one} for one in values]
