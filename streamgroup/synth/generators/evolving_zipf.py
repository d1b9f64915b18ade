"""Evolving Zipf: the time-evolving stream of the FISH paper (section 6.1), in each of its readings.

As printed, the keys come by Zipf's law in the first 80 % of the stream and by the same law in the rest, so nothing
evolves. What changes the readings say: A nothing; B the ranks are reversed; C they are permuted at random; D they are
shifted by half of the keys; E as C, before each of the two stretches, in ten blocks one after the other.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from streamgroup.synth.constant_rate_arrivals import arrival_times
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.synth.params_of_all_generators import EvolvingZipf as Params
from streamgroup.synth.random_permutations import shuffled
from streamgroup.synth.zipf_ranks import zipf_ranks

__all__ = ["Params", "generate"]

I64 = NDArray[np.int64]


def generate(params: Params) -> Stream:
    """Make the stream: stretch 2 b is what comes of block b before the change, stretch 2 b + 1 the rest of it."""
    rank = zipf_ranks(params.keys, params.exponent)
    ends = np.array(_ends(params), dtype=np.int64)
    order = _order(params)

    def chunk(first: int, rows: int) -> Chunk:
        label = rank(params.seed, "evolving-zipf", np.arange(first, first + rows, dtype=np.int64))
        at = 0
        while at < rows:
            stretch = int(np.searchsorted(ends, first + at, side="right"))
            stop = min(int(ends[stretch]) - first, rows)
            label[at:stop] = order(stretch, label[at:stop])
            at = stop
        return Chunk(arrival_times(params.start, params.interval, first, rows), label)

    return Stream(params.tuples, params.keys, chunk, lambda label: b"k%d" % label)


def _ends(params: Params) -> list[int]:
    """Return the place after each stretch; some are empty in blocks of few tuples."""
    blocks = params.blocks or (10 if params.reading == "E" else 1)
    share = Fraction(params.change)
    ends = []
    for block in range(blocks):
        start, stop = (edge * params.tuples // blocks for edge in (block, block + 1))
        ends += [start + share.numerator * (stop - start) // share.denominator, stop]
    return ends


def _order(params: Params) -> Callable[[int, I64], I64]:
    """Return the function from a stretch and ranks to labels."""
    keys, reading = params.keys, params.reading

    @lru_cache(maxsize=2)
    def permutation(stretch: int) -> I64:
        return shuffled(params.seed, f"evolving-zipf ranks {stretch}", keys)

    def order(stretch: int, rank: I64) -> I64:
        if reading == "E" or (reading == "C" and stretch % 2):
            return permutation(stretch)[rank]
        if reading == "A" or stretch % 2 == 0:
            return rank
        return keys - 1 - rank if reading == "B" else (rank + keys // 2) % keys

    return order
