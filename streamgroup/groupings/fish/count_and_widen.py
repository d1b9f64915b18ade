"""FISH's view of a key: counted, and limited to so many workers (000, Algorithms 1 and 2)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.fish.backlogs import Backlogs
from streamgroup.groupings.fish.candidate_workers import Shortlists
from streamgroup.groupings.fish.decayed_space_saving import EPOCHS, IN_EPOCH, SIZE, TOTAL, DecayedTable, count_tuple
from streamgroup.groupings.fish.number_of_choices import (
    average_width,
    chk_width,
    denominator,
    is_hot,
    optimal_width,
    sort_hot,
)
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["BY_CHK", "EVERYWHERE", "OPTIMAL", "FishCore", "Widths", "count_and_widen"]

# How many workers a hot key gets: by its share of the hottest one's, all, or what 001 finds for all hot keys.
BY_CHK, EVERYWHERE, OPTIMAL = range(3)
_EPS = 1e-4


class Widths(NamedTuple):
    """The rule for widths: `theta` above which a key is hot, `epoch_end` the way shares are taken, `head` the rule.

    `least` (d_min) is 0 for the mean width of hot keys. If `is_planned`, hot keys share a width, `planned`
    int64[sources]: that mean, or the optimal one. `hot` float64[K] is room to sort in. `workers` are the live ones.
    """

    planned: NDArray[np.int64]
    hot: NDArray[np.float64]
    theta: float
    workers: int
    epoch_end: bool
    head: int
    least: int
    is_planned: bool


class FishCore(NamedTuple):
    """All that a choice needs: the keys counted, the rule for widths, where keys may go, what workers have left.

    `choices` int64[1], `entries` int64[sources] and `tracked` int64[1] are what is reported.
    """

    table: DecayedTable
    widths: Widths
    shortlists: Shortlists
    backlogs: Backlogs
    choices: NDArray[np.int64]
    entries: NDArray[np.int64]
    tracked: NDArray[np.int64]


@njit
def _plan(table: Any, widths: Any, source: Any) -> None:
    """Find the width that hot keys share, as if the epoch ended now."""
    whole = table.sums[source, TOTAL]
    size = sort_hot(table, source, widths.theta, whole, widths.hot)
    if size == 0:
        widths.planned[source] = 2
    elif widths.head == OPTIMAL:
        widths.planned[source] = optimal_width(widths.hot, size, whole, widths.workers, _EPS)
    else:
        widths.planned[source] = average_width(widths.hot, size, whole, widths.workers)


@njit(forceinline=True)
def _plan_if_due(table: Any, widths: Any, source: Any) -> None:
    """Plan from the counts of each epoch when it is complete, and in the first one whenever they have doubled."""
    row = np.uint64(source)
    counted = table.numbers[row, IN_EPOCH]
    if counted == table.epoch or (table.numbers[row, EPOCHS] == 0 and counted & (counted - 1) == 0):
        _plan(table, widths, source)


@njit(forceinline=True)
def _width_of(table: Any, widths: Any, source: Any, slot: Any) -> Any:
    """Return how many workers a tracked key may go to if it is hot, else 0."""
    whole = denominator(table, source, widths.epoch_end)
    if not is_hot(table.stored[np.uint64(source), np.uint64(slot)], widths.theta, whole):
        return np.int64(0)
    if widths.head == EVERYWHERE:
        return np.int64(widths.workers)
    least = widths.planned[np.uint64(source)] if widths.is_planned else np.int64(widths.least)
    if widths.head == OPTIMAL:
        return min(least, np.int64(widths.workers))
    return chk_width(table, source, slot, widths.workers, least)


@njit(forceinline=True)
def count_and_widen(core: Any, source: Any, key: Any) -> Any:
    """Count a tuple of a source and give how many workers its key may go to, 0 for a cold one."""
    table, row = core.table, np.uint64(source)
    slot = count_tuple(table, source, key)
    entries = table.numbers[row, SIZE] + core.widths.workers
    core.tracked[0] += entries - core.entries[row]
    core.entries[row] = entries
    if core.widths.is_planned:
        _plan_if_due(table, core.widths, source)
    d = _width_of(table, core.widths, source, slot)
    core.choices[0] = d
    return d
