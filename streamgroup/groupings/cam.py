"""cAM: a key stays on the candidate where it was sent lately; a new one goes where less was sent."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._sliding_windows import TwoCandidateParams, begun, moved
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.counts import sent_in_sliding_window
from streamgroup.kernels.counts.sent_in_sliding_window import PAIRS, KeyWindows, advance, holds, record_of, send

__all__ = ["CITE", "Params", "StayPut", "start"]

CITE = ("HVP",)


class Params(TwoCandidateParams):
    """Parameters of cAM."""

    unseen: Literal["tuples", "keys"] = Field(
        default="tuples",
        description="what decides for a key that neither candidate was sent: fewer tuples, or fewer keys",
    )


class StayPut(NamedTuple):
    """F_1 or F_2, the first that was sent the key in the source's window (Katsipoulakis et al., VLDB 2017).

    If neither was, the one that was sent fewer tuples in the window, or fewer distinct keys; ties go to F_1.
    `candidates` uint16[keys, 2].

    Departures from the authors' code: ties go to F_1, windows slide, keys are not estimated. The text of the paper was
    not at hand.
    """

    candidates: NDArray[np.uint16]
    windows: KeyWindows
    state_entries: NDArray[np.int64]
    room: NDArray[np.int64]
    by_keys: bool
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the candidate that has the key, or the one with less, and count the tuple."""
        windows = self.windows
        advance(windows, source, now)
        one = record_of(windows, source, key)
        worker: Any = np.int64(self.candidates[np.uint64(key), 0])
        other = np.int64(self.candidates[np.uint64(key), 1])
        if not holds(windows, source, one, worker):
            is_less = windows.tuples[source, other] < windows.tuples[source, worker]
            if self.by_keys:
                is_less = windows.distinct[source, other] < windows.distinct[source, worker]
            if is_less or holds(windows, source, one, other):
                worker = other
        send(windows, source, one, worker)
        self.state_entries[source] = windows.live.shape[0] + windows.clock[source, PAIRS]
        return worker

    def grown(self) -> "StayPut":
        """Make room for more keys; UsageError if there are too many in the windows."""
        windows = sent_in_sliding_window.grown(self.windows, "cam")
        return self._replace(windows=windows, room=windows.room)

    def workers_changed(self, change: WorkersChange, context: Context) -> "StayPut":
        """Hash every key anew to the live workers, and keep what is in the windows."""
        return self._replace(candidates=context.candidates(2), **moved(self.windows, change, context, "cam"))


def start(params: Params, context: Context) -> StayPut:
    """Nothing has been sent."""
    return StayPut(candidates=context.candidates(2), by_keys=params.unseen == "keys", **begun(params, context, "cam"))
