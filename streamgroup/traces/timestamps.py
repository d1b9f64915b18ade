"""Converts timestamps to microseconds, the unit of a trace, and writes them for people."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["iso_time", "moment", "to_micros"]

_PER_UNIT = {"s": 1_000_000, "ms": 1_000}
_INT64_MAX = 2**63 - 1


def to_micros(values: NDArray[np.int64], unit: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Scale int64[n] of a unit of Arrow's (s, ms, us, ns) to us, rounded down, and mark (bool[n]) what does not fit.

    What does not fit is 0 in the result.
    """
    if unit in ("us", "ns"):
        return (values if unit == "us" else values // 1000), np.zeros(len(values), np.bool_)
    scale = _PER_UNIT[unit]
    most = _INT64_MAX // scale
    # Not by the absolute value: that of the least int64 is negative.
    misfit = (values > most) | (values < -most)
    return np.where(misfit, 0, values) * scale, misfit


def iso_time(us: int) -> str | None:
    """Write us since 1970 as a date and a time in UTC; None where the calendar does not reach."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).isoformat(sep=" ")
    except OverflowError:
        return None


def moment(us: int) -> str:
    """Write us since 1970 as a date and a time in UTC without what says nothing; in us where there is no date."""
    text = iso_time(us)
    if text is None:
        return f"{us} us"
    text = text.removesuffix("+00:00")
    return text.rstrip("0") if "." in text else text
