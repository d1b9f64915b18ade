"""Zipf: key `k<i>` comes with probability proportional to (i + 1)^-exponent, independently for each tuple.

The support is finite (`keys` keys) and the distribution function is inverted exactly, so exponents of 1 and
below, and 0 (uniform), are as good as any. Tuples come at a constant rate. Every draw depends on the seed and
the tuple's place alone.
"""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator, model_validator

from streamgroup.ingest.generators.protocol import Chunk, Stream
from streamgroup.kernels.draws import uniform

__all__ = ["Params", "generate"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 2**63 - 1
_GUIDE = 1 << 16


class Params(BaseModel):
    """The parameters of a Zipf stream."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tuples: int = Field(default=1_000_000, ge=1, le=10**12, description="number of tuples (m)")
    keys: int = Field(default=10_000, ge=1, le=10**8, description="number of keys that may come (K)")
    exponent: float = Field(default=1.2, ge=0, le=3, description="skew: 0 is uniform (z)")
    rate: Decimal = Field(
        default=Decimal(10_000),
        gt=0,
        le=10**9,
        decimal_places=6,
        description="tuples a second, at most 6 decimals",
    )
    start: int = Field(
        default=0,
        ge=-(2**63),
        le=_LAST,
        description="time of the first tuple: us since 1970 (UTC), or an ISO 8601 text",
    )
    seed: int = Field(default=0, ge=0, le=_LAST, description="seed of all draws")

    @field_validator("start", mode="before")
    @classmethod
    def _moment(cls, value: Any) -> Any:
        if not isinstance(value, str) or value.strip().lstrip("+-").isdigit():
            return value
        moment = datetime.fromisoformat(value.strip())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)

    @field_serializer("rate")
    def _number(self, rate: Decimal) -> int | float:
        return int(rate) if rate == int(rate) else float(rate)

    @model_validator(mode="after")
    def _fits(self) -> "Params":
        if self.start + (self.tuples - 1) * 1_000_000 / Fraction(self.rate) > _LAST:
            raise ValueError("the last tuple's time does not fit into 64 bits; raise the rate or take fewer tuples")
        return self


def generate(params: Params) -> Stream:
    """Make the stream: tuple i at start + floor(i * 10^6 / rate) us, its label the key's rank from 0."""
    rank = _inverse(_cdf(params.keys, params.exponent))
    rate = Fraction(params.rate)

    def chunk(first: int, rows: int) -> Chunk:
        index = np.arange(first, first + rows, dtype=np.int64)
        return Chunk(_times(params.start, rate, first, rows), rank(uniform(params.seed, "zipf", index)))

    return Stream(params.tuples, params.keys, chunk, lambda label: b"k%d" % label)


def _times(start: int, rate: Fraction, first: int, rows: int) -> NDArray[np.int64]:
    """Give start + floor(i * 10^6 / rate) exactly, for `rows` indices from `first` on (up to 2^20)."""
    # 2^20 * 10^6 * 10^6 (six decimals) stays below 2^63; the part that may not is a Python integer.
    step = 1_000_000 * rate.denominator
    whole, rest = divmod(first * step, rate.numerator)
    return (np.arange(rows, dtype=np.int64) * step + rest) // rate.numerator + (start + whole)


def _cdf(keys: int, exponent: float) -> NDArray[np.float64]:
    """Give P(rank <= i) for i = 0, ..., keys - 1; summed one by one in Python, in one order everywhere."""
    weights = (float(i) ** -exponent for i in range(1, keys + 1))
    sums = np.fromiter(itertools.accumulate(weights), dtype=np.float64, count=keys)
    normal: NDArray[np.float64] = sums / sums[-1]
    return normal


def _inverse(cdf: NDArray[np.float64]) -> Callable[[NDArray[np.float64]], NDArray[np.int64]]:
    """Invert a distribution function: u in [0, 1) to the first rank whose cdf is above u.

    A guide table (Chen and Asau, 1974) settles at once every u whose cell, 2^-16 wide, holds no step of the
    cdf; only the others are searched.
    """
    guide = np.searchsorted(cdf, np.arange(_GUIDE + 1) / _GUIDE, side="right")

    def rank(u: NDArray[np.float64]) -> NDArray[np.int64]:
        cell = (u * _GUIDE).astype(np.int64)
        found = guide[cell]
        open_ = np.flatnonzero(guide[cell + 1] != found)
        found[open_] = np.searchsorted(cdf, u[open_], side="right")
        return found

    return rank
