"""CM: of two candidates the worker with fewer distinct keys, by what a source sent lately."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._sliding_windows import TwoCandidateParams, begun, moved
from streamgroup.groupings.cm.compare_two_workers import is_lower
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.counts import sent_in_sliding_window
from streamgroup.kernels.counts.sent_in_sliding_window import PAIRS, KeyWindows, advance, record_of, send

__all__ = ["CITE", "FewerKeys", "Params", "start"]

CITE = ("HVP",)


class Params(TwoCandidateParams):
    """Parameters of CM."""

    score: Literal["keys", "load"] = Field(
        default="keys", description="what is compared: distinct keys, or keys and tuples, each scaled by its range"
    )


class FewerKeys(NamedTuple):
    """F_1, unless F_2 has the lower score in the source's window (Katsipoulakis, Labrinidis, Chrysanthis, VLDB 2017).

    The score is the number of distinct keys D, or with `score=load` D / (range of D + 1) + T / (range of T + 1) with
    the number of tuples T; ranges are over the live workers. `candidates` uint16[keys, 2].

    Departures from the authors' code: ties go to F_1, windows slide, D is not estimated, and the terms of `score=load`
    are fractions, compared in integers. The text of the paper was not at hand.
    """

    candidates: NDArray[np.uint16]
    windows: KeyWindows
    state_entries: NDArray[np.int64]
    room: NDArray[np.int64]
    by_load: bool
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the candidate with the lower score, and count the tuple."""
        windows = self.windows
        advance(windows, source, now)
        one = record_of(windows, source, key)
        worker: Any = np.int64(self.candidates[np.uint64(key), 0])
        other = np.int64(self.candidates[np.uint64(key), 1])
        if is_lower(windows, source, other, worker, self.by_load):
            worker = other
        send(windows, source, one, worker)
        self.state_entries[source] = windows.live.shape[0] + windows.clock[source, PAIRS]
        return worker

    def grown(self) -> "FewerKeys":
        """Make room for more keys; UsageError if there are too many in the windows."""
        windows = sent_in_sliding_window.grown(self.windows, "cm")
        return self._replace(windows=windows, room=windows.room)

    def workers_changed(self, change: WorkersChange, context: Context) -> "FewerKeys":
        """Hash every key anew to the live workers, and keep what is in the windows."""
        return self._replace(candidates=context.candidates(2), **moved(self.windows, change, context, "cm"))


def start(params: Params, context: Context) -> FewerKeys:
    """Nothing has been sent."""
    return FewerKeys(candidates=context.candidates(2), by_load=params.score == "load", **begun(params, context, "cm"))
