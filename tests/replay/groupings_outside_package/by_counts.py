"""A grouping outside the package that treats keys as hot, and as cold again, by how often they came."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange


class Params(GroupingParams):
    """Parameters of the rule of counts."""

    parts: int = Field(default=0, ge=0, le=1 << 31, description="a key is hot from 1/parts of the stream on; 0: unsaid")
    cold: bool = Field(default=True, description="say where cold keys may go")

    def hot_share(self, workers: int) -> Fraction | None:
        return Fraction(1, self.parts) if self.parts else None

    def cold_choices(self, workers: int) -> int | None:
        return 1 if self.cold else None


class ByCounts(NamedTuple):
    """A source treats a key as hot at 3 of 6 times; `count[source, key]`, cold ones go to `candidates[key, 0]`."""

    count: NDArray[np.int64]
    candidates: NDArray[np.uint16]
    live: NDArray[np.int64]
    choices: NDArray[np.int64]
    state_entries: int = 0
    state_entry_bytes: int = 8

    def choose(self, source: int, key: int, now: int) -> np.int64:
        count = self.count[source, key]
        self.count[source, key] += 1
        if count % 6 < 2 or count % 6 == 5:
            self.choices[0] = 0
            return np.int64(self.candidates[key, 0])
        workers = self.live.shape[0]
        self.choices[0] = min(2 + count % 3, workers)
        return np.int64(self.live[(5 * count + source) % workers])

    def workers_changed(self, change: WorkersChange, context: Context) -> "ByCounts":
        return self._replace(live=change.live.copy(), candidates=context.candidates(1))


def start(params: Params, context: Context) -> ByCounts:
    """Nothing has come yet."""
    count = np.zeros((context.sources, context.keys), np.int64)
    return ByCounts(count, context.candidates(1), context.live.copy(), np.zeros(1, np.int64))
