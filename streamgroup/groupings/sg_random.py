"""Shuffle grouping at random: each tuple goes to a worker drawn uniformly."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange
from streamgroup.kernels.compiled_random_draws import draw_below

__all__ = ["Params", "RandomShuffle", "start"]


class Params(GroupingParams):
    """Random shuffle grouping has no parameters."""

    def seeds_used(self) -> tuple[str, ...]:
        """Every worker is drawn."""
        return ("seed",)

    def choices_per_key(self, workers: int) -> int:
        """Any key may go to any worker."""
        return workers


class RandomShuffle(NamedTuple):
    """Uniform random worker, from a stream of draws of each source's own.

    Not as even as round robin: the imbalance after m tuples is about sqrt(2 ln n / (m n)).

    Departures from the paper: 003 describes Storm's shuffle as random and equal at once, which is round robin over a
    shuffled list; this tool keeps the two under two names (`sg`, `sg_random`). What is drawn is a place in the list of
    live workers, `live` int64[n].
    """

    stream: NDArray[np.uint64]
    drawn: NDArray[np.int64]
    live: NDArray[np.int64]
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Draw the worker."""
        place = draw_below(self.stream[source], self.drawn[source], self.live.shape[0])
        self.drawn[source] += 1
        return self.live[np.uint64(place)]

    def workers_changed(self, change: WorkersChange, context: Context) -> "RandomShuffle":
        """Draw among the live from now on; each source's stream of draws goes on."""
        return self._replace(live=change.live.copy())


def start(params: Params, context: Context) -> RandomShuffle:
    """Open the stream of draws of each source."""
    del params
    streams = [context.draw_stream(f"sg_random:{source}") for source in range(context.sources)]
    drawn = np.zeros(context.sources, dtype=np.int64)
    live = np.arange(context.workers, dtype=np.int64)
    return RandomShuffle(np.array(streams, dtype=np.uint64), drawn, live, state_entries=1, state_entry_bytes=8)
