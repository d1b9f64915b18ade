"""Calls compiled functions from Python: interpreted where compiling would take longer than what there is to do."""

from functools import cache
from typing import Any

import numba
import numpy as np

from streamgroup.base.compiling.code_cache import code_directory, imported_digest
from streamgroup.base.compiling.plain_python import plain, view
from streamgroup.kernels.compiling.compiled_on_disk import compiled_on_disk

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
    """Call one of numba's functions from Python: interpreted unless its arrays are large."""
    if cells(arguments) > _MOST_CALLED:
        return _kept(function)(*arguments)
    return interpreted(function, *arguments)


@cache
def _kept(function: Any) -> Any:
    """Return a function of the package with its code on disk, so that not every process compiles it."""
    module = function.__module__
    if not module.startswith("streamgroup."):
        # Of a file outside the package the digest says nothing.
        return function
    directory = code_directory(imported_digest((__name__, module), numba.__version__))
    return compiled_on_disk(function.py_func, directory, f"{module}.{function.__qualname__}")


def interpreted(function: Any, *arguments: Any) -> Any:
    """Call a function as plain Python."""
    found = plain(function, *arguments)(*map(view, arguments))
    return np.asarray(found) if isinstance(found, memoryview) else found
