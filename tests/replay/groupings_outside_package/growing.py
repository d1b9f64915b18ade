"""A grouping outside the package whose state grows with the stream: it keeps all that it sent and heard of."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange

# The rooms that states had when they were asked to grow, for the tests to look into.
ASKED: list[int] = []


class Params(GroupingParams):
    """Parameters of the growing state."""

    at_first: int = Field(default=1, ge=0, le=1 << 16, description="tuples that there is room for at the start")
    hears: bool = Field(default=False, description="hear of finished tuples")
    grows: bool = Field(default=True, description="make room when it is asked to")


class Growing(NamedTuple):
    """Goes where something that it sent long ago says; `used` counts what was sent and what was heard of."""

    live: NDArray[np.int64]
    sent: NDArray[np.int64]
    finished: NDArray[np.int64]
    used: NDArray[np.int64]
    room: NDArray[np.int64]
    grows: bool

    def choose(self, source: int, key: int, now: int) -> np.int64:
        sent, heard = self.used[0], self.used[1]
        total = key + source
        if sent > 0:
            total += self.sent[(sent * 7919) % sent] + self.sent[sent // 2]
        if heard > 0:
            total += self.finished[heard // 3]
        return np.int64(self.live[total % self.live.shape[0]])

    def observe(self, source: int, key: int, worker: int, now: int) -> None:
        self.sent[self.used[0]] = 31 * worker + key + now % 13
        self.used[0] += 1
        self.room[0] = self.sent.shape[0] - self.used[0]

    def grown(self) -> "Growing":
        ASKED.append(int(self.room[0]))
        if not self.grows:
            return self
        size = max(1, 2 * len(self.sent))
        larger = [np.concatenate([old, np.zeros(size - len(old), np.int64)]) for old in (self.sent, self.finished)]
        return self._replace(sent=larger[0], finished=larger[1], room=np.array([size - self.used[0]]))

    def workers_changed(self, change: WorkersChange, context: Context) -> "Growing":
        return self._replace(live=change.live.copy())


class HearingGrowing(Growing):
    """It hears of finished tuples, too."""

    def executed(self, worker: int, key: int, arrival: int, start: int, finish: int) -> None:
        self.finished[self.used[1]] = worker + finish % 17
        self.used[1] += 1


def start(params: Params, context: Context) -> Growing:
    """Nothing was sent yet."""
    ASKED.clear()
    kind = HearingGrowing if params.hears else Growing
    sent, finished = np.zeros(params.at_first, np.int64), np.zeros(params.at_first, np.int64)
    return kind(context.live.copy(), sent, finished, np.zeros(2, np.int64), np.array([params.at_first]), params.grows)
