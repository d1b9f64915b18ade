"""Sources that take a time for each tuple: servers, first come, first served (SIMULATION has sources without).

The loop knows when a source's server is done with its next tuple, and says when the tuple has left the source: it is
free from then on.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit, register_jitable
from streamgroup.kernels.latency_histogram import BUCKETS, bucket_of
from streamgroup.replay.accounting.window_rows import CARRY

__all__ = [
    "SERVER_FIELDS",
    "Servers",
    "account_service",
    "begin_service",
    "leave",
    "make_servers",
    "served_at",
    "service_time",
    "take_tuple",
]

I64 = NDArray[np.int64]

# What a source's record has for its server: when it was free, the number of the tuple that it holds (-1: none; it holds
# a tuple until a worker has accepted it), how long that is served, and in a closed loop the place of the tuple that it
# serves (-1: none).
SERVER_FIELDS = ("idle_at", "held", "service", "serving")


class Servers(NamedTuple):
    """The service times of the sources, and what is measured of them.

    `base` int64[sources] in ns is multiplied by a tuple's factor where there is one. `busy` int64[sources] sums up the
    service of measured tuples. `waits` int64[2] is the sum of their times at the source but for their service (high x
    2^62 + low, the low part first), and `histogram` int64[BUCKETS] counts these.
    """

    base: I64
    busy: I64
    waits: I64
    histogram: I64


def make_servers(base: I64) -> Servers:
    """Make servers that have served nothing."""
    counts = (np.zeros(size, dtype=np.int64) for size in (len(base), 2, BUCKETS))
    return Servers(base, *counts)


@njit(forceinline=True)
def service_time(base: Any, factor: Any, place: Any) -> Any:
    """Return a tuple's service time at its source, in whole ns, halves to even."""
    if factor is None:
        return base
    return np.int64(np.rint(np.float64(base) * factor[place]))


@register_jitable(forceinline=True)
def served_at(servers: Any, by_source: Any, factor: Any, source: Any, place: Any, arrival: Any) -> Any:
    """Return when a source has served the tuple at a place of the stream, its next one; nothing is changed."""
    if servers is None:
        return arrival
    return max(arrival, by_source[source].idle_at) + service_time(servers.base[source], factor, place)


@register_jitable(forceinline=True)
def take_tuple(servers: Any, by_source: Any, factor: Any, source: Any, place: Any, seq: Any) -> None:
    """Note that a source's server holds tuple `seq`, which is at a place of the stream."""
    if servers is not None:
        by_source[source].held = seq
        by_source[source].service = service_time(servers.base[source], factor, place)


@register_jitable(forceinline=True)
def begin_service(servers: Any, by_source: Any, source: Any, taken: Any, now: Any) -> Any:
    """In a closed loop: let a source's server begin with the tuple that it holds; return whether there are servers."""
    if servers is None:
        return False
    by_source[source].serving = taken
    by_source[source].idle_at = now
    return True


@njit(forceinline=True)
def _account(servers: Any, source: Any, service: Any, stayed: Any) -> None:
    """Account a tuple that stayed at its source for so long, its service included."""
    servers.busy[source] += service
    wait = stayed - service
    servers.histogram[np.uint64(bucket_of(wait))] += 1
    low = servers.waits[0] + wait
    if low >= CARRY:
        low -= CARRY
        servers.waits[1] += 1
    servers.waits[0] = low


@register_jitable(forceinline=True)
def account_service(servers: Any, factor: Any, source: Any, place: Any, stayed: Any) -> None:
    """Account the tuple at a place of the stream, which stayed at its source for so long, its service included."""
    _account(servers, source, service_time(servers.base[source], factor, place), stayed)


@register_jitable(forceinline=True)
def leave(servers: Any, tuples: Any, by_source: Any, source: Any, taken: Any, now: Any, measured_from: Any) -> None:
    """Let a tuple leave its source: its server, if it holds the tuple, is free."""
    if servers is not None:
        row, seq = np.uint64(source), tuples[np.uint64(taken)].seq
        if by_source[row].held == seq:
            by_source[row].held = -1
            by_source[row].idle_at = now
            if seq >= measured_from:
                _account(servers, row, by_source[row].service, now - tuples[np.uint64(taken)].arrival)
