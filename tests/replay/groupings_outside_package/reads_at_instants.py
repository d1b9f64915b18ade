"""A grouping outside the package that looks at what its workers noted only at regular instants."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange

PERIOD = 7_000_000


class Params(GroupingParams):
    """Parameters of the grouping."""

    heedful: bool = Field(default=True, description="say when it looks next")


class Hearing(NamedTuple):
    """Sends by a number that each worker makes of all that it finished, in order, as it was at the last instant.

    `noted` int64[n, 2] are the workers' numbers and how often they were looked at, `known` int64[n] what the sources
    know, `next` int64[1] the next instant; `next_read` the same, or None.
    """

    noted: NDArray[np.int64]
    known: NDArray[np.int64]
    next: NDArray[np.int64]
    live: NDArray[np.int64]
    next_read: NDArray[np.int64] | None

    def choose(self, source: int, key: int, now: int) -> int:
        best = self.live[0]
        for place in range(self.live.shape[0]):
            worker = self.live[place]
            if (self.known[worker] + key * worker) % 101 < (self.known[best] + key * best) % 101:
                best = worker
        return best

    def executed(self, worker: int, key: int, arrival: int, start: int, finish: int) -> None:
        self.noted[worker, 0] = (self.noted[worker, 0] * 31 + key + arrival + 2 * start + 3 * finish) % 1_000_003
        # Which instant it came before.
        self.noted[worker, 1] += self.next[0] % 1009

    def tick(self, now: int) -> None:
        if self.next[0] <= now:
            for worker in range(self.noted.shape[0]):
                self.known[worker] = (self.noted[worker, 0] + self.noted[worker, 1] + now // PERIOD) % 1_000_003
            self.next[0] = now - now % PERIOD + PERIOD

    def workers_changed(self, change: WorkersChange, context: Context) -> "Hearing":
        more = max(0, int(change.live[-1]) + 1 - len(self.known))
        noted = np.concatenate([self.noted, np.zeros((more, 2), np.int64)])
        # What was heard by now is looked at here, too.
        known = np.concatenate([self.known, np.zeros(more, np.int64)]) + int(noted.sum()) % 7
        return self._replace(noted=noted, known=known, live=change.live.copy())


def start(params: Params, context: Context) -> Hearing:
    """Begin with nothing noted."""
    following = np.array([PERIOD], dtype=np.int64)
    return Hearing(
        noted=np.zeros((context.workers, 2), np.int64),
        known=np.zeros(context.workers, np.int64),
        next=following,
        live=context.live.copy(),
        next_read=following if params.heedful else None,
    )
