"""RR: tuples of hot keys go round all workers, the others to the less loaded of two."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._detector_and_loads import begun, moved
from streamgroup.groupings._detector_parameter import HeadParams
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.send_to_least_loaded import Loads, send_to_this, send_to_two

__all__ = ["CITE", "HeadRoundRobin", "Params", "start"]

CITE = ("001",)


class Params(HeadParams):
    """Parameters of RR: one of its own, and those of its detector."""

    separate: bool = Field(
        default=False, description="balance head and tail separately: loads are counted of cold keys' tuples alone"
    )


class HeadRoundRobin(NamedTuple):
    """Round robin for hot keys, two choices for the rest: the baseline of W-Choices (001 section III-B).

    `pointer` int64[sources], a place in the list of live workers, moves only for hot keys and starts at source mod n.
    Hot keys do not look at loads, but count in them.

    Departures from the paper: it balances "head and tail separately" (`separate=true`); here the tail's choice sees
    the tuples of hot keys, as in the authors' code.
    """

    detector: Any
    loads: Loads
    pointer: NDArray[np.int64]
    choices: NDArray[np.int64]
    state_entries: NDArray[np.int64]
    detector_entries: NDArray[np.int64]
    state_entry_bytes: int
    load_entries: int
    workers: int
    is_separate: bool

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the next of all for a hot key, the less loaded of two for another."""
        if self.detector.detect(source, key, now) > 0:
            place = self.pointer[source]
            following = place + 1
            self.pointer[source] = following if following < self.workers else 0
            worker = self.loads.live[place]
            if not self.is_separate:
                send_to_this(self.loads, source, worker)
            self.choices[0] = self.workers
        else:
            worker = send_to_two(self.loads, source, key)
            self.choices[0] = 0
        self.state_entries[source] = self.detector.held[source] + self.load_entries
        return worker

    def tick(self, now: int) -> None:
        """Let the detector do what is due."""
        self.detector.tick(now)

    def workers_changed(self, change: WorkersChange, context: Context) -> "HeadRoundRobin":
        """Keep what was counted; pointers go on modulo the number of workers."""
        return self._replace(**moved(self, change, context), pointer=self.pointer % context.workers)


def start(params: Params, context: Context) -> HeadRoundRobin:
    """No key has been seen, nothing has been sent."""
    return HeadRoundRobin(
        **begun(params, context),
        pointer=np.arange(context.sources, dtype=np.int64) % context.workers,
        is_separate=params.separate,
    )
