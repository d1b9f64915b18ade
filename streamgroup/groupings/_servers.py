"""Control servers: they handle a grouping's messages first come, first served, in a constant time each."""

from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pydantic import AfterValidator

from streamgroup.base.errors import UsageError
from streamgroup.base.units import NS_PER, parse_duration_ns
from streamgroup.groupings.protocol import Described

__all__ = ["Servers", "ServiceTime", "make_servers", "serve", "service_ns"]

I64 = NDArray[np.int64]

_LONGEST_NS = NS_PER["h"]
# Later than anything that happens; a delay can still be added.
_END = np.int64(1 << 62)


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


class Servers(NamedTuple):
    """By server, int64[k] each: when it is `free` of the messages that came so far, how many `jobs` it had or has, and
    how long it `takes` for one, in ns.
    """

    free: I64
    jobs: I64
    takes: I64


def make_servers(service: list[int]) -> Servers:
    """Make servers that are idle, with these service times."""
    none = np.zeros(len(service), dtype=np.int64)
    return Servers(none, none.copy(), np.array(service, dtype=np.int64))


@njit(forceinline=True)
def serve(free: Any, jobs: Any, takes: Any, server: Any, arrival: Any) -> Any:
    """Let a server take a message, none of which arrived later before; return when it is served.

    A server that takes no time is as if it were not there.
    """
    jobs[server] += 1
    if takes[server] == 0:
        return arrival
    done = min(max(free[server], arrival) + takes[server], _END)
    free[server] = done
    return done
