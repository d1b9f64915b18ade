"""The hot keys of a stream, for a number of workers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamgroup.kernels import hash_placement
from streamgroup.traces.statistics.key_counts import count_keys
from streamgroup.traces.trace import Trace

__all__ = ["FAIR_PART", "HotKey", "HotKeys", "find_hot_keys"]

# A fifth of a worker's fair share is where detectors begin to call a key hot.
FAIR_PART = 5


@dataclass(frozen=True)
class HotKey:
    """A key (None: the null key), its share of all tuples, and of the segment that has the most of it: over 0..1.

    `fair_shares` is the share as a multiple of what one worker gets if all get the same.
    """

    key: str | None
    share: float
    share_high: float
    fair_shares: float


@dataclass(frozen=True)
class HotKeys:
    """The most frequent keys, at least one; `hot` counts those with 1/5n of the tuples, `over` those with over 1/n.

    `together` are the hot keys (at most eight) of the worker that gets most under key grouping, each with its share.
    """

    keys: list[HotKey]
    hot: int
    over: int
    together: list[tuple[str | None, float]]


def find_hot_keys(
    trace: Trace, workers: int, segments: Sequence[tuple[int, int]], hash_seed: int, most: int = 5
) -> HotKeys:
    """List up to `most` keys that are hot for so many workers, else the most frequent one.

    `segments` are pairs (first, end) of places in the stream, where the shares may differ. Reads these once.
    """
    count = trace.dictionary().count
    hot = int(np.count_nonzero(FAIR_PART * workers * count >= trace.tuples))
    over = int(np.count_nonzero(workers * count > trace.tuples))
    ids = np.argsort(-count, kind="stable")[: max(1, min(hot, most))]
    high = np.zeros(len(ids))
    for first, end in segments:
        high = np.maximum(high, count_keys(trace, first, end)[ids] / (end - first))
    keys = [
        HotKey(text, int(number) / trace.tuples, float(top), workers * int(number) / trace.tuples)
        for text, number, top in zip(trace.key_texts(ids.tolist()), count[ids], high, strict=True)
    ]
    return HotKeys(keys, hot, over, _together(trace, workers, hash_seed))


def _together(trace: Trace, workers: int, hash_seed: int, most: int = 8) -> list[tuple[str | None, float]]:
    dictionary = trace.dictionary()
    count = dictionary.count
    worker = hash_placement.candidates(dictionary.hash_lo, dictionary.hash_hi, 1, np.arange(workers), hash_seed)[:, 0]
    load = np.bincount(worker, weights=count.astype(np.float64), minlength=workers)
    ids = np.flatnonzero((worker == np.argmax(load)) & (FAIR_PART * workers * count >= trace.tuples))
    ids = ids[np.argsort(-count[ids], kind="stable")][:most]
    return [
        (text, int(count[key]) / trace.tuples) for key, text in zip(ids, trace.key_texts(ids.tolist()), strict=True)
    ]
