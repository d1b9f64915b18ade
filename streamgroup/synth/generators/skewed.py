"""Skewed: names of 204 countries, one with a share of its own, the others alike.

These are the data sets of the Dynamic Key Grouping paper, `country-skew-r<share>` and `country-half-skew-r80` (section
5.1, Table 2); a half-skewed stream is skewed in its first half only.
"""

from fractions import Fraction

import numpy as np

from streamgroup.kernels.random_draws import uniform, words
from streamgroup.synth.constant_rate_arrivals import arrival_times
from streamgroup.synth.generators._countries import COUNTRIES
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.synth.params_of_all_generators import Skewed as Params

__all__ = ["Params", "generate"]


def generate(params: Params) -> Stream:
    """Make the stream; label 0 is the hot key."""
    share = Fraction(params.share)
    # A draw of 53 bits is below the share when it is below this number.
    below = np.uint64(-(-share.numerator * 2**53 // share.denominator))
    skewed = (params.tuples + 1) // 2 if params.half else params.tuples
    keys = len(COUNTRIES)
    names = [name.encode() for name in COUNTRIES]

    def chunk(first: int, rows: int) -> Chunk:
        place = np.arange(first, first + rows, dtype=np.int64)
        u = uniform(params.seed, "skewed key", place)
        label = (u * keys).astype(np.int64)
        if share:
            if params.rest == "others":
                now = place < skewed
                label[now] = 1 + (u[now] * (keys - 1)).astype(np.int64)
            hot = words(params.seed, "skewed hot", place) >> np.uint64(11) < below
            label[hot & (place < skewed)] = 0
        return Chunk(arrival_times(params.start, params.interval, first, rows), label)

    return Stream(params.tuples, keys, chunk, names.__getitem__)
