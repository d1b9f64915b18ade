"""The serving half: workers serve tuples first come, first served. It is compiled once for all groupings."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from streamgroup.replay.simulation.chunk_arrays import LOST, MAX_TIME_NS, NEVER
from streamgroup.replay.simulation.optional import get, put

__all__ = ["Workers", "occupy", "serve_block", "serve_one"]

I64 = NDArray[np.int64]


class Workers(NamedTuple):
    """The workers: `service_model` is the service model, `delay` the network delay from the sources in ns.

    int64[n]: `free` is when each worker is idle, `waits` the longest wait of a tuple, `dies` when a worker crashes
    (None: none does).
    """

    service_model: Any
    delay: int
    free: I64
    waits: I64
    dies: I64 | None


@register_jitable(forceinline=True)
def serve_one(workers: Any, worker: Any, key: Any, cost: Any, seq: Any, reached: Any) -> Any:
    """Return when tuple `seq`, which reaches a worker at `reached`, starts and finishes there; nothing is changed."""
    start = max(workers.free[worker], reached)
    return start, start + workers.service_model.service(worker, key, cost, seq, start)


@njit(forceinline=True)
def occupy(workers: Any, worker: Any, reached: Any, start: Any, finish: Any) -> Any:
    """Let a worker serve a tuple; return its finish, LOST if the worker crashes before."""
    workers.free[worker] = finish
    if finish > get(workers.dies, worker, NEVER):
        return np.int64(LOST)
    workers.waits[worker] = max(workers.waits[worker], start - reached)
    return finish


@register_jitable(forceinline=True)
def serve_block(workers: Any, chunk: Any, chosen: Any, served: Any, span: Any, base: Any) -> Any:
    """Serve the tuples of a span, sent to the workers `chosen`; return the place of one that finishes past the clock's
    end, or the end of the span. The columns of `served` begin with the tuple at the place `base`.
    """
    for place in range(span.begin, span.end):
        i = np.uint64(place)
        worker = np.uint64(chosen[i])
        reached = chunk.arrival[i] + workers.delay
        cost = get(chunk.cost, i, 0)
        start, finish = serve_one(workers, worker, np.int64(chunk.key[i]), cost, chunk.offset + place, reached)
        if finish > MAX_TIME_NS:
            return place
        at = np.uint64(place - base)
        put(served.start, at, start)
        served.finish[at] = occupy(workers, worker, reached, start, finish)
    return span.end
