"""Greedy by frequency: a hot key gets as many choices as its share of the stream asks for."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings._detector_and_loads import begun, cursors_of, moved
from streamgroup.groupings._detector_parameter import HeadParams
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.least_loaded_of_many import Cursors
from streamgroup.kernels.send_to_least_loaded import Loads, send_to_any, send_to_some, send_to_two

__all__ = ["CITE", "GreedyByFrequency", "Params", "start"]

CITE = ("001",)


class Params(HeadParams):
    """Parameters of Greedy by frequency: those of its detector."""


class GreedyByFrequency(NamedTuple):
    """A hot key with share p has ceil(n p) candidates, at least two ("G-Choices" in the authors' code of 001).

    Each source takes the least loaded of F_1..F_d by its own counts; with d >= n, of all workers. Other keys have two.
    Fewer state entries than D-Choices, and more imbalance: a key's candidates have just room for it alone.

    Departures from the code: there d may be 1.
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

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the least loaded of as many candidates as the key's share asks for."""
        estimate = self.detector.detect(source, key, now)
        if estimate > 0:
            total = self.detector.total[source]
            d = max(2, (self.workers * estimate + total - 1) // total)
            if d >= self.workers:
                d = np.int64(self.workers)
                worker = send_to_any(self.loads, source)
            else:
                worker = send_to_some(self.loads, self.cursors, source, key, d)
            self.choices[0] = d
        else:
            worker = send_to_two(self.loads, source, key)
            self.choices[0] = 0
        self.state_entries[source] = self.detector.held[source] + self.load_entries
        return worker

    def tick(self, now: int) -> None:
        """Let the detector do what is due."""
        self.detector.tick(now)

    def workers_changed(self, change: WorkersChange, context: Context) -> "GreedyByFrequency":
        """Keep what was counted; keys are hashed anew to the live workers."""
        return self._replace(**moved(self, change, context), cursors=cursors_of(context, context.workers))


def start(params: Params, context: Context) -> GreedyByFrequency:
    """No key has been seen, nothing has been sent."""
    return GreedyByFrequency(
        **begun(params, context, "total"),
        cursors=cursors_of(context, context.workers),
    )
