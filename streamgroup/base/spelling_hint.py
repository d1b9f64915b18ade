"""Hints for misspelt names."""

import difflib
from collections.abc import Iterable

__all__ = ["suggest"]


def suggest(name: str, among: Iterable[str]) -> str | None:
    """Return the hint for a misspelt name: the nearest one if it is near, else all of them."""
    known = sorted(among)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(known)}" if known else None
