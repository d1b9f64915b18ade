"""The options of one replay, as they are written on the command line."""

from dataclasses import dataclass

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import DEFAULT_SOURCES

__all__ = ["MOST_WAITING", "WHEN_FULL", "ReplayOptions", "check_seeds"]

# What a queue may hold, and what a full one may do.
MOST_WAITING = 1 << 40
WHEN_FULL = ("block", "drop")


@dataclass(frozen=True)
class ReplayOptions:
    """What to simulate: texts with units are read, and checked, by the part that uses them.

    `grouping` as in `-g`; `workers` 1..65536; `sources` 1..65536 (not given: the grouping's own default, nearly always
    5); `source_assignment` shuffle, random or key; `arrivals` trace, rate=R, poisson=R, utilization=RHO,
    poisson-utilization=RHO, saturate, max or poisson-max; `speedup` divides the trace's times, `spread_ties` places
    equal times evenly before the next one; `max_pending` tuples of a source may be unfinished under saturate.
    `network_delay` and `control_delay` are durations (the latter defaults to the former). `window` and `warmup` are a
    time, a count or a share of the tuples, `aggregate_every` too (None: once, at the end). `seed` 0..2^63-1 names a
    replicate: it seeds all draws, and `hash_seed`, which moves the candidates of keys, is the same unless it is given.
    `hot_threshold` is the share from which on a key is hot in truth: a number, a fraction, one of n workers (1/5n), or
    "own", the grouping's own. `top_keys` is how many of the most frequent keys are reported. `key_type` string, int,
    long or bytes is what the rules of real engines take keys for.

    The stages beside the workers (None: there is none): `source_service` TIME[:KIND] is a source's time for each tuple,
    several with commas repeat over the sources; `combine`, a count or a time, is the mini-batch in which a source
    merges tuples of one key, `combine_cost` max, sum or a share of the sum. `state_cost` BETA/M and `memory_limit`
    ENTRIES:FACTOR slow a worker down by the entries it holds. `aggregators` servers merge partial results, each in
    `aggregator_service` TIME[:KIND], sent to them by `aggregator_grouping` (None: kg). `app` computes results. Under
    arrivals "max" and "poisson-max" the highest rate is searched that keeps the p99 within `max_p99`, a duration.
    `engine_model` micro-batch=N|T[,overhead=TIME] serves batch by batch; None is a pipelined engine.

    The capacity model (None or empty: not given; `capacity` names a TOML file that fills in what is not given):
    `service` (a duration) or `key_cost` (a file) replaces the trace's cost; `service_distribution` deterministic,
    exponential or lognormal:CV; `slowdown` factors per worker; `slowdown_at` changes T=FACTORS; `speed_jitter`
    CV:EVERY, with :equal behind it from equal speeds; `queue_capacity` waiting tuples a worker holds and `when_full`
    block or drop; `join` T, `leave` and `crash` T[:WORKER|random], T a time, a tuple's index or a share of the tuples;
    `redeliver` chooses the tuples anew that a crash took.
    """

    grouping: str
    workers: int
    sources: int = None  # type: ignore[assignment]  # as the grouping says
    source_assignment: str = "shuffle"
    arrivals: str = "trace"
    spread_ties: bool = False
    speedup: str = "1"
    max_pending: int = 1000
    service: str | None = None
    key_cost: str | None = None
    service_distribution: str | None = None
    capacity: str | None = None
    slowdown: str | None = None
    slowdown_at: tuple[str, ...] = ()
    speed_jitter: str | None = None
    queue_capacity: int | None = None
    when_full: str | None = None
    join: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()
    crash: tuple[str, ...] = ()
    redeliver: bool = False
    network_delay: str = "0"
    control_delay: str | None = None
    aggregate_every: str | None = None
    source_service: str | None = None
    combine: str | None = None
    combine_cost: str = "max"
    state_cost: str | None = None
    memory_limit: str | None = None
    aggregators: int | None = None
    aggregator_service: str | None = None
    aggregator_grouping: str | None = None
    app: str | None = None
    max_p99: str | None = None
    engine_model: str | None = None
    window: str = "1%"
    warmup: str = "0"
    seed: int = 0
    hash_seed: int = None  # type: ignore[assignment]  # as the seed
    hot_threshold: str = "1/5n"
    top_keys: int = 20
    key_type: str = "string"

    def __post_init__(self) -> None:
        """Take the seed for the hash seed, and the grouping's number of sources, where none is given."""
        if vars(self)["hash_seed"] is None:
            object.__setattr__(self, "hash_seed", self.seed)
        if vars(self)["sources"] is None:
            object.__setattr__(self, "sources", _default_sources(self.grouping))


def check_seeds(options: ReplayOptions) -> None:
    """Refuse seeds out of range; UsageError."""
    for name, value in (("--seed", options.seed), ("--hash-seed", options.hash_seed)):
        if not 0 <= value < 1 << 63:
            raise UsageError(f"{name} {value} is not between 0 and 2^63 - 1")


def _default_sources(grouping: str) -> int:
    if not grouping:
        return DEFAULT_SOURCES
    # Not before it is needed: `--help` makes options too, and imports nothing heavy.
    from streamgroup.replay.scenario.grouping_selection import default_sources

    try:
        return default_sources([grouping])
    except UsageError:
        # It is refused where it is selected.
        return DEFAULT_SOURCES
