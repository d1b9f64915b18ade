"""Keys of a real stream, replayed through the rule of an engine, and the workers that they went to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from streamgroup.engines.keys.typed_key_values import Int, Long
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import family, select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace

__all__ = ["KINDS", "parts_of", "rules_of_engines", "workers_of"]

# A key's bytes as the value that scalar rules take.
KINDS: dict[str, Callable[[bytes], Any]] = {
    "string": bytes.decode,
    "bytes": bytes,
    "int": lambda key: Int(int(key)),
    "long": lambda key: Long(int(key)),
}


def rules_of_engines() -> list[str]:
    """Name the groupings that apply a rule of the room of engines; their twins are its scalar functions."""
    found = []
    for name in family():
        homes = {getattr(value, "__module__", "") for value in vars(select(name).module).values()}
        # Keys of a type are no rule.
        if any(home.startswith("streamgroup.engines.") and ".keys." not in home for home in homes):
            found.append(name)
    return found


def workers_of(trace: Trace, folder: Path, workers: int = 7, **options: Any) -> dict[bytes | None, set[int]]:
    """Replay a trace; give the workers of each key."""
    replay(trace, ReplayOptions(workers=workers, sources=2, arrivals="rate=1000", **options), log_directory=folder)
    logged, keys = pq.read_table(folder), list(trace.all_keys())
    found: dict[bytes | None, set[int]] = {}
    for pair in np.unique(np.stack([logged["key_id"].to_numpy(), logged["worker"].to_numpy()]), axis=1).T.tolist():
        found.setdefault(keys[pair[0]], set()).add(pair[1])
    return found


def parts_of(trace: Trace, folder: Path, text: str) -> list[dict[bytes, set[int]]]:
    """Give the workers of keys while 0..4 are there, after 2 has left, and after 5 has joined."""
    changes: dict[str, Any] = {"leave": ("6000:2",), "join": ("12000",)}
    options = ReplayOptions(text, workers=5, sources=2, arrivals="rate=1000", **changes)
    replay(trace, options, log_directory=folder)
    logged, keys = pq.read_table(folder), list(trace.all_keys())
    found: list[dict[bytes, set[int]]] = [{}, {}, {}]
    for seq, key, worker in zip(*(logged[name].to_pylist() for name in ("seq", "key_id", "worker")), strict=True):
        part = found[(seq >= 6000) + (seq >= 12000)]
        part.setdefault(keys[key], set()).add(worker)
    return found
