"""Periods among a grouping's parameters, as texts with units: `10s`, `250us`."""

from typing import Annotated

from pydantic import AfterValidator

from streamgroup.base.errors import UsageError
from streamgroup.base.units import LONGEST_NS, parse_duration_ns

__all__ = ["Period", "period_ns"]


def _checked(text: str) -> str:
    try:
        period = parse_duration_ns(text, "a period")
    except UsageError as error:
        raise ValueError(f"{error.message} ({error.hint})" if error.hint else error.message) from None
    if period == 0:
        raise ValueError("a period is longer than 0")
    return text.strip()


Period = Annotated[str, AfterValidator(_checked)]


def period_ns(text: str) -> int:
    """Give a checked period in ns, above 0 and short enough to be added to any time of the clock."""
    return min(parse_duration_ns(text, "a period"), LONGEST_NS - 1)
