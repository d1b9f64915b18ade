"""The bound of a source, raised tuple by tuple, and the search on the ring for a worker below it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["find_worker", "make_memory", "raised"]

# Keys of a source whose searches are remembered, a power of two; steps after which a search is.
_REMEMBERED = 256
_MANY = 4
# Columns of `memory`.
_KEY, _BOUND, _POINT = range(3)


def make_memory(sources: int) -> NDArray[np.int64]:
    """Return int64[sources, 256, 3], where no search has ended yet: a bound is 1 at least when it is asked for."""
    return np.zeros((sources, _REMEMBERED, 3), dtype=np.int64)


@njit(forceinline=True)
def raised(bound: Any, remainder: Any, source: Any, step: Any, whole: Any) -> Any:
    """Return the bound of a source after one more tuple, ceil(step x m / whole) for m of them, without a division.

    `bound` and `remainder` are int64[sources], with remainder = bound x whole - step x m, 0 or more and below `whole`.
    """
    row = np.uint64(source)
    left = remainder[row] - step
    most = bound[row]
    while left < 0:
        left += whole
        most += 1
    remainder[row] = left
    bound[row] = most
    return most


@njit(forceinline=True)
def find_worker(owner: Any, load: Any, memory: Any, source: Any, key: Any, point: Any, bound: Any) -> Any:
    """Return the first worker with a load below `bound` from a point of the ring on; there must be one.

    `owner` uint16[points] is the worker of each point, `load` int64[sources, workers]. Loads only grow, so while the
    bound stays what was full is full: a key whose last search was long goes on from its end.
    """
    worker = np.int64(owner[np.uint64(point)])
    if load[np.uint64(source), np.uint64(worker)] < bound:
        return worker
    return _search(owner, load, memory, np.uint64(source), key, np.int64(point), bound)


@njit
def _search(owner: Any, load: Any, memory: Any, row: Any, key: Any, point: Any, bound: Any) -> Any:
    """Do what `find_worker` does when the first worker is full."""
    slot = np.uint64(key & (memory.shape[1] - 1))
    if memory[row, slot, _KEY] == key and memory[row, slot, _BOUND] == bound:
        point = memory[row, slot, _POINT]
    steps = np.int64(0)
    worker = np.int64(owner[np.uint64(point)])
    while load[row, np.uint64(worker)] >= bound:
        point += 1
        if point == owner.shape[0]:
            point = np.int64(0)
        worker = np.int64(owner[np.uint64(point)])
        steps += 1
    if steps > _MANY:
        memory[row, slot, _KEY] = key
        memory[row, slot, _BOUND] = bound
        memory[row, slot, _POINT] = point
    return worker
