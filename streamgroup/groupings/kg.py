"""Key grouping (KG, also FG): a key's tuples all go to one worker, by hash."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange

__all__ = ["KeyGrouping", "Params", "start"]


class Params(GroupingParams):
    """Key grouping has no parameters."""

    def choices_per_key(self, workers: int) -> int:
        """A key has one worker."""
        return 1


class KeyGrouping(NamedTuple):
    """The worker of a key is its first candidate F_1 (001 section II; "FG" in 000).

    One replica of each key's state, and a worker that cannot do less than its hottest key brings. F_1 is a place in the
    list of live workers: when that changes, a quarter to a half of the keys move, not just those of who left.

    Departures from the paper: none.
    """

    worker_of: NDArray[np.uint16]
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Look the key's worker up."""
        return self.worker_of[key]

    def workers_changed(self, change: WorkersChange, context: Context) -> "KeyGrouping":
        """Hash every key anew to the live workers."""
        return self._replace(worker_of=_first_candidates(context))


def _first_candidates(context: Context) -> NDArray[np.uint16]:
    return context.candidates(1)[:, 0].copy()


def start(params: Params, context: Context) -> KeyGrouping:
    """Compute the worker of every key."""
    del params
    return KeyGrouping(_first_candidates(context), state_entries=0, state_entry_bytes=8)
