"""Count-Min sketches (Cormode and Muthukrishnan, J. Algorithms 2005): where the cells of keys are, and counting.

`cells` [sources, rows x columns], int64 or float64, hold a sketch for each source; `cell_of` [keys, rows] has the
places of each key's cells.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.hash_placement import sketch_columns

__all__ = ["cells_of_keys", "count"]


def cells_of_keys(hash_lo: NDArray[np.int64], rows: int, columns: int) -> NDArray[np.uint32] | NDArray[np.uint16]:
    """Return the places of each key's cells, one in each row, [keys, rows]: row x columns + column.

    Of the narrowest type that holds them: the smaller the table, the more of it is in the processor's cache.
    """
    most = rows * columns
    found = np.empty((len(hash_lo), rows), dtype=np.uint16 if most <= 1 << 16 else np.uint32)
    for row in range(rows):
        found[:, row] = row * columns + sketch_columns(hash_lo, row, columns)
    return found


@njit(forceinline=True)
def count(cells: Any, source: Any, cell_of: Any, key: Any, weight: Any) -> Any:
    """Add the weight of a tuple to its key's cells, and return the least of them, the key's estimate."""
    s, k = np.uint64(source), np.uint64(key)
    cell = np.uint64(cell_of[k, 0])
    least = cells[s, cell] + weight
    cells[s, cell] = least
    for row in range(1, cell_of.shape[1]):
        cell = np.uint64(cell_of[k, np.uint64(row)])
        value = cells[s, cell] + weight
        cells[s, cell] = value
        least = min(least, value)
    return least
