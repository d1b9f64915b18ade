"""Calls compiled functions from Python: interpreted where compiling would take longer than what there is to do."""

from typing import Any

import numpy as np

from streamgroup.base.compiling.plain_python import plain, view

__all__ = ["MOST_CELLS", "call", "cells", "interpreted"]

# Cells of the arrays of a state that is interpreted: about a second's work if a function looks at all of them.
MOST_CELLS = 1 << 20
# Cells of the arrays of one call that is interpreted: compiling it takes some tenths of a second.
_MOST_CALLED = 1 << 16


def cells(value: Any) -> int:
    """Count the cells of an array, or of all arrays in a tuple."""
    if isinstance(value, np.ndarray):
        return value.size
    return sum(map(cells, value)) if isinstance(value, tuple) else 0


def call(function: Any, *arguments: Any) -> Any:
    """Call one of numba's functions from Python: interpreted unless its arrays are large.

    Such a call is not worth a place in a cache on disk, and without one it would be compiled in every process.
    """
    if cells(arguments) > _MOST_CALLED:
        return function(*arguments)
    return interpreted(function, *arguments)


def interpreted(function: Any, *arguments: Any) -> Any:
    """Call a function as plain Python."""
    found = plain(function, *arguments)(*map(view, arguments))
    return np.asarray(found) if isinstance(found, memoryview) else found
