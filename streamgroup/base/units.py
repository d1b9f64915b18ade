"""Parses numbers with units, exactly: durations, counts, shares, places in a stream.

Decimal texts become `fractions.Fraction`, so that "0.1" is one tenth and arithmetic on it stays exact.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from streamgroup.base.errors import UsageError

__all__ = [
    "LONGEST_NS",
    "Extent",
    "Position",
    "index_of",
    "parse_duration_ns",
    "parse_extent",
    "parse_number",
    "parse_position",
]

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
_DURATION = re.compile(r"^\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,3})?)\s*(ns|us|ms|s|min|m|h|d)\s*$")
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
    match = _DURATION.match(text)
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


@dataclass(frozen=True)
class Extent:
    """A place or length in a stream: a time in ns, a number of tuples, or a share of the tuples."""

    kind: Literal["time", "count", "share"]
    ns: int
    count: int
    share: Fraction


def parse_extent(text: str, what: str) -> Extent:
    """Read `10s` (time), `50000` (tuples) or `1%` (share of the tuples)."""
    stripped = text.strip()
    if stripped.endswith("%"):
        share = parse_number(stripped[:-1], what) / 100
        if not 0 <= share <= 1:
            raise UsageError(f"{what}: {text!r} is not between 0% and 100%")
        return Extent("share", 0, 0, share)
    if re.fullmatch(r"[0-9][0-9_]*", stripped):
        return Extent("count", 0, int(stripped.replace("_", "")), Fraction(0))
    if _DURATION.match(stripped) is None:
        raise UsageError(f"{what}: {text!r} is not a time, a count or a share", "write 10s, 50000 or 1%")
    return Extent("time", parse_duration_ns(stripped, what), 0, Fraction(0))


def index_of(extent: Extent, tuples: int) -> int | None:
    """Return the first tuple that is not before a place in a stream: a share p is ceil(p x tuples); None for a time.

    As a length, it is the number of the first tuples that make it up.
    """
    if extent.kind == "time":
        return None
    return -(-extent.share.numerator * tuples // extent.share.denominator) if extent.kind == "share" else extent.count


@dataclass(frozen=True)
class Position:
    """A place in a stream: a time in ns since the first arrival, or the index of a tuple; the other is None."""

    time_ns: int | None
    index: int | None


def parse_position(text: str, what: str, tuples: int) -> Position:
    """Read `10s` (a time), `50000` (a tuple, from 0) or `50%` (of the tuples); UsageError past the last one."""
    extent = parse_extent(text, what)
    index = index_of(extent, tuples)
    if index is None:
        return Position(extent.ns, None)
    if index >= tuples:
        raise UsageError(f"{what}: there is no tuple {index}: the trace has only {tuples} tuples")
    return Position(None, index)
