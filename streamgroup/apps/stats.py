"""Count, sum, mean, minimum and maximum of the values of each key."""

from math import inf
from typing import NamedTuple

from streamgroup.apps._compensated_sum import added
from streamgroup.apps.protocol import AppParams

__all__ = ["COLUMNS", "Params", "Result", "Stats", "finish", "merge", "start", "update"]

COLUMNS = ("value",)


class Params(AppParams):
    """It has no parameters."""


class Stats(NamedTuple):
    """What is known of the values so far; their sum has two parts (see `_compensated_sum.added`)."""

    values: int
    sum: float
    rest: float
    least: float
    largest: float


class Result(NamedTuple):
    """The statistics of the values of a key."""

    count: int  # type: ignore[assignment]
    sum: float
    mean: float
    min: float
    max: float


def start(params: Params) -> Stats:
    """Begin without values."""
    del params
    return Stats(0, 0.0, 0.0, inf, -inf)


def update(state: Stats, key: int, value: float, weight: float) -> Stats:
    """Add a value."""
    total, rest = added(state.sum, state.rest, value)
    return Stats(state.values + 1, total, rest, min(state.least, value), max(state.largest, value))


def merge(a: Stats, b: Stats) -> Stats:
    """Put the values of two workers together."""
    total, rest = added(a.sum, a.rest + b.rest, b.sum)
    return Stats(a.values + b.values, total, rest, min(a.least, b.least), max(a.largest, b.largest))


def finish(state: Stats) -> Result:
    """Return the statistics."""
    total = state.sum + state.rest
    return Result(state.values, total, total / state.values, state.least, state.largest)
