"""Compiles functions, and keeps their code on disk."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.runtime.nrt import rtsys

from streamgroup.base.compiling.code_cache import guarded
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["compiled_on_disk"]

# Where the compiler puts code is a setting of the whole process: who changes it holds this, and sets it back.
_SETTING = threading.Lock()


def compiled_on_disk(
    function: Callable[..., Any], directory: Path, own: str, *, outside: bool = False, **options: Any
) -> Any:
    """Return numba's dispatcher of a function whose code is kept under the name `own` in a directory; nogil.

    Who names the directory sees to it that code of other sources has another. Before code is loaded numba prepares all
    that compiling needs, in 0.2 s; code of the package uses only numba's memory management. What code from `outside`
    calls is not known.
    """
    settings: Any = config
    with _SETTING:
        previous = settings.CACHE_DIR
        settings.CACHE_DIR = str(directory)
        try:
            dispatcher: Any = njit(function, nogil=True, cache=True, **options)
        finally:
            settings.CACHE_DIR = previous
    return guarded(dispatcher, directory, own, None if outside else rtsys.initialize)
