"""Shuffle grouping at random: each tuple goes to a worker drawn uniformly."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.protocol import Context, GroupingParams
from streamgroup.kernels.picks import draw_below

__all__ = ["Params", "RandomShuffle", "start"]


class Params(GroupingParams):
    """Random shuffle grouping has no parameters."""

    def choices_per_key(self, workers: int) -> int:
        """Any key may go to any worker."""
        return workers


class RandomShuffle(NamedTuple):
    """Uniform random worker, from a stream of draws of each source's own.

    Not as even as round robin: the imbalance after m tuples is about sqrt(2 ln n / (m n)).

    Departures from the paper: 003 describes Storm's shuffle as random and equal at once, which is round robin over a
    shuffled list; this tool keeps the two under two names (`sg`, `sg_random`).
    """

    stream: NDArray[np.uint64]
    drawn: NDArray[np.int64]
    workers: int
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Draw the worker."""
        worker = draw_below(self.stream[source], self.drawn[source], self.workers)
        self.drawn[source] += 1
        return worker


def start(params: Params, context: Context) -> RandomShuffle:
    """Open the stream of draws of each source."""
    del params
    streams = [context.draw_stream(f"sg_random:{source}") for source in range(context.sources)]
    drawn = np.zeros(context.sources, dtype=np.int64)
    return RandomShuffle(
        np.array(streams, dtype=np.uint64), drawn, context.workers, state_entries=1, state_entry_bytes=8
    )
