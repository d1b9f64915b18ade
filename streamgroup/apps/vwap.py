"""The volume-weighted average price of each key: sum(value x weight) / sum(weight) (002, section 5)."""

from math import nan
from typing import NamedTuple

from streamgroup.apps._compensated_sum import added
from streamgroup.apps.protocol import AppParams

__all__ = ["COLUMNS", "Params", "Vwap", "finish", "merge", "start", "update"]

COLUMNS = ("value", "weight")


class Params(AppParams):
    """It has no parameters."""


class Vwap(NamedTuple):
    """The sums of value x weight and of weight, each in two parts (see `_compensated_sum.added`)."""

    traded: float
    traded_rest: float
    volume: float
    volume_rest: float


def start(params: Params) -> Vwap:
    """Begin with nothing traded."""
    del params
    return Vwap(0.0, 0.0, 0.0, 0.0)


def update(state: Vwap, key: int, value: float, weight: float) -> Vwap:
    """Add a trade."""
    traded, traded_rest = added(state.traded, state.traded_rest, value * weight)
    volume, volume_rest = added(state.volume, state.volume_rest, weight)
    return Vwap(traded, traded_rest, volume, volume_rest)


def merge(a: Vwap, b: Vwap) -> Vwap:
    """Add the sums of two workers."""
    traded, traded_rest = added(a.traded, a.traded_rest + b.traded_rest, b.traded)
    volume, volume_rest = added(a.volume, a.volume_rest + b.volume_rest, b.volume)
    return Vwap(traded, traded_rest, volume, volume_rest)


def finish(state: Vwap) -> float:
    """Return the price; no number where nothing was traded."""
    volume = state.volume + state.volume_rest
    return (state.traded + state.traded_rest) / volume if volume != 0.0 else nan
