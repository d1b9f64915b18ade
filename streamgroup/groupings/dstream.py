"""DStream: hot keys go round robin to all workers, the others by a hash of the key."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._detector_and_loads import entry_bytes_of
from streamgroup.groupings._detector_parameter import DetectorName, HeadParams, start_detector
from streamgroup.groupings.protocol import Context, Destinations, WorkersChange

__all__ = ["CITE", "DStream", "Params", "start"]

CITE = ("002",)


class Params(HeadParams):
    """Parameters of DStream: those of its detector, by default its own predictor."""

    detector: DetectorName = Field(default="synopsis", description="detects hot keys")

    def cold_choices(self, workers: int) -> int:
        """A cold key goes to F_1."""
        return 1

    def destinations(self, context: Context) -> Destinations:
        """A cold key goes to F_1."""
        return Destinations(context.candidates(1), "tuples of a hot key go round robin to all workers")


class DStream(NamedTuple):
    """Shuffle grouping for hot keys, key grouping (F_1) for cold ones (Chen, Zhang, Jin; 002 section III).

    Each source deals its tuples of hot keys to the live workers in turn, all hot keys by one pointer, which starts at
    source mod n; `pointer` int64[sources] are places in the list of the live, `live` int64[n]. What is hot is for the
    detector to say: its own predictor (see `detectors.synopsis`), or another.

    Departures from the paper: it does not say where a source starts to deal; see `sg`.
    """

    first: NDArray[np.uint16]
    pointer: NDArray[np.int64]
    live: NDArray[np.int64]
    detector: Any
    choices: NDArray[np.int64]
    detector_entries: NDArray[np.int64]
    state_entries: NDArray[np.int64]
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the worker that the pointer stands on and move it, or F_1."""
        hot = np.int64(self.detector.detect(source, key, now) != 0)
        # Without branches: whether the next key is hot is a coin that no processor can predict.
        row = np.uint64(source)
        place = self.pointer[row]
        workers = self.live.shape[0]
        following = place + hot
        self.pointer[row] = 0 if following == workers else following
        self.choices[0] = hot * workers
        next_worker, fixed = self.live[np.uint64(place)], np.int64(self.first[np.uint64(key), 0])
        return fixed + hot * (next_worker - fixed)

    def tick(self, now: int) -> None:
        """Let the detector do what is due."""
        self.detector.tick(now)

    def workers_changed(self, change: WorkersChange, context: Context) -> "DStream":
        """Hash every key anew to the live workers, and go on with each pointer modulo their number."""
        detector = self.detector.workers_changed(change, context)
        return self._replace(
            first=context.candidates(1),
            pointer=self.pointer % context.workers,
            live=change.live.copy(),
            detector=detector,
            detector_entries=detector.entries,
            state_entries=detector.held,
        )


def start(params: Params, context: Context) -> DStream:
    """Place the pointer of each source, and start the detector."""
    detector = start_detector(params, context)
    return DStream(
        first=context.candidates(1),
        pointer=np.arange(context.sources, dtype=np.int64) % context.workers,
        live=context.live.copy(),
        detector=detector,
        choices=np.zeros(1, dtype=np.int64),
        detector_entries=detector.entries,
        state_entries=detector.held,
        state_entry_bytes=entry_bytes_of(detector),
    )
