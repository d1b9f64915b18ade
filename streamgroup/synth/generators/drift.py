"""Drift: a Zipf stream whose hot set changes at a constant rate.

Every `every` tuples the ranks shift by `step` keys: the coldest keys become the hottest, and every other key falls by
`step` ranks.
"""

import numpy as np

from streamgroup.synth.constant_rate_arrivals import arrival_times
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.synth.params_of_all_generators import Drift as Params
from streamgroup.synth.zipf_ranks import zipf_ranks

__all__ = ["Params", "generate"]


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
