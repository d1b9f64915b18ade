"""Which seeds the result of a run depends on."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from streamgroup.base.errors import StreamgroupError
from streamgroup.replay.scenario.grouping_selection import select

__all__ = ["SEEDS", "is_stream_drawn", "seeds_used"]

SEEDS = ("seed", "hash_seed")


def seeds_used(values: Mapping[str, Any]) -> frozenset[str]:
    """Name the seeds, of `seed` and `hash_seed`, that the results of a run depend on.

    `values` are the options of a replay by name, after its capacity file was read, or as they stand in a table. The
    groupings of the package declare what they use. A file of the user's counts as using both, and so does a grouping
    that is not found.
    """
    drawn = (
        is_stream_drawn(values)
        or values["speed_jitter"] is not None
        or any("random" in str(values[name] or "") for name in ("leave", "crash"))
    )
    used = _used_by(str(values["grouping"])) | frozenset(["seed"] if drawn else [])
    if values.get("aggregators") is None:
        return used
    # A partial result's service may be drawn, too, and its aggregator depends on a grouping of its own.
    by_chance = frozenset(["seed"] if ":" in str(values["aggregator_service"] or "") else [])
    return used | by_chance | _used_by(str(values["aggregator_grouping"] or "kg"))


def is_stream_drawn(values: Mapping[str, Any]) -> bool:
    """Return whether arrival times, sources or service times, of sources or workers, are drawn."""
    return (
        "poisson" in str(values["arrivals"])
        or values["source_assignment"] == "random"
        or values["service_distribution"] not in (None, "deterministic")
        or any(kind in str(values["source_service"] or "") for kind in ("exponential", "lognormal"))
    )


@lru_cache(maxsize=1024)
def _used_by(grouping: str) -> frozenset[str]:
    try:
        selection = select(grouping)
    except StreamgroupError:
        return frozenset(SEEDS)
    return frozenset(SEEDS if selection.outside_digest else selection.params.seeds_used())
