"""A grouping outside the package that writes down all it is given, and lets each choice depend on all of that."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange

ROOM = 1 << 13
# Of a call: the time, which hook it is, what it was given; and the arrays that the loop keeps up to date.
AT, HOOK, GIVEN, SEEN = 0, 1, 2, 7
TICK, CHOOSE, OBSERVE, EXECUTED, CHANGED = range(5)
# The state of the latest run, for the tests to look into.
LATEST: list["Spy"] = []


class Params(GroupingParams):
    """Parameters of the spy."""

    looks: bool = Field(default=False, description="look at the loop's arrays")
    hears: bool = Field(default=False, description="hear of finished tuples")

    def sees(self) -> tuple[str, ...]:
        return ("cost", "free", "slowdown") if self.looks else ()


class Spy(NamedTuple):
    """Goes where the sum of all that it was given says; keys by their hash, since ids know the whole trace.

    `cost`, `free` and `slowdown` are the loop's, or empty.
    """

    hash_lo: NDArray[np.int64]
    live: NDArray[np.int64]
    calls: NDArray[np.int64]
    used: NDArray[np.int64]
    total: NDArray[np.int64]
    cost: NDArray[np.float64]
    free: NDArray[np.int64]
    slowdown: NDArray[np.float64]

    def tick(self, now: int) -> None:
        self.calls[self.used[0], :2] = (now, 0)
        self.used[0] += 1

    def choose(self, source: int, key: int, now: int) -> int:
        row = self.calls[self.used[0]]
        row[:4] = (now, 1, source, self.hash_lo[key])
        if self.cost.shape[0] > 0:
            row[7] = np.int64(self.cost[0] * 1024)
            for place in range(self.live.shape[0]):
                row[8 + 2 * place] = self.free[self.live[place]]
                row[9 + 2 * place] = np.int64(self.slowdown[self.live[place]] * 2**40)
        self.used[0] += 1
        for place in range(row.shape[0]):
            self.total[0] = (self.total[0] * 31 + row[place] % 1009) % 1000003
        return self.live[self.total[0] % self.live.shape[0]]

    def observe(self, source: int, key: int, worker: int, now: int) -> None:
        self.calls[self.used[0], :5] = (now, 2, source, self.hash_lo[key], worker)
        self.used[0] += 1

    def workers_changed(self, change: WorkersChange, context: Context) -> "Spy":
        row = self.calls[self.used[0]]
        row[:2] = (change.now, CHANGED)
        row[2], row[3] = sum(1 << worker for worker in change.joined), sum(1 << worker for worker in change.left)
        row[4] = sum(1 << int(worker) for worker in change.live)
        self.used[0] += 1
        return self._replace(live=change.live.copy(), **arrays(context))


class HearingSpy(Spy):
    """It hears of finished tuples, too."""

    def executed(self, worker: int, key: int, arrival: int, start: int, finish: int) -> None:
        self.calls[self.used[0], :6] = (finish, 3, worker, self.hash_lo[key], arrival, start)
        self.used[0] += 1
        self.total[0] = (self.total[0] * 31 + worker + arrival + 3 * start + 5 * finish) % 1000003


def arrays(context: Context) -> dict[str, NDArray[np.generic]]:
    """What it may look at."""
    if context.cost is None or context.free is None or context.slowdown is None:
        return {"cost": np.zeros(0), "free": np.zeros(0, np.int64), "slowdown": np.zeros(0)}
    return {"cost": context.cost, "free": context.free, "slowdown": context.slowdown}


def start(params: Params, context: Context) -> Spy:
    """Nothing has been given yet."""
    calls = np.zeros((ROOM, SEEN + 1 + 2 * 10), np.int64)
    kind = HearingSpy if params.hears else Spy
    live, hash_lo = context.live.copy(), np.array(context.hash_lo)
    state = kind(hash_lo, live, calls, np.zeros(1, np.int64), np.zeros(1, np.int64), **arrays(context))
    LATEST[:] = [state]
    return state
