"""POSG: keys whose tuples cost different times, as in the experiments of the POSG paper (section V-A).

The keys come uniformly or by Zipf's law. The costs are `w_n` values between `w_min` and `w_max`, or those given; which
key costs what is drawn at random, once for all tuples of the stream.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import comb

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.kernels.elementary_functions import exp, log
from streamgroup.synth.constant_rate_arrivals import arrival_times
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.synth.params_of_all_generators import Posg as Params
from streamgroup.synth.params_of_all_generators import check_times, interval_of
from streamgroup.synth.random_permutations import shuffled
from streamgroup.synth.zipf_ranks import zipf_ranks, zipf_weights

__all__ = ["Params", "generate"]

F64 = NDArray[np.float64]

_BLOCK = 1 << 20


def generate(params: Params) -> Stream:
    """Make the stream; a label is the item's rank from 0, its cost in us."""
    rank = zipf_ranks(params.keys, params.exponent)
    cost = _costs(params)
    interval = _interval(params, cost)
    try:
        check_times(params.start, interval, params.tuples)
    except ValueError as error:
        raise UsageError(f"posg: {error}") from None

    def chunk(first: int, rows: int) -> Chunk:
        label = rank(params.seed, "posg", np.arange(first, first + rows, dtype=np.int64))
        return Chunk(arrival_times(params.start, interval, first, rows), label, cost[label])

    return Stream(params.tuples, params.keys, chunk, lambda label: b"k%d" % label)


def _costs(params: Params) -> NDArray[np.float32]:
    """Return the cost of each item in us: value j goes to as many items as its share says, picked at random."""
    values = _values(params)
    share = _shares(params, len(values))
    whole = sum(share)
    ends = [int(total / whole * params.keys + Fraction(1, 2)) for total in accumulate(share)]
    items = shuffled(params.seed, "posg items", params.keys)
    cost = np.empty(params.keys, np.float32)
    for value, first, stop in zip(values, [0, *ends], ends, strict=False):
        cost[items[first:stop]] = value
    return cost


def _values(params: Params) -> list[float]:
    """Return the execution times in us."""
    if params.values is not None:
        return [float(each * 1000) for each in params.values]
    low, high = (Fraction(each) * 1000 for each in (params.w_min, params.w_max))
    gaps = max(params.w_n - 1, 1)
    if params.steps == "constant":
        return [float(low + (high - low) * j / gaps) for j in range(params.w_n)]
    ratio = log(np.array([float(high / low)]))
    return [float(low) * float(exp(ratio * (j / gaps))[0]) for j in range(params.w_n)]


def _shares(params: Params, values: int) -> Sequence[Fraction]:
    """Return the share of the items that each value has, up to a common factor."""
    if params.shares is not None:
        return [Fraction(each) for each in params.shares]
    p = Fraction(params.probability)
    if params.association == "geometric":
        return [(1 - p) ** j for j in range(values)]
    if params.association == "binomial":
        return [comb(values - 1, j) * p**j * (1 - p) ** (values - 1 - j) for j in range(values)]
    return [Fraction(1)] * values


def _interval(params: Params, cost: NDArray[np.float32]) -> Fraction:
    """Return the time between two tuples in us: of the rate, or that which keeps the instances busy, in whole ns.

    The mean execution time is the expected one, the items weighted by their frequencies.
    """
    if params.rate is not None:
        return interval_of(params.rate)
    weight = total = 0.0
    for first in range(0, params.keys, _BLOCK):
        stop = min(first + _BLOCK, params.keys)
        weights = zipf_weights(first + 1, stop + 1, params.exponent)
        # One by one, not pairwise: the same sum on every machine.
        weight += float(np.cumsum(weights)[-1])
        total += float(np.cumsum(weights * cost[first:stop])[-1])
    ns = Fraction(total / weight) * 1000 * Fraction(params.provisioning) / 100 / params.instances
    return Fraction(max(round(ns), 1), 1000)
