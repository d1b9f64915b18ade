"""Count-Min sketches of how often keys come and how long they take (Cormode and Muthukrishnan, J. Algorithms 2005).

`cells` int64[workers, rows x columns, 2] holds a pair of sketches for each worker: in each row, a key's cell has the
number of tuples (F in 004) and the sum of what they took in ns (W) of all keys that fall into it. The two lie side by
side, as they are always read and written together. `cell_of` [keys, rows] has the places of each key's cells (see
`kernels.counts.count_min`).
`means` float64[workers, rows x columns, 2] is what a reader makes of cells: F, and W/F.
"""

import math
from typing import Any

import numpy as np

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["add", "clear", "copy", "drift", "mean", "sketch_size", "take_means", "take_snapshot"]

# A mean of no tuples in a snapshot.
_EMPTY = -1.0


def sketch_size(eps: float, delta: float) -> tuple[int, int]:
    """Return rows and columns for estimates within eps of all that was counted, missed with probability delta at most.

    ceil(log2(1/delta)) rows, ceil(e/eps) columns, 0 < eps and 0 < delta < 1 (004 section III-A, where the numerator e
    is misprinted as m).
    """
    return max(1, math.ceil(math.log2(1 / delta))), math.ceil(math.e / eps)


@njit(forceinline=True)
def add(cells: Any, worker: Any, cell_of: Any, key: Any, took: Any) -> None:
    """Count a tuple of a key that took `took` at a worker."""
    w, k = np.uint64(worker), np.uint64(key)
    for row in range(cell_of.shape[1]):
        cell = np.uint64(cell_of[k, np.uint64(row)])
        cells[w, cell, 0] += 1
        cells[w, cell, 1] += took


@njit(forceinline=True)
def mean(means: Any, worker: Any, cell_of: Any, key: Any) -> Any:
    """Estimate what a tuple of a key takes: W/F of the row in which its F is smallest, of equal ones the first.

    004, listing III.2.
    """
    w, k = np.uint64(worker), np.uint64(key)
    cell = np.uint64(cell_of[k, 0])
    fewest, found = means[w, cell, 0], means[w, cell, 1]
    for row in range(1, cell_of.shape[1]):
        cell = np.uint64(cell_of[k, np.uint64(row)])
        count, its = means[w, cell, 0], means[w, cell, 1]
        fewer = count < fewest
        fewest = count if fewer else fewest
        found = its if fewer else found
    return found


@njit
def take_means(cells: Any, place: Any, columns: Any, means: Any, worker: Any, is_zero: Any) -> None:
    """Turn the cells at a place into a worker's means.

    A cell of no tuples gets the mean of all tuples, or 0 if there are none, or if an empty cell `is_zero`.
    """
    tuples, work = np.int64(0), np.int64(0)
    for cell in range(columns):
        tuples += cells[place, cell, 0]
        work += cells[place, cell, 1]
    overall = np.float64(work) / np.float64(tuples) if tuples > 0 and not is_zero else 0.0
    for cell in range(cells.shape[1]):
        count = cells[place, cell, 0]
        means[worker, cell, 0] = count
        means[worker, cell, 1] = np.float64(cells[place, cell, 1]) / np.float64(count) if count > 0 else overall


@njit
def take_snapshot(cells: Any, worker: Any, snapshot: Any) -> None:
    """Keep W/F of a worker's cells in `snapshot` float64[workers, rows x columns] (S in 004)."""
    for cell in range(cells.shape[1]):
        count = cells[worker, cell, 0]
        snapshot[worker, cell] = np.float64(cells[worker, cell, 1]) / np.float64(count) if count > 0 else _EMPTY


@njit
def drift(cells: Any, worker: Any, snapshot: Any, every: Any, outer: Any) -> Any:
    """Return how far a worker's means have moved from its snapshot, relative to their sum (eta in 004, equation 1).

    Cells that the snapshot had no tuple for are left out, or with `every` count as means of 0. With `outer` the sum of
    the differences is taken absolute rather than each. Infinite if the snapshot has no mean over 0 and they moved.
    """
    moved, total = 0.0, 0.0
    for cell in range(cells.shape[1]):
        before = snapshot[worker, cell]
        if before < 0.0:
            if not every:
                continue
            before = 0.0
        count = cells[worker, cell, 0]
        mean_now = np.float64(cells[worker, cell, 1]) / np.float64(count) if count > 0 else 0.0
        moved += before - mean_now if outer else abs(before - mean_now)
        total += before
    moved = abs(moved)
    if total > 0.0:
        return moved / total
    return 0.0 if moved == 0.0 else np.inf


@njit
def copy(cells: Any, worker: Any, target: Any, place: Any) -> None:
    """Copy a worker's cells to a place of `target`."""
    for cell in range(cells.shape[1]):
        target[place, cell, 0] = cells[worker, cell, 0]
        target[place, cell, 1] = cells[worker, cell, 1]


@njit
def clear(cells: Any, worker: Any) -> None:
    """Empty a worker's cells."""
    for cell in range(cells.shape[1]):
        cells[worker, cell, 0] = 0
        cells[worker, cell, 1] = 0
