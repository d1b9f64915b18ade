"""Uniform: each of the keys `k0`, `k1`, ... is as likely as any other, independently for each tuple."""

import numpy as np

from streamgroup.kernels.random_draws import uniform
from streamgroup.synth.constant_rate_arrivals import arrival_times
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.synth.params_of_all_generators import Uniform as Params

__all__ = ["Params", "generate"]


def generate(params: Params) -> Stream:
    """Make the stream; no table is needed, whatever the number of keys."""

    def chunk(first: int, rows: int) -> Chunk:
        place = np.arange(first, first + rows, dtype=np.int64)
        # The largest draw, 1 - 2^-53, times any whole number below 2^53 still rounds to less than that number.
        label = (uniform(params.seed, "uniform", place) * params.keys).astype(np.int64)
        return Chunk(arrival_times(params.start, params.interval, first, rows), label)

    return Stream(params.tuples, params.keys, chunk, lambda label: b"k%d" % label)
