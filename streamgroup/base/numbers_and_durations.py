"""Parses numbers, and durations with their units, exactly.

Decimal texts become `fractions.Fraction`, so that "0.1" is one tenth and arithmetic on it stays exact.
"""

import re
from fractions import Fraction

from streamgroup.base.errors import UsageError

__all__ = ["DURATION", "LONGEST_NS", "parse_duration_ns", "parse_number"]

NS_PER = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
LONGEST_NS = 1 << 62
_MOST_DIGITS = 400
DURATION = re.compile(r"^\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,3})?)\s*(ns|us|ms|s|min|m|h|d)\s*$")
_NUMBER = re.compile(r"^\s*[+-]?([0-9][0-9_]*\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*$")


def parse_number(text: str, what: str) -> Fraction:
    """Read a decimal number exactly; `what` names the option in the error."""
    if len(text) > _MOST_DIGITS:
        raise UsageError(f"{what}: a number of {len(text)} characters", f"write one of at most {_MOST_DIGITS}")
    if not _NUMBER.match(text):
        raise UsageError(f"{what}: {text!r} is not a number")
    return Fraction(text.strip().replace("_", ""))


def parse_duration_ns(text: str, what: str) -> int:
    """Read a duration such as `250us`, `1.5ms`, `10s`, `2h` as whole nanoseconds (half to even)."""
    match = DURATION.match(text)
    if match is None:
        if text.strip() == "0":
            return 0
        raise UsageError(
            f"{what}: {text!r} is not a duration", "write a number with ns, us, ms, s, min, h or d, as in 10s"
        )
    duration = round(Fraction(match.group(1)) * NS_PER[match.group(2)])
    if duration > LONGEST_NS:
        raise UsageError(f"{what}: {text} is longer than the clock's 146 years")
    return duration
