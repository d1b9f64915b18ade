"""The rule that recommends a grouping, given the figures of each."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["NEAR", "NEAR_LOAD", "Choice", "Row", "Rule", "Targets", "balanced", "choose", "frontier", "meets", "same"]

Rule = Literal["least state", "least latency", "compromise", "nearest", "throughput"]

# What is near enough to the best to be worth no more state: so many times the least 99th percentile, and so many times
# the load of the least loaded of the most loaded workers.
NEAR = 10
NEAR_LOAD = 1.2


@dataclass(frozen=True, kw_only=True)
class Row:
    """The figures of one grouping: pooled over all that was replayed; `low` and `high` are those of any segment.

    Latencies in ms. `worker_load_max` is the work that the most loaded worker gets in a second, in seconds, and
    `worker_load_mean` that of all: above 1 a queue only grows; None where all arrives at one instant. `replicas` are
    the most state entries that a segment made, `state_entries_max` the most on one worker, `replication_factor` (1 or
    more) those of a key. `aggregator_load_max` is the work that the busiest aggregator gets, as for a worker, and
    `result_delay_mean_ms` and `result_delay_p99_ms` are from the end of a window to a complete result of it: all None
    without aggregators. `order` is the place in the list of groupings that were asked, which decides between equals.
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
    aggregator_load_max: float | None = None
    result_delay_mean_ms: float | None = None
    result_delay_p99_ms: float | None = None

    @property
    def keeps_up(self) -> bool:
        """Return whether no worker or aggregator gets more work than it can do, over all that was replayed."""
        return all(load is None or load <= 1 for load in (self.worker_load_max, self.aggregator_load_max))

    @property
    def compared_ms(self) -> float:
        """Return the 99th percentile that groupings are compared by, in ms: what users of the results wait for.

        It is that of the results' delay where aggregators merge, otherwise that of the worst segment's latencies.
        """
        return self.latency_p99_high_ms if self.result_delay_p99_ms is None else self.result_delay_p99_ms


@dataclass(frozen=True)
class Targets:
    """What is asked for, None for what is not: p99 in ms in every segment, state entries a key."""

    max_p99_ms: float | None = None
    max_replication: float | None = None

    @property
    def any(self) -> bool:
        """Return whether anything is asked for."""
        return self.max_p99_ms is not None or self.max_replication is not None


@dataclass(frozen=True)
class Choice:
    """The grouping to take, the one to take if there were not that (None: no other), by which rule.

    `met` says whether the targets are met; None without any.
    """

    recommended: Row
    runner_up: Row | None
    rule: Rule
    met: bool | None


def meets(row: Row, targets: Targets) -> bool:
    """Return whether a grouping keeps up, and holds the targets in its worst segment."""
    return row.keeps_up and _excess(row, targets) <= 1


def frontier(rows: Sequence[Row]) -> list[Row]:
    """Return those that keep up and that none beats: as good in p99, state and maximum load, and better in one."""
    alive = [row for row in rows if row.keeps_up]
    return [row for row in alive if not any(_beats(other, row) for other in alive)]


def balanced(rows: Sequence[Row]) -> list[Row]:
    """Return those that keep up and whose most loaded worker gets at most NEAR_LOAD times the least of any."""
    alive = [row for row in rows if row.keeps_up]
    return _near(alive, _load, NEAR_LOAD) if alive else []


def choose(rows: Sequence[Row], targets: Targets) -> Choice:
    """Choose among rows, of which there is at least one.

    Latencies are those of the worst segment; with aggregators the results' delay stands for them, but for the target,
    and the most loaded server may be an aggregator.
    Without targets: of those that keep up and whose most loaded worker gets
    at most NEAR_LOAD times the least that one gets, the least state with a p99 of at most NEAR times the least. With
    targets: of those that meet them, the one with the least state, then the least p99; if only state is limited, the
    one with the least p99, then the least state. If none meets them, the nearest: of those that keep up, the least that
    any target is missed by, as a factor. If none keeps up, latencies say nothing, as they only grow: the least state of
    those whose most loaded worker gets at most NEAR_LOAD times the least, among those that hold the limit of state if
    any does. Ties: less state, less p99, less on the most loaded worker, first in the list. The runner-up is what would
    be chosen of those with other figures.
    """
    best, rule, met = _best(rows, targets)
    others = [row for row in rows if not same(row, best)]
    return Choice(best, _best(others, targets)[0] if others else None, rule, met)


def _best(rows: Sequence[Row], targets: Targets) -> tuple[Row, Rule, bool | None]:
    alive = [row for row in rows if row.keeps_up]
    good = [row for row in alive if meets(row, targets)]
    if not alive:
        limit = Targets(max_replication=targets.max_replication)
        held = [row for row in rows if _excess(row, limit) <= 1] or rows
        return _least(_near(held, _load, NEAR_LOAD), _state), "throughput", False if targets.any else None
    if not targets.any:
        return _least(_near(balanced(rows), _p99, NEAR), _state), "compromise", None
    if not good:
        return _least(alive, lambda row: _excess(row, targets)), "nearest", False
    if targets.max_p99_ms is None:
        return _least(good, _p99), "least latency", True
    return _least(good, _state), "least state", True


def same(one: Row, other: Row) -> bool:
    """Return whether all figures are equal: groupings with a hot-key detector are the same where no key is hot."""
    return one == dataclasses.replace(other, grouping=one.grouping, order=one.order)


def _near(rows: Sequence[Row], cost: Callable[[Row], float], factor: float) -> list[Row]:
    most = factor * min(map(cost, rows))
    return [row for row in rows if cost(row) <= most]


def _least(rows: Sequence[Row], cost: Callable[[Row], float]) -> Row:
    return min(rows, key=lambda row: (cost(row), _state(row), _p99(row), _load(row), row.order))


def _p99(row: Row) -> float:
    return row.compared_ms


def _state(row: Row) -> float:
    return row.replication_factor


def _load(row: Row) -> float:
    return max(row.worker_load_max or 0, row.aggregator_load_max or 0)


def _excess(row: Row, targets: Targets) -> float:
    """Return the factor by which the target that is missed most is missed; up to 1 all are met."""
    found = [0.0]
    if targets.max_p99_ms is not None:
        found.append(row.latency_p99_high_ms / targets.max_p99_ms)
    if targets.max_replication is not None:
        found.append(row.replication_factor / targets.max_replication)
    return max(found)


def _beats(one: Row, other: Row) -> bool:
    mine, theirs = _place(one), _place(other)
    return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


def _place(row: Row) -> tuple[float, float, float]:
    return _p99(row), _state(row), _load(row)
