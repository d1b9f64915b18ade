"""Times among a grouping's parameters, as texts with units (`10s`, `250us`): moments, periods and delays."""

from functools import partial
from typing import Annotated

from pydantic import AfterValidator

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import LONGEST_NS, parse_duration_ns
from streamgroup.groupings.protocol import Described

__all__ = ["Delay", "Period", "Time", "delay_ns", "period_ns", "time_ns"]


def _checked(text: str | None, what: str, least: int = 0) -> str | None:
    if text is None:
        return None
    try:
        nanoseconds = parse_duration_ns(text, what)
    except UsageError as error:
        raise ValueError(f"{error.message} ({error.hint})" if error.hint else error.message) from None
    if nanoseconds < least:
        raise ValueError(f"{what} is longer than 0")
    return text.strip()


Time = Annotated[str, AfterValidator(partial(_checked, what="a time")), Described("a time, 0 or more: 15s")]
Period = Annotated[
    str, AfterValidator(partial(_checked, what="a period", least=1)), Described("a time above 0 such as 10s")
]
Delay = Annotated[
    str | None,
    AfterValidator(partial(_checked, what="a delay")),
    Described("a time such as 5ms; none: the control delay"),
]


def time_ns(text: str, what: str = "a time") -> int:
    """Return a checked time in ns, short enough to be added to any time of the clock."""
    return min(parse_duration_ns(text, what), LONGEST_NS - 1)


def period_ns(text: str) -> int:
    """Return a checked period in ns, above 0 and short enough to be added to any time of the clock."""
    return time_ns(text, "a period")


def delay_ns(text: str | None, control_delay: int) -> int:
    """Return a checked delay in ns, `control_delay` for None; short enough to be added to any time of the clock."""
    return min(control_delay, LONGEST_NS - 1) if text is None else time_ns(text, "a delay")
