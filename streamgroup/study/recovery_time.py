"""How long workers take to catch up after a crash or a slow phase, from the tables of a run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from streamgroup.base.time_count_or_share import parse_position
from streamgroup.cluster.worker_speeds import split_change

__all__ = ["Drain", "find_drains"]


@dataclass(frozen=True)
class Drain:
    """What set workers back, in words, when it was over, and how long it took from then on; None: it never did."""

    what: str
    at_s: float
    seconds: float | None


def find_drains(record: Mapping[str, Any], lag: pl.DataFrame, windows: pl.DataFrame) -> list[Drain]:
    """Return how long it took after each crash, and after the last change of speeds, to be as far behind as before.

    That is, until no worker is further behind than any was before it began, in steps of the cells of `lag`.
    `record` is what `run.json` says. Places that are numbers of tuples become times by the windows they are in.
    """
    options, tuples = record["options"], int(record["trace"]["tuples"])
    largest = lag.group_by("time_s", maintain_order=True).agg(pl.col("backlog_s").fill_null(float("inf")).max())
    times, behind = largest["time_s"].to_list(), largest["backlog_s"].to_list()
    found = []
    for what, begin, end in _events(options, tuples, windows):
        usual = max((value for time, value in zip(times, behind, strict=True) if time <= begin), default=0.0)
        after = [(time, value) for time, value in zip(times, behind, strict=True) if time > end]
        peak = max(range(len(after)), key=lambda at: after[at][1], default=0)
        later = next((time for time, value in after[peak:] if value <= usual), None)
        none = not after or after[peak][1] <= usual
        found.append(Drain(what, end, 0.0 if none else None if later is None else later - end))
    return found


def _events(options: Mapping[str, Any], tuples: int, windows: pl.DataFrame) -> Iterator[tuple[str, float, float]]:
    """Yield what happened, when it began and when it was over, in s."""
    for text in str(options.get("crash") or "").split():
        at = _time(text.partition(":")[0], tuples, windows)
        yield f"the crash at {text}", at, at
    changes = [split_change(text)[0] for text in str(options.get("slowdown_at") or "").split()]
    if len(changes) > 1:
        when = sorted(_time(text, tuples, windows) for text in changes)
        yield f"the slow phase from {changes[0]} to {changes[-1]}", when[0], when[-1]


def _time(text: str, tuples: int, windows: pl.DataFrame) -> float:
    """Return when a place in the stream comes, in s: within its window as if tuples came at equal distances."""
    position = parse_position(text, "the run", tuples)
    if position.index is None:
        return float(position.time_ns or 0) / 1e9
    starts, counts = windows["start_s"].to_list(), windows["tuples"].to_list()
    # Warm-up tuples come before all windows.
    left = position.index - (tuples - sum(counts))
    for at, count in enumerate(counts):
        if left < count:
            stop = starts[at + 1] if at + 1 < len(starts) else starts[at]
            return float(starts[at] + (stop - starts[at]) * max(left, 0) / count)
        left -= count
    return float(starts[-1])
