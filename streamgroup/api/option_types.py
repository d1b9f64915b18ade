"""The keyword options of the functions: names and meanings are those of the command line's flags."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypedDict

__all__ = [
    "AdviseKeywords",
    "EngineRunKeywords",
    "ExplainKeywords",
    "IngestKeywords",
    "ReplayKeywords",
    "SparkKeywords",
    "SweepKeywords",
]

Number = int | float | str
# A text with a unit, as in "10ms".
Duration = str | timedelta
# A time, a number of tuples, or a share of them, as in "1%".
Extent = str | int | timedelta
_Many = Sequence[str] | str


class _Conditions(TypedDict, total=False):
    """How tuples arrive, what they cost, how fast workers are."""

    source_assignment: Literal["shuffle", "random", "key"]
    spread_ties: bool
    speedup: Number
    service: Duration | None
    key_cost: str | Path | None
    service_distribution: str | None
    slowdown: str | Sequence[int | float] | None
    speed_jitter: str | None
    network_delay: Duration
    control_delay: Duration | None
    hash_seed: int | None
    key_type: str


class _Simulation(_Conditions, total=False):
    """Also what changes on the way, and what is measured."""

    max_pending: int
    engine_model: str | None
    slowdown_at: _Many
    queue_capacity: int | None
    when_full: Literal["block", "drop"] | None
    join: Extent | Sequence[Extent]
    leave: Extent | Sequence[Extent]
    crash: Extent | Sequence[Extent]
    redeliver: bool
    aggregate_every: Extent | None
    source_service: str | None
    combine: Extent | None
    combine_cost: float | str
    state_cost: str | None
    memory_limit: str | None
    aggregators: int | None
    aggregator_service: str | None
    aggregator_grouping: str | None
    app: str | Path | None
    max_p99: Duration | None
    window: Extent
    warmup: Extent
    hot_threshold: float | str
    top_keys: int


class ReplayKeywords(_Simulation, total=False):
    """The options of `replay`."""

    sources: int | None
    arrivals: str
    capacity: str | Path | None
    seed: int


class EngineRunKeywords(ReplayKeywords, total=False):
    """The options of `run`: those of `replay`, how a streaming query runs, and where the engine runs."""

    micro_batch: int | None
    checkpoint: str | Path | None
    master: str | None
    spark_conf: Mapping[str, str] | Sequence[str]
    driver_memory: str | None
    flink_python: str | Path | None


class _OneRun(_Conditions, total=False):
    """The conditions of a run, where no option has several values."""

    sources: int | None
    arrivals: str
    capacity: str | Path | None
    seed: int


class AdviseKeywords(_OneRun, total=False):
    """The options of `advise`: the conditions of all runs, and who merges partial results."""

    aggregate_every: Extent | None
    aggregators: int | None
    aggregator_service: str | None


class ExplainKeywords(_OneRun, total=False):
    """The options of `explain`: the conditions, and what is measured."""

    window: Extent
    warmup: Extent


class SparkKeywords(TypedDict, total=False):
    """Where Spark runs."""

    master: str | None
    remote: str | None
    spark_conf: Mapping[str, str] | Sequence[str]
    driver_memory: str | None


class SweepKeywords(_Simulation, SparkKeywords, total=False):
    """The options of `sweep`: several values of some, and where the cells run."""

    sources: int | str | Sequence[int | str]
    arrivals: _Many
    capacity: str | Path | Sequence[str | Path]
    seed: int | str | Sequence[int | str]
    seeds: int
    baseline: bool
    synth: _Many


class IngestKeywords(SparkKeywords, total=False):
    """The options of `ingest`, for every reader."""

    time: _Many
    key: _Many
    cost: str
    value: str
    weight: str
    delimiter: str
    header: bool
    encoding: str
    multiline: bool
    engine: Literal["spark", "local"]
    checksum: bool
    cost_unit: Literal["s", "ms", "us", "ns"]
    where: str
    time_format: str
    timezone: str
    split_words: bool
    stopwords: str | Path
    null_keys: Literal["drop", "keep", "fail"]
    null_values: _Many
    limit: int
    since: str | datetime
    until: str | datetime
    head: int
    sample_keys: float | str
    max_rejects: int | str
    if_missing: bool
    overwrite: bool
