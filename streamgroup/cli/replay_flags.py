"""The flags that say what is simulated, for every command that replays a trace; `ReplayOptions` has the defaults."""

from dataclasses import dataclass
from typing import Annotated

import typer

from streamgroup.cli.typer_command import Formatted
from streamgroup.replay.scenario.options import ReplayOptions

__all__ = ["DEFAULTS", "REPEATED", "SEED_HELP", "Conditions", "HashSeed", "KeyType", "Simulation"]

# Of every option; the grouping and the number of workers have none.
DEFAULTS = ReplayOptions("", 1)

KeyType = Annotated[
    str,
    typer.Option(
        "--key-type", metavar="string|int|long|bytes",
        help="What keys are to the rules of real engines; string,long and so on for composite keys.",
    ),
]  # fmt: skip

HashSeed = Annotated[
    int | None, typer.Option("--hash-seed", metavar="S", help="Moves the candidates of keys (default: as --seed).")
]

SEED_HELP = "Replicate: seeds all draws, and is the hash seed unless that is given."

# Those that can be repeated.
REPEATED = ("slowdown_at", "join", "leave", "crash")


@dataclass(frozen=True, kw_only=True)
class Conditions(Formatted):
    """How tuples arrive, what they cost, how fast workers are: options of `ReplayOptions`, by name."""

    source_assignment: Annotated[
        str, typer.Option("--source-assignment", metavar="shuffle|random|key", help="Which source gets a tuple.")
    ] = DEFAULTS.source_assignment
    spread_ties: Annotated[
        bool, typer.Option("--spread-ties", help="Place equal timestamps evenly before the next one.")
    ] = DEFAULTS.spread_ties
    speedup: Annotated[str, typer.Option("--speedup", metavar="X", help="Divide the trace's times by this.")] = (
        DEFAULTS.speedup
    )
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
    slowdown: Annotated[
        str | None,
        typer.Option(
            "--slowdown", metavar="FACTORS", help="Slowdown of workers: 1,1,2 (repeats), half:2, one:2, 14:2."
        ),
    ] = None
    speed_jitter: Annotated[
        str | None,
        typer.Option(
            "--speed-jitter", metavar="CV:EVERY[:equal]",
            help="Let each speed drift, a new factor every so many tuples, as in 0.1:5000; equal: from equal speeds.",
        ),
    ] = None  # fmt: skip
    network_delay: Annotated[
        str, typer.Option("--network-delay", metavar="TIME", help="Time from a source to a worker.")
    ] = DEFAULTS.network_delay
    control_delay: Annotated[
        str | None,
        typer.Option("--control-delay", metavar="TIME", help="Time of a control message (default: the network's)."),
    ] = None
    hash_seed: HashSeed = None
    key_type: KeyType = DEFAULTS.key_type


@dataclass(frozen=True, kw_only=True)
class Simulation(Conditions):
    """Also what changes on the way, and what is measured."""

    max_pending: Annotated[
        int, typer.Option("--max-pending", help="Unfinished tuples of a source at most, under saturate.")
    ] = DEFAULTS.max_pending
    engine_model: Annotated[
        str | None,
        typer.Option(
            "--engine-model", metavar="micro-batch=N|T[,overhead=TIME]",
            help="Batches of N tuples, or of T, one after another, instead of a pipelined engine.",
        ),
    ] = None  # fmt: skip
    slowdown_at: Annotated[
        list[str] | None,
        typer.Option(
            "--slowdown-at", metavar="T=FACTORS",
            help="Other factors from T on (a time, a tuple, a share), as in 50%=1,2. Can be repeated.",
        ),
    ] = None  # fmt: skip
    queue_capacity: Annotated[
        int | None,
        typer.Option(
            "--queue-capacity", metavar="Q",
            help="Waiting tuples that a worker has room for, and partial results that an aggregator has room for.",
        ),
    ] = None  # fmt: skip
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
    ] = DEFAULTS.redeliver
    source_service: Annotated[
        str | None,
        typer.Option(
            "--source-service", metavar="TIME[:KIND]",
            help="Time a source takes for each tuple, as 20us or 20us:exponential; several, with commas, repeat.",
        ),
    ] = None  # fmt: skip
    combine: Annotated[
        str | None,
        typer.Option(
            "--combine", metavar="EXTENT",
            help="Merge tuples of one key in each source within 100 tuples, or 10ms, before they are sent.",
        ),
    ] = None  # fmt: skip
    combine_cost: Annotated[
        str,
        typer.Option(
            "--combine-cost", metavar="max|sum|SHARE",
            help="Cost of a merged tuple: the largest of its own, their sum, or that share of the sum.",
        ),
    ] = DEFAULTS.combine_cost  # fmt: skip
    state_cost: Annotated[
        str | None,
        typer.Option(
            "--state-cost", metavar="BETA/M[/n]",
            help="Service is (1 + BETA x entries / M) times as long on a worker that holds so many keys; /n: workers "
            "share M.",
        ),
    ] = None  # fmt: skip
    memory_limit: Annotated[
        str | None,
        typer.Option(
            "--memory-limit", metavar="ENTRIES[/n]:FACTOR",
            help="Service is FACTOR times as long on a worker that holds more keys; /n: workers share ENTRIES.",
        ),
    ] = None  # fmt: skip
    aggregators: Annotated[
        int | None, typer.Option("--aggregators", metavar="A", help="Servers that merge the workers' partial results.")
    ] = None
    aggregator_service: Annotated[
        str | None,
        typer.Option(
            "--aggregator-service", metavar="TIME[:KIND]", help="Time an aggregator takes for each partial result."
        ),
    ] = None  # fmt: skip
    aggregator_grouping: Annotated[
        str | None,
        typer.Option(
            "--aggregator-grouping", metavar="GROUPING", help="How partial results are sent (default: kg, by key)."
        ),
    ] = None  # fmt: skip
    app: Annotated[
        str | None,
        typer.Option(
            "--app", metavar="APP",
            help="Compute results: count, topk:k=10, vwap, stats, hashtags, or a Python file of your own.",
        ),
    ] = None  # fmt: skip
    max_p99: Annotated[
        str | None, typer.Option("--max-p99", metavar="TIME", help="The p99 that --arrivals max has to keep.")
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
    ] = DEFAULTS.window
    warmup: Annotated[
        str, typer.Option("--warmup", metavar="EXTENT", help="Not measured at the start: 10s, 50000 tuples or 1%.")
    ] = DEFAULTS.warmup
    hot_threshold: Annotated[
        str,
        typer.Option(
            "--hot-threshold", metavar="SHARE",
            help="From which share on a key is hot in truth: 0.01, 1/5n (n workers), or own: the grouping's.",
        ),
    ] = DEFAULTS.hot_threshold  # fmt: skip
    top_keys: Annotated[int, typer.Option("--top-keys", min=0, help="Keys to list in the table of keys.")] = (
        DEFAULTS.top_keys
    )
