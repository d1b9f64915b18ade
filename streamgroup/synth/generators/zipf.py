"""Zipf: key `k<i>` comes with probability proportional to (i + 1)^-exponent, independently for each tuple.

The support is finite (`keys` keys), so exponents of 1 and below, and 0 (uniform), are as good as any. Tuples come at
a constant rate. Every draw depends on the seed and the tuple's place alone.
"""

import numpy as np

from streamgroup.synth.constant_rate_arrivals import arrival_times
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.synth.params_of_all_generators import Zipf as Params
from streamgroup.synth.zipf_ranks import zipf_ranks

__all__ = ["Params", "generate"]


def generate(params: Params) -> Stream:
    """Make the stream; a label is the key's rank from 0."""
    rank = zipf_ranks(params.keys, params.exponent)

    def chunk(first: int, rows: int) -> Chunk:
        place = np.arange(first, first + rows, dtype=np.int64)
        times = arrival_times(params.start, params.interval, first, rows)
        return Chunk(times, rank(params.seed, "zipf", place))

    return Stream(params.tuples, params.keys, chunk, lambda label: b"k%d" % label)
