"""The least loaded of a few workers, by comparing all of them."""

from typing import Any

import numpy as np

from streamgroup.kernels.compiled_hash_placement import candidate_place
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["least_loaded", "least_of_few", "less_loaded", "send_to_less_loaded"]


@njit
def least_of_few(cursors: Any, key: Any, d: Any, live: Any, load: Any, source: Any, floor: Any) -> Any:
    """Give the least loaded of F_1..F_d of a key for a source, ties to the first.

    `cursors` say how keys are hashed (`least_loaded_of_many.Cursors`); `load` int64[sources, N]; no live worker's
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
