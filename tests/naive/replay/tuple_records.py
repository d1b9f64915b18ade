"""What is known of each tuple, each worker and each choice when a replay is over."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from tests.naive.replay.options import Key, Options, Span, index_of
from tests.naive.replay.source_servers import SourceServers

__all__ = ["Accepted", "Choice", "Delivery", "Life", "Record", "Run", "Tuple", "is_measured", "measured_from"]


class Accepted(NamedTuple):
    """A delivery that was not dropped: the wait ahead of it as it reached the worker, the queue as it joined that.

    It joins where it reaches the worker; with `block` where it is sent, for it holds a place from then on. Both are
    None where it never joined: lost on its way to a full one.
    """

    worker: int
    wait_ns: int | None
    queue: int | None


class Record(NamedTuple):
    """One tuple. status: finished, dropped or lost; the worker of the last delivery; cost: the base cost there,
    work: the same with the random factor; entries: what the worker held as it started.

    start and finish are None unless it finished. alive: the workers that were there at its arrival; ever: how
    many had been there until then.
    """

    seq: int
    arrival_ns: int
    source: int
    key: Key
    worker: int
    start_ns: int | None
    finish_ns: int | None
    cost_ns: int
    status: str
    deliveries: tuple[Accepted, ...]
    redelivered: int
    measured: bool
    alive: tuple[int, ...]
    ever: int
    work_ns: float
    entries: int | None
    # whether the time of a worker counts here: of merged tuples at the first
    bears: bool = True


class Choice(NamedTuple):
    """What was chosen, and what the grouping then tells: the workers allowed to a hot key (0: cold, or not told),
    what the source holds, and what the detectors of all sources hold (None: there is none).
    """

    now: int
    source: int
    seq: int
    worker: int
    allowed: int = 0
    state_entries: int = 0
    detector_entries: int | None = None


@dataclass
class Life:
    """From when to when a worker was there; how it ended: leave, crash, or not at all."""

    joined_ns: int
    ended_ns: int | None = None
    how: str | None = None


@dataclass
class Delivery:
    """A tuple on its way to a worker, in its queue or in service. Dropped ones have no start and finish."""

    number: int
    seq: int
    source: int
    worker: int
    reaches_ns: int
    start_ns: int | None = None
    finish_ns: int | None = None
    lost: bool = False
    entries: int | None = None


@dataclass
class Tuple:
    """What happens to a tuple, while it happens."""

    arrival_ns: int
    source: int
    alive: tuple[int, ...]
    ever: int
    status: str = "on its way"
    last: Delivery | None = None
    deliveries: list[Accepted] = field(default_factory=list)
    redelivered: int = 0


class Run(NamedTuple):
    records: list[Record]
    offered_load: float | None
    options: Options
    slowdown: list[Fraction]
    constant_cost: bool
    grouping: Any
    choices: list[Choice]
    lives: list[Life]
    servers: SourceServers | None = None


def is_measured(seq: int, arrival_ns: int, warmup: Span, tuples: int) -> bool:
    """A tuple is not warm-up."""
    return arrival_ns >= warmup[1] if warmup[0] == "time" else seq >= index_of(warmup, tuples)


def measured_from(arrivals_ns: list[int], warmup: Span) -> int:
    """The first tuple that is not warm-up."""
    if warmup[0] != "time":
        return index_of(warmup, len(arrivals_ns))
    return min((seq for seq, at in enumerate(arrivals_ns) if at >= warmup[1]), default=len(arrivals_ns))
