"""Greedy-d: each tuple goes to the least loaded of its key's d candidates, as far as its source knows."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._detector_and_loads import begun, cursors_of, moved
from streamgroup.groupings._detector_parameter import HeadParams
from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings.protocol import Context, Destinations, WorkersChange
from streamgroup.kernels.least_loaded_of_few import least_loaded
from streamgroup.kernels.least_loaded_of_many import Cursors
from streamgroup.kernels.send_to_least_loaded import Loads, send_to_some, send_to_two

__all__ = ["CITE", "GreedyD", "HeadGreedyD", "Params", "start", "start_for_all"]

CITE = ("001",)


class Params(HeadParams):
    """Parameters of Greedy-d; those of its detector count with scope=head only."""

    d: int = Field(
        default=2, ge=1, le=4096, description="candidates of each key (d in 001); 1 is key grouping, 2 is PKG"
    )

    scope: Literal["all", "head"] = Field(
        default="all", description="which keys have d candidates: all, or hot ones, and the others two"
    )

    def choices_per_key(self, workers: int) -> int | None:
        """A key may go to d workers, and never to more than there are."""
        return min(self.d, workers) if self.scope == "all" else None

    def destinations(self, context: Context) -> Destinations:
        """A key has F_1 to F_d; with scope=head these are for hot keys, and the others have two."""
        if self.scope == "all":
            return Destinations(context.candidates(self.d))
        return Destinations(context.candidates(2), f"a key that is treated as hot goes to one of F_1 to F_{self.d}")


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


class HeadGreedyD(NamedTuple):
    """Hot keys have d candidates, the others two (001 figure 9): what D-Choices is without its choice of d.

    The least loaded of F_1..F_d, as far as the source knows, ties to the first. Candidates may coincide, so that d >= n
    does not mean all workers.

    Departures from the paper: none.
    """

    detector: Any
    loads: Loads
    cursors: Cursors
    choices: NDArray[np.int64]
    state_entries: NDArray[np.int64]
    detector_entries: NDArray[np.int64]
    state_entry_bytes: int
    load_entries: int
    workers: int
    d: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the least loaded of d for a hot key, of two for another."""
        if self.detector.detect(source, key, now) > 0:
            worker = send_to_some(self.loads, self.cursors, source, key, self.d)
            self.choices[0] = min(self.d, self.workers)
        else:
            worker = send_to_two(self.loads, source, key)
            self.choices[0] = 0
        self.state_entries[source] = self.detector.held[source] + self.load_entries
        return worker

    def tick(self, now: int) -> None:
        """Let the detector do what is due."""
        self.detector.tick(now)

    def workers_changed(self, change: WorkersChange, context: Context) -> "HeadGreedyD":
        """Keep what was counted; keys are hashed anew to the live workers."""
        return self._replace(**moved(self, change, context), cursors=cursors_of(context, self.d))


def start_for_all(d: int, context: Context) -> GreedyD:
    """Compute the d candidates of every key; no source has sent anything."""
    load = np.zeros((context.sources, context.workers), dtype=np.int64)
    return GreedyD(context.candidates(d), load, state_entries=context.workers, state_entry_bytes=8)


def start(params: Params, context: Context) -> GreedyD | HeadGreedyD:
    """Compute candidates of every key, or start the hot-key detector."""
    if params.scope == "all":
        return start_for_all(params.d, context)
    return HeadGreedyD(
        **begun(params, context),
        cursors=cursors_of(context, params.d),
        d=params.d,
    )
