"""`replay`: one run."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from streamgroup.base.errors import UsageError
from streamgroup.cli.command import Formatted, utf8_path
from streamgroup.cli.console import Bar, Console, listed
from streamgroup.cli.families import complete_grouping

__all__ = ["Options", "run"]

# What people see of a run; a mean never without its maximum.
_SHOWN = (
    "trace", "grouping", "workers", "sources", "arrivals", "offered_load",
    "peak_to_mean", "imbalance", "imbalance_mean", "window_imbalance_mean", "window_imbalance_max",
    "load_stddev_percent", "idle_workers",
    "replication_factor", "replicas", "state_entries_max", "aggregation_messages",
    "throughput_tps", "throughput_limit_tps", "makespan_s", "utilization_mean", "utilization_max",
    "latency_p50_ms", "latency_p99_ms", "latency_mean_ms", "latency_max_ms", "backlog_max_ms",
    "hot_keys_mean", "choices_mean", "choices_max", "control_messages",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `replay`."""

    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace directory.", show_default=False)]
    grouping: Annotated[
        list[str],
        typer.Option(
            "--grouping", "-g", metavar="GROUPING", autocompletion=complete_grouping,
            help="Name and parameters, as in greedy_d:d=3, or a file, as in ./mine.py:x=1.",
        ),
    ]  # fmt: skip
    workers: Annotated[int, typer.Option("--workers", "-n", help="Number of workers.", show_default=False)]
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="RUN", help="Directory for the tables of the run.", callback=utf8_path),
    ] = None
    sources: Annotated[int, typer.Option("--sources", help="Number of sources.")] = 5
    source_assignment: Annotated[
        str, typer.Option("--source-assignment", metavar="shuffle|random|key", help="Which source gets a tuple.")
    ] = "shuffle"
    arrivals: Annotated[
        str,
        typer.Option(
            "--arrivals", metavar="KIND",
            help="trace, rate=R, poisson=R, utilization=RHO or poisson-utilization=RHO.",
        ),
    ] = "trace"  # fmt: skip
    spread_ties: Annotated[
        bool, typer.Option("--spread-ties", help="Place equal timestamps evenly before the next one.")
    ] = False
    speedup: Annotated[str, typer.Option("--speedup", metavar="X", help="Divide the trace's times by this.")] = "1"
    service: Annotated[
        str | None,
        typer.Option("--service", metavar="TIME", help="Service time of every tuple, instead of the trace's cost."),
    ] = None
    slowdown: Annotated[
        str | None,
        typer.Option("--slowdown", metavar="FACTORS", help="Slowdown of each worker, as in 1,1,2 or half:2."),
    ] = None
    network_delay: Annotated[
        str, typer.Option("--network-delay", metavar="TIME", help="Time from a source to a worker.")
    ] = "0"
    control_delay: Annotated[
        str | None,
        typer.Option("--control-delay", metavar="TIME", help="Time of a control message (default: the network's)."),
    ] = None
    window: Annotated[
        str, typer.Option("--window", metavar="EXTENT", help="Measuring window: 10s, 50000 tuples or 1%.")
    ] = "1%"
    seed: Annotated[int, typer.Option("--seed", help="Seed of all draws.")] = 0
    hash_seed: Annotated[int, typer.Option("--hash-seed", help="Moves the candidates of keys.")] = 0
    top_keys: Annotated[int, typer.Option("--top-keys", min=0, help="Keys to list in the table of keys.")] = 20
    log: Annotated[bool, typer.Option("--log/--no-log", help="Write the assignment log too (needs -o).")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")] = False


def run(console: Console, options: Options) -> None:
    """Replay a trace through one grouping and measure balance, latency and state.

    Prints the metrics; with -o writes all tables of the run into a directory.
    """
    if len(options.grouping) != 1:
        raise UsageError("replay takes one -g", "run it once for each grouping")
    from streamgroup.replay.options import ReplayOptions
    from streamgroup.study.run import run_to_directory

    asked = set(_names(Options)) - {"grouping"}
    given = {name: getattr(options, name) for name in _names(ReplayOptions) if name in asked}
    chosen = ReplayOptions(grouping=options.grouping[0], **given)
    with console.bar("tuples") as bar:
        bar.start(_tuples(options.trace, bar), "replay")
        result = run_to_directory(
            options.trace, chosen, options.output, log=options.log, overwrite=options.overwrite, progress=bar.advance
        )
        done, seconds = bar.done, bar.seconds
    load = result.row.get("offered_load")
    if load is not None:
        console.note(f"offered load: {100 * load:.4g} % of the capacity of {options.workers} workers")
    for warning in result.warnings:
        console.warn(warning)
    console.detail(f"{done} tuples in {seconds:.2f} s, {done / seconds:,.0f} tuples/s, start and metrics included")
    if result.output is not None:
        console.note(f"wrote {result.output}")
    if console.form in ("table", "markdown"):
        console.rows(listed(result.row, _SHOWN))
    else:
        console.rows([result.row])


def _names(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _tuples(trace: Path, bar: Bar) -> int | None:
    """Tell how long the bar is; only asked for when it is seen."""
    if not bar.shown:
        return None
    from streamgroup.traces.manifest import read_manifest

    return read_manifest(trace).tuples
