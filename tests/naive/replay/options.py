"""What is asked of a replay: all times in ns, all shares as fractions."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

__all__ = ["Change", "Key", "Options", "Span", "TraceTuple", "index_of", "slowdowns"]

Key = bytes | None
# timestamp and cost (if the trace has one) in us
TraceTuple = tuple[int, Key, float | None]
# a place in the stream or a length: ("time", ns), ("count", tuples) or ("share", fraction)
Span = tuple[str, Any]


class Change(NamedTuple):
    """A worker that comes or goes. kind: join, leave or crash; worker: an id, "random", or None for the highest."""

    kind: str
    at: Span
    worker: int | str | None = None


@dataclass(frozen=True)
class Options:
    """The options of a replay.

    arrivals: ("trace",), ("rate", R), ("poisson", R), ("utilization", rho), ("poisson-utilization", rho) or
    ("saturate",), numbers as decimal text, int or Fraction. slowdown: "1,1,2", "half:2" or a list; it repeats to
    the number of workers; slowdown_at: places and such lists. service_ns replaces the trace's costs, and so does
    key_cost, in us by key or by (key, worker); without all of them a tuple costs 1 ms. speed_jitter: "CV:EVERY" or
    "CV:EVERY:equal".
    source_service_ns repeats over the sources; None: they take no time.
    changes: joins, leaves and crashes in the order given. control_delay_ns: None is the network's.
    state_cost: "BETA/M", memory_limit: "ENTRIES:FACTOR"; aggregate_every: the window whose keys a worker holds.
    """

    workers: int
    sources: int = 5
    source_assignment: str = "shuffle"
    arrivals: tuple[Any, ...] = ("trace",)
    spread_ties: bool = False
    speedup: Any = 1
    max_pending: int = 1000
    service_ns: int | None = None
    key_cost: Mapping[Any, float] | None = None
    service_distribution: str = "deterministic"
    slowdown: Any = "1"
    slowdown_at: tuple[tuple[Span, Any], ...] = ()
    speed_jitter: str | None = None
    queue_capacity: int | None = None
    when_full: str | None = None
    changes: tuple[Change, ...] = ()
    redeliver: bool = False
    network_delay_ns: int = 0
    control_delay_ns: int | None = None
    source_service_ns: tuple[int, ...] | None = None
    source_distribution: str = "deterministic"
    combine: Span | None = None
    combine_cost: str = "max"
    warmup: Span = ("count", 0)
    seed: int = 0
    state_cost: str | None = None
    memory_limit: str | None = None
    aggregate_every: Span | None = None

    @property
    def steady(self) -> bool:
        """Speeds do not change once it has begun."""
        return not (self.speed_jitter or any(place[1] != 0 for place, _ in self.slowdown_at))


def slowdowns(given: Any, workers: int) -> list[Fraction]:
    """One factor for each worker."""
    if isinstance(given, str) and given.startswith("half:"):
        slow = Fraction(given.removeprefix("half:"))
        return [slow if worker >= workers - workers // 2 else Fraction(1) for worker in range(workers)]
    texts = given.split(",") if isinstance(given, str) else list(given)
    return [Fraction(texts[worker % len(texts)]) for worker in range(workers)]


def index_of(place: Span, tuples: int) -> int:
    """The tuple at a place given as a count or a share."""
    kind, size = place
    return ceil(Fraction(size) * tuples) if kind == "share" else size
