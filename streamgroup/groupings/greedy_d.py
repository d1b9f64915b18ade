"""Greedy-d: each tuple goes to the least loaded of its key's d candidates, as far as its source knows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._membership import carry_loads
from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange
from streamgroup.kernels.picks import least_loaded

__all__ = ["GreedyD", "Params", "start"]


class Params(GroupingParams):
    """Parameters of Greedy-d."""

    d: int = Field(
        default=2, ge=1, le=4096, description="candidates of each key (d in 001); 1 is key grouping, 2 is PKG"
    )

    def choices_per_key(self, workers: int) -> int:
        """A key may go to d workers, and never to more than there are."""
        return min(self.d, workers)


class GreedyD(NamedTuple):
    """Least loaded of F_1..F_d, ties to the first (the Greedy-d process; 001 sections II and III).

    Each source counts the tuples that it sent itself (`load[source, worker]`): sources balance alone and the sum is
    balanced all the same. Candidates may coincide, so d >= n does not mean all workers.

    Departures from the paper: none.
    """

    candidates: NDArray[np.uint16]
    load: NDArray[np.int64]
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the least loaded candidate and count the tuple."""
        worker = least_loaded(self.candidates[key], self.load[source])
        self.load[source, worker] += 1
        return worker

    def workers_changed(self, change: WorkersChange, context: Context) -> "GreedyD":
        """Hash every key anew to the live workers, and keep what was counted (see `carry_loads`)."""
        candidates = context.candidates(self.candidates.shape[1])
        return self._replace(candidates=candidates, load=carry_loads(self.load, change), state_entries=context.workers)


def start(params: Params, context: Context) -> GreedyD:
    """Compute the candidates of every key; no source has sent anything."""
    load = np.zeros((context.sources, context.workers), dtype=np.int64)
    return GreedyD(context.candidates(params.d), load, state_entries=context.workers, state_entry_bytes=8)
