"""A grouping outside the package that is a declared exception: it reads the loop's live arrays."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings.protocol import Context, GroupingParams


class Params(GroupingParams):
    """Parameters of the oracle."""

    blind: bool = Field(default=False, description="see nothing, and send all to worker 0")

    def sees(self) -> tuple[str, ...]:
        return () if self.blind else ("cost", "free", "slowdown")


class Oracle(NamedTuple):
    """Sends a tuple to where it will finish first; ties to the lowest worker."""

    cost: NDArray[np.int64]
    free: NDArray[np.int64]
    slowdown: NDArray[np.float64]

    def choose(self, source: int, key: int, now: int) -> int:
        best = 0
        least = np.float64(1e300)
        for worker in range(self.free.shape[0]):
            finish = max(now, self.free[worker]) + self.cost[0] * self.slowdown[worker]
            if finish < least:
                least = finish
                best = worker
        return best


class Blind(NamedTuple):
    """Sends everything to worker 0."""

    workers: int

    def choose(self, source: int, key: int, now: int) -> int:
        return 0


def start(params: Params, context: Context) -> Oracle | Blind:
    """Take the live arrays, which are there only if they were asked for."""
    if params.blind:
        assert context.cost is None
        assert context.free is None
        return Blind(context.workers)
    assert context.cost is not None
    assert context.free is not None
    assert context.slowdown is not None
    return Oracle(context.cost, context.free, context.slowdown)
