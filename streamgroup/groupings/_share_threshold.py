"""Thresholds as shares of the stream: a number, a fraction, or one relative to the number of workers n (`1/4n`)."""

import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.groupings.protocol import Described

__all__ = ["Share", "checked_share", "share_of", "share_parts"]

# Counts and their errors times a denominator stay below 2^63 for any stream below 2^34 tuples.
_LARGEST_DENOMINATOR = 1 << 28
_DECIMAL = re.compile(r"(\d+)(?:\.(\d+))?")
_EXPONENT = re.compile(r"\d+(?:\.\d+)?[eE][+-]?\d{1,3}")
_RATIO = re.compile(r"(\d+)/(\d*)(n?)")


def _parts(text: str) -> tuple[int, int, bool]:
    """Read a share as numerator, denominator, and whether the denominator is multiplied by n."""
    if decimal := _DECIMAL.fullmatch(text):
        fraction = decimal[2] or ""
        value = Fraction(int(decimal[1] + fraction), 10 ** len(fraction))
        return value.numerator, value.denominator, False
    ratio = _RATIO.fullmatch(text)
    if ratio is None or not (ratio[2] or ratio[3]):
        raise ValueError("a share is a number such as 0.02, a fraction such as 1/50, or one of n such as 1/5n")
    value = Fraction(int(ratio[1]), int(ratio[2] or 1) or 1)
    if ratio[2] and int(ratio[2]) == 0:
        raise ValueError("a share cannot be divided by 0")
    return value.numerator, value.denominator, bool(ratio[3])


def _bare(text: object) -> str:
    """Write a share without spaces, brackets and exponent; 1/(5n) and 1/5n are the same, and 1e-05 is 0.00001."""
    bare = re.sub(r"[\s()*]", "", str(text))
    # Python writes small floats with an exponent.
    return format(Decimal(bare), "f") if _EXPONENT.fullmatch(bare) else bare


def _checked(text: str) -> str:
    numerator, denominator, of_n = _parts(text)
    if numerator == 0 or (not of_n and numerator > denominator):
        raise ValueError("a share must be above 0 and at most 1")
    if denominator * (MOST_WORKERS if of_n else 1) > _LARGEST_DENOMINATOR or numerator > _LARGEST_DENOMINATOR:
        raise ValueError("a share needs fewer digits: its denominator may be 2^28 at most (4096n with n)")
    return text


Share = Annotated[str, BeforeValidator(_bare), AfterValidator(_checked), Described("above 0, at most 1; or of n: 1/4n")]


def checked_share(text: str, what: str) -> str:
    """Read a share that is no parameter; `what` names the option in the UsageError for one that is none."""
    try:
        return _checked(_bare(text))
    except ValueError as error:
        raise UsageError(f"{what} {text}: {error}", "write 0.01, 1/50 or, of n workers, 1/5n") from None


def share_of(text: str, workers: int) -> Fraction:
    """Return the share that a checked text means for `workers` workers, at most 1."""
    numerator, denominator, of_n = _parts(text)
    return min(Fraction(numerator, denominator * (workers if of_n else 1)), Fraction(1))


def share_parts(text: str, workers: int) -> NDArray[np.int64]:
    """Return a share for so many workers as int64[2], numerator and denominator."""
    share = share_of(text, workers)
    return np.array([share.numerator, share.denominator], dtype=np.int64)
