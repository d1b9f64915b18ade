"""Compiling what runs over all keys of a trace, with a cache on disk that cannot be stale.

numba's cache looks only at the file of the cached function. Here its directory is named by a digest of all sources of
this room and of the kernels, so that an edited helper is another directory.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config

from streamgroup.base.code_cache import SETTING, code_directory, guarded, sources_digest

__all__ = ["compiled", "helper"]

_ROOMS = ("engines", "kernels")

# What compiled code of this room calls; it is compiled into its callers.
helper = numba.njit


@cache
def _directory() -> Path:
    return code_directory(sources_digest(_ROOMS, numba.__version__), "engines")


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call and keep the code on disk; it lets other threads run."""
    settings: Any = config
    directory = _directory()
    with SETTING:
        previous = settings.CACHE_DIR
        settings.CACHE_DIR = str(directory)
        try:
            dispatcher: Any = numba.njit(function, nogil=True, cache=True)
        finally:
            settings.CACHE_DIR = previous
    return guarded(dispatcher, directory, f"{function.__module__}.{function.__name__}")
