"""Drift: a Zipf stream whose hot set changes at a constant rate.

Every `every` tuples the ranks shift by `step` keys: the coldest keys become the hottest, and every other key falls by
`step` ranks.
"""

import numpy as np
from pydantic import Field

from streamgroup.synth.arrivals import ZipfArrivals, arrival_times
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.synth.zipf_ranks import zipf_ranks

__all__ = ["Params", "generate"]


class Params(ZipfArrivals):
    """The parameters of a drifting stream."""

    every: int = Field(default=10_000, ge=1, le=10**12, description="tuples from one move of the hot set to the next")
    step: int = Field(default=1, ge=0, le=10**8, description="ranks that each key falls at a move; 0 is no drift")


def generate(params: Params) -> Stream:
    """Make the stream: after s moves key `k<i>` has the rank (i + s * step) mod keys."""
    rank = zipf_ranks(params.keys, params.exponent)
    step = params.step % params.keys

    def chunk(first: int, rows: int) -> Chunk:
        place = np.arange(first, first + rows, dtype=np.int64)
        # Both factors are below 10^8.
        fallen = place // params.every % params.keys * step
        label = (rank(params.seed, "drift", place) - fallen) % params.keys
        return Chunk(arrival_times(params.start, params.interval, first, rows), label)

    return Stream(params.tuples, params.keys, chunk, lambda label: b"k%d" % label)
