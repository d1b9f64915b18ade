"""What is known of the values of rewritten code: which of them are unsigned words, or hold some."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ANY", "LOOSE", "SMALL", "WORD", "Array", "Fields", "Kind", "NotPlainError", "join", "kind_of", "part"]

# What a number is: signed or a float; a word of 64 bits, in range or only modulo 2^64; or an unsigned number of fewer
# bits, of which two make a word.
ANY, WORD, LOOSE, SMALL = range(4)


class NotPlainError(Exception):
    """A function uses what is not rewritten."""


class Array(NamedTuple):
    """An array of so many axes; what its elements are."""

    element: int
    axes: int


class Fields(NamedTuple):
    """A NamedTuple, a tuple (its fields are numbered) or an array of records: names and kinds of its fields."""

    names: tuple[str, ...]
    kinds: tuple["Kind", ...]

    def of(self, name: str) -> "Kind":
        """Return the kind of a field."""
        return self.kinds[self.names.index(name)] if name in self.names else ANY


Kind = int | Array | Fields


def join(one: Kind, two: Kind) -> Kind:
    """Return the kind of what is one or the other."""
    if one == two:
        return one
    if isinstance(one, int) and isinstance(two, int):
        if {one, two} == {ANY, SMALL}:
            return ANY
        if ANY not in (one, two):
            return WORD if SMALL in (one, two) and LOOSE not in (one, two) else LOOSE
    raise NotPlainError("a word or something else")


def part(kind: Kind, field: str | None = None) -> Kind:
    """Return the kind of an element, of a tuple of a field (None: of any)."""
    if isinstance(kind, Array):
        return kind.element if kind.axes == 1 else Array(kind.element, kind.axes - 1)
    if isinstance(kind, Fields):
        if field is not None:
            return kind.of(field)
        for one in kind.kinds:
            join(one, kind.kinds[0])
        return kind.kinds[0] if kind.kinds else ANY
    return ANY


def kind_of(value: Any) -> Kind:
    """Return which words a value of compiled code is, or holds."""
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or tuple(map(str, range(len(value))))
        return Fields(names, tuple(map(kind_of, value)))
    return _kind_of_cells(value.dtype, value.ndim) if isinstance(value, (np.ndarray, np.generic)) else ANY


@cache
def _kind_of_cells(dtype: np.dtype[Any], axes: int) -> Kind:
    if axes and dtype.names:
        return Fields(dtype.names, tuple(_kind_of_cells(dtype[name], axes) for name in dtype.names))
    element = ANY if dtype.kind != "u" else WORD if dtype.itemsize == 8 else SMALL
    return Array(element, axes) if axes else element
