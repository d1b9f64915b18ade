"""Which options draw random numbers: a run whose options draw none has one result, whatever its seed."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from streamgroup.base.errors import StreamgroupError
from streamgroup.replay.selection import select

__all__ = ["options_depend_on_seed", "stream_depends_on_seed"]


def options_depend_on_seed(values: Mapping[str, Any]) -> bool:
    """Return whether a run with these options, by name, has other results under another seed.

    `values` are the options of a replay after its capacity file was read, or as they stand in a table. The groupings of
    the package declare whether they depend on it; a user's file, and a grouping that is not found, count as if they do.
    """
    return (
        stream_depends_on_seed(values)
        or values["speed_jitter"] is not None
        or any("random" in str(values[name] or "") for name in ("leave", "crash"))
        or _grouping_depends_on_seed(str(values["grouping"]))
    )


def stream_depends_on_seed(values: Mapping[str, Any]) -> bool:
    """Return whether arrival times, sources or service times are drawn."""
    return (
        "poisson" in str(values["arrivals"])
        or values["source_assignment"] == "random"
        or values["service_distribution"] not in (None, "deterministic")
    )


@lru_cache(maxsize=1024)
def _grouping_depends_on_seed(text: str) -> bool:
    """Return whether the choices of a grouping depend on the seed or the hash seed."""
    try:
        selection = select(text)
    except StreamgroupError:
        return True
    return bool(selection.outside_digest) or selection.params.depends_on_seed()
