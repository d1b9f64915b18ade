"""Which grouping to recommend: a rule on rows of figures, and nothing else."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Choice", "Row", "Rule", "Targets", "choose", "frontier", "meets"]

Rule = Literal["least state", "least latency", "knee", "nearest", "throughput"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """The figures of one grouping: pooled over all that was replayed; `low` and `high` are those of any stretch.

    Latencies in ms. `worker_load_max` is the work that the fullest worker gets in a second, in seconds, and
    `worker_load_mean` that of all: above 1 a queue only grows; None where all arrives at one instant. `replicas` are
    pieces of state, `replication_factor` (1 or more) those of a key, `state_entries_max` those on one worker. `order`
    is the place in the list of groupings that were asked, which decides between equals.
    """

    grouping: str
    order: int
    latency_p99_ms: float
    latency_p99_low_ms: float
    latency_p99_high_ms: float
    latency_mean_ms: float
    latency_max_ms: float
    peak_to_mean: float
    peak_to_mean_low: float
    peak_to_mean_high: float
    worker_load_mean: float | None
    worker_load_max: float | None
    worker_load_max_low: float | None
    worker_load_max_high: float | None
    replicas: int
    replication_factor: float
    state_entries_max: int

    @property
    def keeps_up(self) -> bool:
        """Tell whether no worker gets more work than it can do, over all that was replayed."""
        return self.worker_load_max is None or self.worker_load_max <= 1

    @property
    def state_per_key(self) -> float:
        """Count the pieces of state of a key, and one more, merged, somewhere behind where any key is split."""
        return self.replication_factor + (1 if self.replication_factor > 1 else 0)


@dataclass(frozen=True)
class Targets:
    """What is asked for, None for what is not: p99 in ms in every stretch, pieces of state a key."""

    max_p99_ms: float | None = None
    max_replication: float | None = None

    @property
    def any(self) -> bool:
        """Tell whether anything is asked for."""
        return self.max_p99_ms is not None or self.max_replication is not None


@dataclass(frozen=True)
class Choice:
    """The grouping to take, the one to take if there were not that (None: no other), by which rule.

    `met` tells whether the targets are met; None without any.
    """

    recommended: Row
    runner_up: Row | None
    rule: Rule
    met: bool | None


def meets(row: Row, targets: Targets) -> bool:
    """Tell whether a grouping keeps up, and holds the targets in its worst stretch."""
    return row.keeps_up and _excess(row, targets) <= 1


def frontier(rows: Sequence[Row]) -> list[Row]:
    """Give those that keep up and that no other such row beats: as good in p99 and state, and better in one."""
    alive = [row for row in rows if row.keeps_up]
    return [row for row in alive if not any(_beats(other, row) for other in alive)]


def choose(rows: Sequence[Row], targets: Targets) -> Choice:
    """Choose among rows, of which there is at least one.

    Latencies are those of the worst stretch. Of those that meet the targets, the one with the least state, then the
    least p99; if only state is limited, the one with the least p99, then the least state. Without targets the knee: of
    those that keep up, the least p99 x (state per key)^2, so that twice the state has to bring a quarter of the
    latency. If none meets the targets, the nearest: of those that keep up, the least that any target is missed by, as a
    factor. If none keeps up, latencies say nothing, as they only grow: the least load of the fullest worker x state
    per key, of those that hold the limit of state if any does. Ties: less state, less p99, first in the list. The
    runner-up is who would be chosen of the others.
    """
    best, rule, met = _best(rows, targets)
    others = [row for row in rows if row is not best]
    return Choice(best, _best(others, targets)[0] if others else None, rule, met)


def _best(rows: Sequence[Row], targets: Targets) -> tuple[Row, Rule, bool | None]:
    alive = [row for row in rows if row.keeps_up]
    good = [row for row in alive if meets(row, targets)]
    if not alive:
        limit = Targets(max_replication=targets.max_replication)
        held = [row for row in rows if _excess(row, limit) <= 1] or list(rows)
        return _least(held, _overload), "throughput", False if targets.any else None
    if not targets.any:
        return _least(alive, _knee), "knee", None
    if not good:
        return _least(alive, lambda row: _excess(row, targets)), "nearest", False
    if targets.max_p99_ms is None:
        return _least(good, lambda row: row.latency_p99_high_ms), "least latency", True
    return _least(good, lambda row: row.state_per_key), "least state", True


def _least(rows: Sequence[Row], cost: Callable[[Row], float]) -> Row:
    return min(rows, key=lambda row: (cost(row), row.state_per_key, row.latency_p99_high_ms, row.order))


def _knee(row: Row) -> float:
    return row.latency_p99_high_ms * row.state_per_key**2


def _overload(row: Row) -> float:
    return (row.worker_load_max or 0) * row.state_per_key


def _excess(row: Row, targets: Targets) -> float:
    """Tell by which factor the target is missed that is missed most; up to 1 all are met."""
    found = [0.0]
    if targets.max_p99_ms is not None:
        found.append(row.latency_p99_high_ms / targets.max_p99_ms)
    if targets.max_replication is not None:
        found.append(row.replication_factor / targets.max_replication)
    return max(found)


def _beats(one: Row, other: Row) -> bool:
    mine, theirs = _place(one), _place(other)
    return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


def _place(row: Row) -> tuple[float, float]:
    return row.latency_p99_high_ms, row.state_per_key
