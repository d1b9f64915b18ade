"""The options of one replay, as they are written on the command line."""

from dataclasses import dataclass

__all__ = ["ReplayOptions"]


@dataclass(frozen=True)
class ReplayOptions:
    """What to simulate: texts with units are read, and checked, by the part that uses them.

    `grouping` as in `-g`; `workers` 1..65536; `sources` 1..65536; `source_assignment` shuffle, random or key;
    `arrivals` trace, rate=R, poisson=R, utilization=RHO or poisson-utilization=RHO; `speedup` divides the trace's
    times; `service` replaces the trace's cost (a duration); `slowdown` factors per worker; `network_delay` and
    `control_delay` durations (the latter defaults to the former); `window` a time, a count or a share of the tuples.
    `spread_ties` places equal times evenly before the next one; `seed` and `hash_seed` 0..2^63-1 are for draws and for
    the candidates of keys; `top_keys` is how many of the most frequent keys are reported.
    """

    grouping: str
    workers: int
    sources: int = 5
    source_assignment: str = "shuffle"
    arrivals: str = "trace"
    spread_ties: bool = False
    speedup: str = "1"
    service: str | None = None
    slowdown: str = "1"
    network_delay: str = "0"
    control_delay: str | None = None
    window: str = "1%"
    seed: int = 0
    hash_seed: int = 0
    top_keys: int = 20
