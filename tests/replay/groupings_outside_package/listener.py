"""A grouping outside the package that listens: it uses every hook, and records each call in the order it came."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings.protocol import Context, GroupingParams

ROOM = 1 << 16
# The state of the latest run, for the tests to look into.
LATEST: list["Listener"] = []


class Params(GroupingParams):
    """Parameters of the listener."""

    bonus: int = Field(default=0, ge=0, le=10, description="tuples that worker 0 is thought to have less")


class Listener(NamedTuple):
    """Sends to the worker with the fewest tuples that are not known to have finished; news travel with the delay."""

    outstanding: NDArray[np.int64]
    due: NDArray[np.int64]
    queue: NDArray[np.int64]
    calls: NDArray[np.int64]
    used: NDArray[np.int64]
    control_messages: NDArray[np.int64]
    delay: int

    def choose(self, source: int, key: int, now: int) -> int:
        worker = np.int64(0)
        for other in range(self.outstanding.shape[0]):
            if self.outstanding[other] < self.outstanding[worker]:
                worker = other
        return worker

    def observe(self, source: int, key: int, worker: int, now: int) -> None:
        self.outstanding[worker] += 1
        place = self.used[0]
        self.calls[place, 0] = 2
        self.calls[place, 1] = source
        self.calls[place, 2] = key
        self.calls[place, 3] = worker
        self.calls[place, 4] = now
        self.used[0] += 1

    def executed(self, worker: int, key: int, arrival: int, start: int, finish: int) -> None:
        place = self.used[0]
        self.calls[place, 0] = 1
        self.calls[place, 1] = worker
        self.calls[place, 2] = key
        self.calls[place, 3] = arrival
        self.calls[place, 4] = start
        self.calls[place, 5] = finish
        self.used[0] += 1
        self.due[self.queue[1]] = finish + self.delay
        self.calls[self.queue[1], 6] = worker
        self.queue[1] += 1
        self.control_messages[0] += 1

    def tick(self, now: int) -> None:
        while self.queue[0] < self.queue[1] and self.due[self.queue[0]] <= now:
            self.outstanding[self.calls[self.queue[0], 6]] -= 1
            self.queue[0] += 1
        place = self.used[0]
        self.calls[place, 0] = 0
        self.calls[place, 1] = now
        self.used[0] += 1


def start(params: Params, context: Context) -> Listener:
    """Nobody has sent anything; worker 0 may have a bonus."""
    outstanding = np.zeros(context.workers, dtype=np.int64)
    outstanding[0] -= params.bonus
    calls = np.zeros((ROOM, 7), dtype=np.int64)
    due, queue, used = np.zeros(ROOM, np.int64), np.zeros(2, np.int64), np.zeros(1, np.int64)
    state = Listener(outstanding, due, queue, calls, used, np.zeros(1, np.int64), context.control_delay)
    LATEST[:] = [state]
    return state
