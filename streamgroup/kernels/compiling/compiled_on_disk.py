"""Compiles functions, and keeps their code on disk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import config
from numba.core.runtime.nrt import rtsys

from streamgroup.base.compiling.code_cache import SETTING, guarded

__all__ = ["compiled_on_disk"]


def compiled_on_disk(
    function: Callable[..., Any], directory: Path, own: str, *, outside: bool = False, **options: Any
) -> Any:
    """Return numba's dispatcher of a function whose code is kept under the name `own` in a directory; nogil.

    Who names the directory sees to it that code of other sources has another. Before code is loaded numba prepares all
    that compiling needs, in 0.2 s; code of the package uses only numba's memory management. What code from `outside`
    calls is not known.
    """
    settings: Any = config
    with SETTING:
        previous = settings.CACHE_DIR
        settings.CACHE_DIR = str(directory)
        try:
            dispatcher: Any = numba.njit(function, nogil=True, cache=True, **options)
        finally:
            settings.CACHE_DIR = previous
    return guarded(dispatcher, directory, own, None if outside else rtsys.initialize)
