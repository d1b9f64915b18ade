"""Picks of a worker: by draw, or the least loaded of a few."""

from typing import Any

import numpy as np
from numba import njit

__all__ = [
    "candidate_place",
    "draw_below",
    "least_loaded",
    "least_of_candidates",
    "less_loaded",
    "mixed",
    "place",
    "send_to_less_loaded",
]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@njit(forceinline=True)
def mixed(word: Any) -> Any:
    """Scramble a 64-bit word: `hash_placement.mix64`, compiled."""
    word = (word ^ (word >> _30)) * _M1
    word = (word ^ (word >> _27)) * _M2
    return word ^ (word >> _31)


@njit(forceinline=True)
def place(word: Any, n: Any) -> Any:
    """Scramble a word and map it to 0..n-1, n < 2^32: `hash_placement.place` of `hash_placement.mix64`, compiled."""
    return ((mixed(word) >> _32) * np.uint64(n)) >> _32


@njit(forceinline=True)
def candidate_place(word: Any, n: Any, modulo: Any) -> Any:
    """Scramble a word and map it to 0..n-1: `place`, or with `modulo` `hash_placement.place_by_remainder`, compiled."""
    if modulo:
        return (mixed(word) >> _32) % np.uint64(n)
    return place(word, n)


@njit(forceinline=True)
def draw_below(stream: Any, index: Any, n: Any) -> Any:
    """Draw an integer in 0..n-1: the word at place `index` of a stream of draws (`draws.words`), scaled to n < 2^32."""
    return np.int64(place(stream + np.uint64(index + 1) * _GOLDEN, n))


@njit
def least_of_candidates(cursors: Any, key: Any, d: Any, live: Any, load: Any, source: Any, floor: Any) -> Any:
    """Give the least loaded of F_1..F_d of a key for a source, ties to the first.

    `cursors` say how keys are hashed (`least_loaded_of_candidates.Cursors`); `load` int64[sources, N]; no live worker's
    load is below `floor`, so that the first candidate that has it is the one.
    """
    n = live.shape[0]
    row = np.uint64(source)
    word, step = cursors.words[np.uint64(key), 0], cursors.words[np.uint64(key), 1]
    best = np.int64(0)
    least = np.int64(9223372036854775807)
    for _ in range(d):
        word += step
        worker = live[candidate_place(word, n, cursors.modulo)]
        value = load[row, np.uint64(worker)]
        if value < least:
            best, least = worker, value
            if value == floor:
                break
    return best


@njit(forceinline=True)
def less_loaded(candidates: Any, load: Any, source: Any, key: Any) -> Any:
    """Give the less loaded of a key's two candidates for a source; ties to the first."""
    first, second = candidates[np.uint64(key), 0], candidates[np.uint64(key), 1]
    row = np.uint64(source)
    to_second = np.int64(load[row, np.uint64(second)] < load[row, np.uint64(first)])
    return np.int64(first) + to_second * (np.int64(second) - np.int64(first))


@njit(forceinline=True)
def least_loaded(candidates: Any, load: Any) -> Any:
    """Give the candidate with the smallest load; ties go to the first in the list."""
    best = np.int64(candidates[0])
    least = load[best]
    for j in range(1, candidates.shape[0]):
        worker = np.int64(candidates[j])
        value = load[worker]
        # Written without a branch: which candidate wins is a coin that no processor can predict.
        best += np.int64(value < least) * (worker - best)
        least = min(value, least)
    return best


@njit(forceinline=True)
def send_to_less_loaded(candidates: Any, load: Any, source: Any, key: Any) -> Any:
    """Give the less loaded of a key's two candidates (ties: the first) and count one more for it in `load[source]`.

    Written without a branch, which no processor could predict, and with unsigned places, which need no wrapping.
    """
    first, second = candidates[np.uint64(key), 0], candidates[np.uint64(key), 1]
    row, one, other = np.uint64(source), np.uint64(first), np.uint64(second)
    mine, its = load[row, one], load[row, other]
    to_second = np.int64(its < mine)
    # Both are written, the first last, as the two may be one; then neither is read again.
    load[row, other] = its + to_second
    load[row, one] = mine + 1 - to_second
    return np.int64(first) + to_second * (np.int64(second) - np.int64(first))
