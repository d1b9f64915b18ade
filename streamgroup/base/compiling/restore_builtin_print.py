"""Restores Python's own `print` for libraries that look for it where another has taken its place."""

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["builtin_print"]


@contextmanager
def builtin_print() -> Iterator[None]:
    """Put Python's own `print` back within the block.

    The Python processes of PyFlink have one that writes to a log instead, and keeps the own one in `_print`. numba
    cannot be imported there: it looks `print` up by its name and module.
    """
    found: Any = builtins.print
    builtins.print = getattr(getattr(found, "__self__", None), "_print", found)
    try:
        yield
    finally:
        builtins.print = found
