"""DAGreedy: hot keys go where they are already, unless the load there is too high."""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._share_threshold import Share, share_of, share_parts
from streamgroup.groupings._six_decimals import Millionths
from streamgroup.groupings._sliding_windows import HotKeyParams, begun, moved
from streamgroup.groupings.dagreedy.best_worker import best_worker
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.counts import sent_in_sliding_window
from streamgroup.kernels.counts.sent_in_sliding_window import (
    HOT_UNTIL,
    PAIRS,
    PREVIOUS,
    SLIDE,
    KeyWindows,
    advance,
    count,
    record_of,
    send,
)

__all__ = ["CITE", "DAGreedy", "Params", "start"]

CITE = ("DAG",)


class Params(HotKeyParams):
    """Parameters of DAGreedy."""

    theta: Share = Field(default="1/100n", description="share of a slide from which on a key is hot")
    affinity: Millionths = Field(
        default=0.5, ge=0, le=1, description="weight of sending a key where it was sent before, against that of load"
    )

    def hot_share(self, workers: int) -> Fraction:
        """Hot keys are those above theta."""
        return share_of(self.theta, workers)


class DAGreedy(NamedTuple):
    """The worker with the best score for hot keys, F_1 for cold ones (Pacaci, Oezsu, BeyondMR 2018).

    score(w) = affinity x (is the key there) - (1 - affinity) x (L(w) - mean) / mean, by what the source sent in its
    window; ties go to the lowest id. A key is hot to the end of the next slide if it had more than a share theta of
    the last slide's number of tuples in this slide. `first` uint16[keys, 1] is F_1, `theta` int64[2] numerator and
    denominator, affinity is `numerator` / `denominator`.

    Departures: the text of the paper was not at hand; this is the rule of Dalton's authors, who compared with it, but
    slides follow the clock, and the window forgets what it should.
    """

    first: NDArray[np.uint16]
    windows: KeyWindows
    theta: NDArray[np.int64]
    choices: NDArray[np.int64]
    state_entries: NDArray[np.int64]
    room: NDArray[np.int64]
    numerator: int
    denominator: int
    theta_text: str
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take F_1, or for a hot key the worker with the best score, and count the tuple."""
        windows = self.windows
        advance(windows, source, now)
        one = record_of(windows, source, key)
        tuples = count(windows, source, one)
        previous, slide = windows.clock[source, PREVIOUS], windows.clock[source, SLIDE]
        if previous > 0 and tuples * self.theta[1] > previous * self.theta[0]:
            windows.record[one, HOT_UNTIL] = slide + 1
        worker: Any = np.int64(self.first[np.uint64(key), 0])
        self.choices[0] = 0
        if windows.record[one, HOT_UNTIL] >= slide:
            self.choices[0] = windows.live.shape[0]
            worker = best_worker(windows, source, one, self.numerator, self.denominator)
        send(windows, source, one, worker)
        self.state_entries[source] = windows.live.shape[0] + windows.clock[source, PAIRS]
        return worker

    def grown(self) -> "DAGreedy":
        """Make room for more keys; UsageError if there are too many in the windows."""
        windows = sent_in_sliding_window.grown(self.windows, "dagreedy")
        return self._replace(windows=windows, room=windows.room)

    def workers_changed(self, change: WorkersChange, context: Context) -> "DAGreedy":
        """Hash every key anew to the live workers, keep what is in the windows; theta follows their number."""
        return self._replace(
            first=context.candidates(1),
            theta=share_parts(self.theta_text, context.workers),
            **moved(self.windows, change, context, "dagreedy"),
        )


def start(params: Params, context: Context) -> DAGreedy:
    """Nothing has been sent."""
    affinity = Fraction(str(params.affinity))
    return DAGreedy(
        first=context.candidates(1),
        theta=share_parts(params.theta, context.workers),
        choices=np.zeros(1, dtype=np.int64),
        numerator=affinity.numerator,
        denominator=affinity.denominator,
        theta_text=params.theta,
        **begun(params, context, "dagreedy"),
    )
