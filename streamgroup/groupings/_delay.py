"""Delays as texts: a duration with its unit, or none for the control delay of the run."""

from typing import Annotated

from pydantic import AfterValidator

from streamgroup.base.errors import UsageError
from streamgroup.base.units import LONGEST_NS, parse_duration_ns

__all__ = ["Delay", "delay_ns"]


def _checked(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        parse_duration_ns(text, "a delay")
    except UsageError as error:
        raise ValueError(f"{error.message} ({error.hint})" if error.hint else error.message) from None
    return text.strip()


Delay = Annotated[str | None, AfterValidator(_checked)]


def delay_ns(text: str | None, control_delay: int) -> int:
    """Give a checked delay in ns, `control_delay` for None; short enough to be added to any time of the clock."""
    delay = control_delay if text is None else parse_duration_ns(text, "a delay")
    return min(delay, LONGEST_NS - 1)
