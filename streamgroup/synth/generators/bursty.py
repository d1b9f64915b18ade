"""Bursty: each key lives in one short burst, as in a file of reviews grouped by product.

A number of keys are active at a time and take turns, each time from one drawn at random on. How long a key is active,
counted in its own tuples, is drawn from the geometric distribution; then another key, never seen before, takes its
place.
"""

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.elementary_functions import log
from streamgroup.kernels.random_draws import uniform
from streamgroup.synth.constant_rate_arrivals import arrival_times
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.synth.params_of_all_generators import Bursty as Params

__all__ = ["Params", "generate"]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_BLOCK = 1 << 20


def generate(params: Params) -> Stream:
    """Make the stream: lane l = 0, ..., active - 1 gives one tuple of each `active` tuples on end; which lane begins
    is drawn each time.

    Its keys come one after the other: `k<i>` by lane, then in time. Memory is O(keys).
    """
    lanes = params.active
    turns = -(-params.tuples // lanes)
    begins = np.concatenate([_lane(params, lane, turns) for lane in range(lanes)])

    def chunk(first: int, rows: int) -> Chunk:
        place = np.arange(first, first + rows, dtype=np.int64)
        turn = place // lanes
        shift = (uniform(params.seed, "bursty turn", turn) * lanes).astype(np.int64) if lanes > 1 else 0
        lane = (place + shift) % lanes
        label = np.searchsorted(begins, lane * turns + turn, side="right") - 1
        return Chunk(arrival_times(params.start, params.interval, first, rows), label)

    return Stream(params.tuples, len(begins), chunk, lambda label: b"k%d" % label)


def _lane(params: Params, lane: int, turns: int) -> I64:
    """Return where the keys of a lane begin; lane l has the turns l * turns, ..., (l + 1) * turns - 1 of all."""
    # A lane has no more keys than turns, so their draws do not meet those of the next lane.
    found = [np.zeros(1, np.int64)]
    drawn = 0
    likely = min(int(turns / params.length) + 64, _BLOCK)
    while found[-1][-1] < turns:
        rows = min(likely, turns - drawn)
        index = np.arange(lane * turns + drawn, lane * turns + drawn + rows, dtype=np.int64)
        found.append(found[-1][-1] + np.cumsum(_lengths(uniform(params.seed, "bursty length", index), params.length)))
        drawn += rows
    begins = np.concatenate(found)
    return begins[begins < turns] + lane * turns


def _lengths(u: F64, mean: float) -> I64:
    """Turn u in [0, 1) into lengths: P(length > l) = (1 - 1 / mean)^l."""
    if mean == 1.0:
        return np.ones(len(u), np.int64)
    lengths: I64 = (log(1.0 - u) / log(np.array([1.0 - 1.0 / mean]))).astype(np.int64) + 1
    return lengths
