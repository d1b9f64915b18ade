"""A threshold's text, such as 0.02, 1/50 or 1/4n, as an exact fraction."""

import re
from fractions import Fraction
from functools import cache

__all__ = ["share"]

LARGEST_DENOMINATOR = 1 << 30


@cache
def share(text: str, n: int) -> Fraction:
    """What the text says with n workers: above 0, cut to 1."""
    plain = re.sub(r"[\s()]", "", str(text))
    of_n = re.fullmatch(r"(\d+)/(\d*)n", plain)
    value = Fraction(int(of_n[1]), int(of_n[2] or 1) * n) if of_n else Fraction(plain)
    if value <= 0 or value.denominator > LARGEST_DENOMINATOR:
        raise ValueError(f"share {text}")
    return min(value, Fraction(1))
