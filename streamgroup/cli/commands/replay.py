"""`replay`: one run."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgroup.base.errors import UsageError
from streamgroup.cli.command import Formatted, utf8_path
from streamgroup.cli.console import Bar, Console, listed
from streamgroup.cli.families import complete_grouping

if TYPE_CHECKING:
    from streamgroup.replay.options import ReplayOptions

__all__ = ["Options", "run"]

_REPEATED = ("slowdown_at", "join", "leave", "crash")

# What people see of a run; a mean never without its maximum.
_SHOWN = (
    "trace", "grouping", "workers", "sources", "arrivals", "offered_load",
    "peak_to_mean", "imbalance", "imbalance_mean", "window_imbalance_mean", "window_imbalance_max",
    "load_stddev_percent", "idle_workers",
    "replication_factor", "replicas", "state_entries_max", "aggregation_messages",
    "throughput_tps", "throughput_limit_tps", "makespan_s", "utilization_mean", "utilization_max",
    "latency_p50_ms", "latency_p99_ms", "latency_mean_ms", "latency_max_ms", "backlog_max_ms",
    "hot_keys_mean", "choices_mean", "choices_max", "control_messages",
    "dropped", "lost", "redelivered", "remapped_replicas",
)  # fmt: skip
# Zero goes without saying.
_SHOWN_IF_ANY = ("dropped", "lost", "redelivered")


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
            help="trace, rate=R, poisson=R, utilization=RHO, poisson-utilization=RHO or saturate (a closed loop).",
        ),
    ] = "trace"  # fmt: skip
    spread_ties: Annotated[
        bool, typer.Option("--spread-ties", help="Place equal timestamps evenly before the next one.")
    ] = False
    speedup: Annotated[str, typer.Option("--speedup", metavar="X", help="Divide the trace's times by this.")] = "1"
    max_pending: Annotated[
        int, typer.Option("--max-pending", help="Unfinished tuples of a source at most, under saturate.")
    ] = 1000
    service: Annotated[
        str | None,
        typer.Option("--service", metavar="TIME", help="Service time of every tuple, instead of the trace's cost."),
    ] = None
    key_cost: Annotated[
        str | None,
        typer.Option(
            "--key-cost", metavar="FILE",
            help="Costs from a Parquet or CSV file: columns key, cost (us) and, optionally, worker.",
        ),
    ] = None  # fmt: skip
    service_distribution: Annotated[
        str | None,
        typer.Option(
            "--service-distribution", metavar="KIND",
            help="Random factor of each tuple's cost: deterministic (the default), exponential or lognormal:CV.",
        ),
    ] = None  # fmt: skip
    capacity: Annotated[
        str | None,
        typer.Option(
            "--capacity", metavar="FILE",
            help="The capacity model from a TOML file: service, key_cost, service_distribution, slowdown, slowdown_at, "
            "speed_jitter, queue_capacity, when_full, join, leave, crash, redeliver. A flag wins.",
        ),
    ] = None  # fmt: skip
    slowdown: Annotated[
        str | None,
        typer.Option("--slowdown", metavar="FACTORS", help="Slowdown of each worker, as in 1,1,2 or half:2."),
    ] = None
    slowdown_at: Annotated[
        list[str] | None,
        typer.Option(
            "--slowdown-at", metavar="T=FACTORS",
            help="Other factors from T on (a time, a tuple, a share), as in 50%=1,2. Can be repeated.",
        ),
    ] = None  # fmt: skip
    speed_jitter: Annotated[
        str | None,
        typer.Option(
            "--speed-jitter", metavar="CV:EVERY",
            help="Let each speed drift, a new factor every so many tuples, as in 0.1:5000.",
        ),
    ] = None  # fmt: skip
    queue_capacity: Annotated[
        int | None, typer.Option("--queue-capacity", metavar="Q", help="Waiting tuples that a worker has room for.")
    ] = None
    when_full: Annotated[
        str | None,
        typer.Option(
            "--when-full", metavar="block|drop", help="A full queue holds sources back (the default), or drops tuples."
        ),
    ] = None
    join: Annotated[
        list[str] | None,
        typer.Option("--join", metavar="T", help="A worker joins at T: 10s, 5000 (a tuple) or 50%. Can be repeated."),
    ] = None
    leave: Annotated[
        list[str] | None,
        typer.Option(
            "--leave", metavar="T[:WORKER|random]",
            help="A worker (else the highest id) leaves at T and finishes its queue. Can be repeated.",
        ),
    ] = None  # fmt: skip
    crash: Annotated[
        list[str] | None,
        typer.Option(
            "--crash", metavar="T[:WORKER|random]",
            help="A worker crashes at T and what it has not finished is lost. Can be repeated.",
        ),
    ] = None  # fmt: skip
    redeliver: Annotated[
        bool, typer.Option("--redeliver", help="Choose a worker anew for tuples that a crash took.")
    ] = False
    network_delay: Annotated[
        str, typer.Option("--network-delay", metavar="TIME", help="Time from a source to a worker.")
    ] = "0"
    control_delay: Annotated[
        str | None,
        typer.Option("--control-delay", metavar="TIME", help="Time of a control message (default: the network's)."),
    ] = None
    aggregate_every: Annotated[
        str | None,
        typer.Option(
            "--aggregate-every", metavar="EXTENT",
            help="Workers send partial results each 10s, 50000 tuples or 1% (default: once, at the end).",
        ),
    ] = None  # fmt: skip
    window: Annotated[
        str, typer.Option("--window", metavar="EXTENT", help="Measuring window: 10s, 50000 tuples or 1%.")
    ] = "1%"
    warmup: Annotated[
        str, typer.Option("--warmup", metavar="EXTENT", help="Not measured at the start: 10s, 50000 tuples or 1%.")
    ] = "0"
    seed: Annotated[int, typer.Option("--seed", help="Seed of all draws.")] = 0
    hash_seed: Annotated[int, typer.Option("--hash-seed", help="Moves the candidates of keys.")] = 0
    top_keys: Annotated[int, typer.Option("--top-keys", min=0, help="Keys to list in the table of keys.")] = 20
    key_type: Annotated[
        str,
        typer.Option(
            "--key-type", metavar="string|int|long|bytes", help="What keys are to the rules of real engines."
        ),
    ] = "string"  # fmt: skip
    log: Annotated[bool, typer.Option("--log/--no-log", help="Write the assignment log too (needs -o).")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")] = False
    baseline: Annotated[
        bool,
        typer.Option("--baseline", help="Also run it without workers that join, leave or crash: remapped_replicas."),
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, tell what would be simulated, and stop.")
    ] = False


def run(console: Console, options: Options) -> None:
    """Replay a trace through one grouping and measure balance, latency and state.

    Prints the metrics; with -o writes all tables of the run into a directory.
    """
    if len(options.grouping) != 1:
        raise UsageError("replay takes one -g", "run it once for each grouping")
    chosen = _chosen(options)
    if options.dry_run:
        _tell(console, options, chosen)
        return
    from streamgroup.study.run import run_to_directory

    with console.bar("tuples") as bar:
        bar.start(_tuples(options.trace, bar), "replay")
        result = run_to_directory(
            options.trace, chosen, options.output,
            log=options.log, overwrite=options.overwrite, baseline=options.baseline, progress=bar.advance,
        )  # fmt: skip
        done, seconds = bar.done, bar.seconds
    load = result.row.get("offered_load")
    if load is not None:
        console.note(f"offered load: {100 * load:.4g} % of the capacity of {options.workers} workers")
    if result.facts:
        console.note("whatever the keys: " + ", ".join(f"{name} {value:.4g}" for name, value in result.facts.items()))
    for warning in result.warnings:
        console.warn(warning)
    console.detail(f"{done} tuples in {seconds:.2f} s, {done / seconds:,.0f} tuples/s, start and metrics included")
    if result.output is not None:
        console.note(f"wrote {result.output}")
    if console.form in ("table", "markdown"):
        shown = [name for name in _SHOWN if name not in _SHOWN_IF_ANY or result.row.get(name)]
        console.rows(listed(result.row, shown))
    else:
        console.rows([result.row])


def _chosen(options: Options) -> "ReplayOptions":
    from streamgroup.replay.options import ReplayOptions

    given = {name: getattr(options, name) for name in _names(ReplayOptions)}
    # What can be repeated comes as a list, or None without any.
    repeated = {name: tuple(given[name] or ()) for name in _REPEATED}
    return ReplayOptions(**{**given, **repeated, "grouping": options.grouping[0]})


def _tell(console: Console, options: Options, chosen: "ReplayOptions") -> None:
    """Print what would be simulated; of several things of one name, each is a line for people."""
    from streamgroup.study.estimate import dry_run

    told = dry_run(
        options.trace, chosen, options.output,
        log=options.log, overwrite=options.overwrite, baseline=options.baseline,
    )  # fmt: skip
    if console.form in ("table", "markdown"):
        console.rows([row for name in told for row in _lines(name, told[name])])
    else:
        console.rows([told])


def _lines(name: str, value: Any) -> list[dict[str, Any]]:
    values = value if isinstance(value, list) else [value] * (value is not None)
    return [{"name": name, "value": one} for one in values]


def _names(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _tuples(trace: Path, bar: Bar) -> int | None:
    """Tell how long the bar is; only asked for when it is seen."""
    if not bar.shown:
        return None
    from streamgroup.traces.manifest import read_manifest

    return read_manifest(trace).tuples
