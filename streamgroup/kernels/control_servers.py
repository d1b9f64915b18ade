"""Control servers: they handle a grouping's messages first come, first served, in a constant time each."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["ControlServers", "make_servers", "serve"]

I64 = NDArray[np.int64]

# Later than anything that happens; a delay can still be added.
_END = np.int64(1 << 62)


class ControlServers(NamedTuple):
    """By server, int64[k] each: when it is `free` of the messages that came so far, how many `jobs` it had or has, and
    how long it `takes` for one, in ns.
    """

    free: I64
    jobs: I64
    takes: I64


def make_servers(service: list[int]) -> ControlServers:
    """Make servers that are idle, with these service times."""
    none = np.zeros(len(service), dtype=np.int64)
    return ControlServers(none, none.copy(), np.array(service, dtype=np.int64))


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
