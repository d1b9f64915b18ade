"""Parses places in a stream and lengths of it, given as a time, a number of tuples or a share: `10s`, `50000`, `1%`."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import DURATION, parse_duration_ns, parse_number

__all__ = ["Extent", "Position", "index_of", "parse_extent", "parse_position"]


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
    if DURATION.match(stripped) is None:
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
