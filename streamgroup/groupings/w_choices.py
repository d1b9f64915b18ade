"""W-Choices: tuples of hot keys go to the least loaded of all workers, the others to one of two."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings._detector_and_loads import begun, moved
from streamgroup.groupings._detector_parameter import HeadParams
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.send_to_least_loaded import Loads, send_to_any, send_to_two

__all__ = ["CITE", "Params", "WChoices", "start"]

CITE = ("001",)


class Params(HeadParams):
    """Parameters of W-Choices: those of its detector."""


class WChoices(NamedTuple):
    """All workers for hot keys, two for the rest (Nasir et al., ICDE 2016; 001 section III-B).

    Each source detects hot keys by itself and counts what it sent itself. A tuple of a hot key goes to the worker with
    the least of that, ties to the lowest id; any other as in PKG, with the same counts, so that the tail fills
    what the head leaves.

    Departures from the paper: none. The paper takes a key as hot from theta on by its estimated count; the authors'
    code adds the error and asks for more than theta, which `estimate=count+error,strict=true` does.
    """

    detector: Any
    loads: Loads
    choices: NDArray[np.int64]
    state_entries: NDArray[np.int64]
    detector_entries: NDArray[np.int64]
    state_entry_bytes: int
    load_entries: int
    workers: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the least loaded of all for a hot key, of two for another."""
        if self.detector.detect(source, key, now) > 0:
            worker = send_to_any(self.loads, source)
            self.choices[0] = self.workers
        else:
            worker = send_to_two(self.loads, source, key)
            self.choices[0] = 0
        self.state_entries[source] = self.detector.held[source] + self.load_entries
        return worker

    def tick(self, now: int) -> None:
        """Let the detector do what is due."""
        self.detector.tick(now)

    def workers_changed(self, change: WorkersChange, context: Context) -> "WChoices":
        """Keep what was counted; theta follows the number of workers."""
        return self._replace(**moved(self, change, context))


def start(params: Params, context: Context) -> WChoices:
    """No key has been seen, nothing has been sent."""
    return WChoices(**begun(params, context))
