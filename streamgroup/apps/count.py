"""How often each key comes: word count."""

from typing import NamedTuple

from streamgroup.apps.protocol import AppParams

__all__ = ["Count", "Params", "finish", "merge", "start", "update"]


class Params(AppParams):
    """Counting has no parameters."""


class Count(NamedTuple):
    """The tuples of a key."""

    tuples: int


def start(params: Params) -> Count:
    """Begin with none."""
    del params
    return Count(0)


def update(state: Count, key: int, value: float, weight: float) -> Count:
    """Count a tuple."""
    return Count(state.tuples + 1)


def merge(a: Count, b: Count) -> Count:
    """Add the counts of two workers."""
    return Count(a.tuples + b.tuples)


def finish(state: Count) -> int:
    """Return the count."""
    return state.tuples
