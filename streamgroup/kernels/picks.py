"""Picks of a worker: by draw, or the least loaded of a few."""

from typing import Any

import numpy as np
from numba import njit

__all__ = ["draw_below", "least_loaded"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@njit  # type: ignore[untyped-decorator]
def draw_below(stream: Any, index: Any, n: Any) -> Any:
    """Draw an integer in 0..n-1: the word at place `index` of a stream of draws (`draws.words`), scaled to n < 2^32."""
    x = stream + np.uint64(index + 1) * _GOLDEN
    x = (x ^ (x >> _30)) * _M1
    x = (x ^ (x >> _27)) * _M2
    x = x ^ (x >> _31)
    return np.int64(((x >> _32) * np.uint64(n)) >> _32)


@njit  # type: ignore[untyped-decorator]
def least_loaded(candidates: Any, load: Any) -> Any:
    """Give the candidate with the smallest load; ties go to the first in the list."""
    best = np.int64(candidates[0])
    least = load[best]
    for j in range(1, candidates.shape[0]):
        worker = np.int64(candidates[j])
        if load[worker] < least:
            best = worker
            least = load[worker]
    return best
