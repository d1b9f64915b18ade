"""Skewed: names of 204 countries, one with a share of its own, the others alike.

These are the data sets of the Dynamic Key Grouping paper, `country-skew-r<share>` and `country-half-skew-r80` (section
5.1, Table 2); a half-skewed stream is skewed in its first half only.
"""

from contextlib import suppress
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_serializer, field_validator

from streamgroup.kernels.draws import uniform, words
from streamgroup.synth.arrivals import Arrivals, arrival_times
from streamgroup.synth.generators._countries import COUNTRIES
from streamgroup.synth.generators.protocol import Chunk, Stream

__all__ = ["Params", "generate"]


class Params(Arrivals):
    """The parameters of a skewed stream."""

    share: Decimal = Field(
        default=Decimal("0.3"),
        ge=0,
        le=1,
        max_digits=18,
        description="share of the hot key, 0.3 or 30%; at 0 no key is singled out",
    )
    half: bool = Field(default=False, description="skew the first half of the stream only; all keys alike in the other")
    rest: Literal["others", "all"] = Field(
        default="others",
        description="who gets the rest: the 203 others, or all 204, the hot key too, as in the paper's published code",
    )

    @field_validator("share", mode="before")
    @classmethod
    def _percent(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = value.strip()
        # What is no number at all cannot be compared either.
        with suppress(InvalidOperation):
            share = Decimal(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
            if 0 <= share <= 1:
                return share
        raise ValueError(f"{value!r} is not a share from 0 to 1 or 0% to 100%, such as 0.3 or 30%")

    @field_serializer("share")
    def _fraction(self, share: Decimal) -> float:
        return float(share)


def generate(params: Params) -> Stream:
    """Make the stream; label 0 is the hot key."""
    share = Fraction(params.share)
    # A draw of 53 bits is below the share when it is below this number.
    below = np.uint64(-(-share.numerator * 2**53 // share.denominator))
    skewed = (params.tuples + 1) // 2 if params.half else params.tuples
    keys = len(COUNTRIES)
    names = [name.encode() for name in COUNTRIES]

    def chunk(first: int, rows: int) -> Chunk:
        place = np.arange(first, first + rows, dtype=np.int64)
        u = uniform(params.seed, "skewed key", place)
        label = (u * keys).astype(np.int64)
        if share:
            if params.rest == "others":
                now = place < skewed
                label[now] = 1 + (u[now] * (keys - 1)).astype(np.int64)
            hot = words(params.seed, "skewed hot", place) >> np.uint64(11) < below
            label[hot & (place < skewed)] = 0
        return Chunk(arrival_times(params.start, params.interval, first, rows), label)

    return Stream(params.tuples, keys, chunk, names.__getitem__)
