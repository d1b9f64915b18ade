"""The service time of a control server, as a parameter of groupings."""

from typing import Annotated

from pydantic import AfterValidator

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import NS_PER, parse_duration_ns
from streamgroup.groupings.protocol import Described

__all__ = ["ServiceTime", "service_ns"]

_LONGEST_NS = NS_PER["h"]


def _checked(text: str) -> str:
    try:
        nanoseconds = parse_duration_ns(text, "a service time")
    except UsageError as error:
        raise ValueError(f"{error.message} ({error.hint})" if error.hint else error.message) from None
    if nanoseconds > _LONGEST_NS:
        raise ValueError("a service time is at most 1h")
    return text.strip()


ServiceTime = Annotated[str, AfterValidator(_checked), Described("a time such as 20us, up to 1h")]


def service_ns(text: str) -> int:
    """Return a checked service time in ns."""
    return parse_duration_ns(text, "a service time")
