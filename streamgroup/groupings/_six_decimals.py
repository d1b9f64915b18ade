"""A parameter type of groupings: numbers with at most six decimals, so that products with counts are exact."""

from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator

__all__ = ["Millionths"]


def _six_decimals(share: float) -> float:
    if (Fraction(str(share)) * 1_000_000).denominator != 1:
        raise ValueError("it can have 6 decimals at most")
    return share


# A float that is a whole number of millionths.
Millionths = Annotated[float, AfterValidator(_six_decimals)]
