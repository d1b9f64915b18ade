"""Arrival times of synthetic streams, and the parameters that generators share."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator, model_validator

__all__ = ["RATE", "Arrivals", "Rated", "Start", "ZipfArrivals", "arrival_times", "check_times", "interval_of", "plain"]

# The field of every rate.
RATE = Field(gt=0, le=10**9, decimal_places=6, description="tuples a second, at most 6 decimals")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 2**63 - 1


class Start(BaseModel):
    """The parameters of every generator: when the stream begins, and the seed of all draws."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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


class Rated(Start):
    """The same with a constant rate."""

    rate: Annotated[Decimal, RATE] = Decimal(10_000)

    @field_serializer("rate")
    def _number(self, rate: Decimal) -> int | float:
        return plain(rate)

    @property
    def interval(self) -> Fraction:
        """Time between two tuples in us."""
        return interval_of(self.rate)


class Arrivals(Rated):
    """The same with a number of tuples."""

    tuples: int = Field(default=1_000_000, ge=1, le=10**12, description="number of tuples (m)")

    @model_validator(mode="after")
    def _fits(self) -> "Arrivals":
        check_times(self.start, self.interval, self.tuples)
        return self


class ZipfArrivals(Arrivals):
    """The same for streams whose keys come by a Zipf law."""

    keys: int = Field(default=10_000, ge=1, le=10**8, description="number of keys that may come (K)")
    exponent: float = Field(default=1.2, ge=0, le=3, description="skew: 0 is uniform (z)")


def plain(number: Decimal) -> int | float:
    """Return a number as manifests hold it: whole if it is."""
    return int(number) if number == int(number) else float(number)


def interval_of(rate: Decimal) -> Fraction:
    """Return the time in us between two tuples that come at a rate, exactly."""
    return 1_000_000 / Fraction(rate)


def check_times(start: int, interval: Fraction, tuples: int) -> None:
    """Raise ValueError when the last tuple's time in us does not fit into 64 bits."""
    if start + (tuples - 1) * interval > _LAST:
        raise ValueError("the last tuple's time does not fit into 64 bits; raise the rate or take fewer tuples")


def arrival_times(start: int, interval: Fraction, first: int, rows: int) -> NDArray[np.int64]:
    """Return the times in us of the tuples first, ..., first + rows - 1 (rows up to 2^20).

    Tuple i comes at start + floor(i * interval), exactly, for intervals of which the numerator is at most 10^12 or the
    denominator at most 10^6.
    """
    # The rest is below the denominator and not above the numerator: 2^20 times it stays below 2^63.
    step, rest = divmod(interval.numerator, interval.denominator)
    whole, begun = divmod(first * rest, interval.denominator)
    index = np.arange(rows, dtype=np.int64)
    return index * step + (index * rest + begun) // interval.denominator + (start + first * step + whole)
