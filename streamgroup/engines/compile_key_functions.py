"""Compiles functions over all keys of a trace, with a cache on disk that cannot be stale.

numba's cache looks only at the file of the cached function. Here its directory is named by a digest of all sources of
this room and of the kernels, so that an edited helper is another directory.
"""

import contextlib
import functools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

from streamgroup.base.compiling.code_cache import (
    code_directory,
    is_at_hand,
    sources_digest,
)
from streamgroup.base.compiling.plain_python_kinds import NotPlainError
from streamgroup.kernels.compiling.call_kernel import cells, interpreted
from streamgroup.kernels.compiling.compiled_on_disk import compiled_on_disk

__all__ = ["compiled"]

# Cells of arrays that are looked at in the time that it takes to compile: keys in bytes and what is found of each.
_FEW = 1 << 21
_ROOMS = ("engines", "kernels")


@cache
def _directory() -> Path:
    return code_directory(sources_digest(_ROOMS, numba.__version__), "engines")


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is called and keep the code on disk; it lets other threads run.

    While it is not compiled, calls with little to do are interpreted, as long as they have little to do together.
    """
    made = compiled_on_disk(function, _directory(), f"{function.__module__}.{function.__name__}")
    seen = 0

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        nonlocal seen
        if seen <= _FEW and not is_at_hand(made, arguments):
            seen += cells(arguments)
            if seen <= _FEW:
                # A signed number that does not fit wraps in compiled code only, which writes all results anew.
                with contextlib.suppress(NotPlainError, OverflowError, ValueError):
                    return interpreted(function, *arguments)
        return made(*arguments)

    return run
