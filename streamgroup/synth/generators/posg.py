"""POSG: keys whose tuples cost different times, as in the experiments of the POSG paper (section V-A).

The keys come uniformly or by Zipf's law. The costs are `w_n` values between `w_min` and `w_max`, or those given; which
key costs what is drawn at random, once for all tuples of the stream.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from math import comb
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_serializer, field_validator, model_validator

from streamgroup.base.errors import UsageError
from streamgroup.kernels.elementary import exp, log
from streamgroup.synth.arrivals import RATE, Start, arrival_times, check_times, interval_of, plain
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.synth.permutations import shuffled
from streamgroup.synth.zipf_ranks import zipf_ranks, zipf_weights

__all__ = ["Params", "generate"]

F64 = NDArray[np.float64]

# Longest cost in ms: 10 days.
_LONGEST = 864_000_000
_BLOCK = 1 << 20


class Params(Start):
    """The parameters of a stream with costs. Times of execution are in ms, as in the paper."""

    tuples: int = Field(default=32_768, ge=1, le=10**12, description="number of tuples (m)")
    keys: int = Field(default=4_096, ge=1, le=10**7, description="number of items (n)")
    exponent: float = Field(default=1.0, ge=0, le=3, description="skew of the items: 0 is uniform (alpha)")
    w_n: int = Field(default=64, ge=1, le=10_000, description="number of distinct execution times")
    w_min: Decimal = Field(
        default=Decimal(1), gt=0, le=_LONGEST, decimal_places=6, description="shortest execution time in ms"
    )
    w_max: Decimal = Field(
        default=Decimal(64), gt=0, le=_LONGEST, decimal_places=6, description="longest execution time in ms"
    )
    steps: Literal["constant", "geometric"] = Field(
        default="constant", description="how the execution times go from w_min to w_max: by equal steps or equal ratios"
    )
    values: tuple[Decimal, ...] | None = Field(
        default=None, description="execution times in ms instead, with commas, as 25,5,1"
    )
    association: Literal["uniform", "geometric", "binomial"] = Field(
        default="uniform",
        description="how many items have each value: equally many, or by this law of the value's number",
    )
    probability: Decimal = Field(
        default=Decimal("0.5"), gt=0, lt=1, decimal_places=6, description="parameter of the geometric or binomial law"
    )
    shares: tuple[Decimal, ...] | None = Field(
        default=None, description="shares of the items instead, one for each value, with commas, in any unit"
    )
    rate: Annotated[Decimal | None, RATE] = Field(
        default=None, description="tuples a second; from instances and provisioning unless given"
    )
    instances: int = Field(default=5, ge=1, le=10**6, description="instances that the rate is for (k)")
    provisioning: Decimal = Field(
        default=Decimal(100),
        gt=0,
        le=10**6,
        decimal_places=6,
        description="percentage of the mean execution time by instances that lies between two tuples",
    )

    @field_validator("values", "shares", mode="before")
    @classmethod
    def _list(cls, value: Any) -> Any:
        return tuple(each.strip() for each in value.split(",")) if isinstance(value, str) else value

    @field_validator("values", "shares")
    @classmethod
    def _positive(cls, value: tuple[Decimal, ...] | None) -> tuple[Decimal, ...] | None:
        if value is not None:
            if not 1 <= len(value) <= 10_000:
                raise ValueError("1 to 10000 numbers, with commas between")
            for each in value:
                if not 0 <= each <= _LONGEST or each != round(each, 6):
                    raise ValueError(f"{each} is not a number from 0 to {_LONGEST} with at most 6 decimals")
        return value

    @model_validator(mode="after")
    def _agree(self) -> "Params":
        given = self.model_fields_set
        if self.values is not None and (clash := sorted({"w_n", "w_min", "w_max", "steps"} & given)):
            raise ValueError(f"--values and --{clash[0].replace('_', '-')} are two ways to say the same: give one")
        if self.shares is not None and "association" in given:
            raise ValueError("--shares and --association are two ways to say the same: give one")
        count = self.w_n if self.values is None else len(self.values)
        if self.shares is not None and (len(self.shares) != count or not sum(self.shares)):
            raise ValueError(f"shares: {len(self.shares)} for {count} values; one for each is needed, not all 0")
        if count > self.keys:
            raise ValueError(f"{count} values for {self.keys} keys; take more keys or fewer values")
        if self.w_min > self.w_max:
            raise ValueError(f"w_min {self.w_min} is above w_max {self.w_max}")
        if self.rate is not None:
            check_times(self.start, interval_of(self.rate), self.tuples)
        return self

    @field_serializer("w_min", "w_max", "probability", "rate", "provisioning", when_used="unless-none")
    def _number(self, value: Decimal) -> int | float:
        return plain(value)

    @field_serializer("values", "shares", when_used="unless-none")
    def _numbers(self, value: tuple[Decimal, ...]) -> list[float]:
        return [float(each) for each in value]


def generate(params: Params) -> Stream:
    """Make the stream; a label is the item's rank from 0, its cost in us."""
    rank = zipf_ranks(params.keys, params.exponent)
    cost = _costs(params)
    interval = _interval(params, cost)
    try:
        check_times(params.start, interval, params.tuples)
    except ValueError as error:
        raise UsageError(f"posg: {error}") from None

    def chunk(first: int, rows: int) -> Chunk:
        label = rank(params.seed, "posg", np.arange(first, first + rows, dtype=np.int64))
        return Chunk(arrival_times(params.start, interval, first, rows), label, cost[label])

    return Stream(params.tuples, params.keys, chunk, lambda label: b"k%d" % label)


def _costs(params: Params) -> NDArray[np.float32]:
    """Return the cost of each item in us: value j goes to as many items as its share says, picked at random."""
    values = _values(params)
    share = _shares(params, len(values))
    whole = sum(share)
    ends = [int(total / whole * params.keys + Fraction(1, 2)) for total in accumulate(share)]
    items = shuffled(params.seed, "posg items", params.keys)
    cost = np.empty(params.keys, np.float32)
    for value, first, stop in zip(values, [0, *ends], ends, strict=False):
        cost[items[first:stop]] = value
    return cost


def _values(params: Params) -> list[float]:
    """Return the execution times in us."""
    if params.values is not None:
        return [float(each * 1000) for each in params.values]
    low, high = (Fraction(each) * 1000 for each in (params.w_min, params.w_max))
    gaps = max(params.w_n - 1, 1)
    if params.steps == "constant":
        return [float(low + (high - low) * j / gaps) for j in range(params.w_n)]
    ratio = log(np.array([float(high / low)]))
    return [float(low) * float(exp(ratio * (j / gaps))[0]) for j in range(params.w_n)]


def _shares(params: Params, values: int) -> Sequence[Fraction]:
    """Return the share of the items that each value has, up to a common factor."""
    if params.shares is not None:
        return [Fraction(each) for each in params.shares]
    p = Fraction(params.probability)
    if params.association == "geometric":
        return [(1 - p) ** j for j in range(values)]
    if params.association == "binomial":
        return [comb(values - 1, j) * p**j * (1 - p) ** (values - 1 - j) for j in range(values)]
    return [Fraction(1)] * values


def _interval(params: Params, cost: NDArray[np.float32]) -> Fraction:
    """Return the time between two tuples in us: of the rate, or that which keeps the instances busy, in whole ns.

    The mean execution time is the expected one, the items weighted by their frequencies.
    """
    if params.rate is not None:
        return interval_of(params.rate)
    weight = total = 0.0
    for first in range(0, params.keys, _BLOCK):
        stop = min(first + _BLOCK, params.keys)
        weights = zipf_weights(first + 1, stop + 1, params.exponent)
        # One by one, not pairwise: the same sum on every machine.
        weight += float(np.cumsum(weights)[-1])
        total += float(np.cumsum(weights * cost[first:stop])[-1])
    ns = Fraction(total / weight) * 1000 * Fraction(params.provisioning) / 100 / params.instances
    return Fraction(max(round(ns), 1), 1000)
