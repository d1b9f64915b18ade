"""The serving half: workers serve tuples first come, first served. It is compiled once for all groupings."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit, register_jitable
from streamgroup.replay.simulation.keys_held_by_workers import hold, slowness
from streamgroup.replay.simulation.optional_array_elements import get, put
from streamgroup.replay.tuple_arrays import LOST, MAX_TIME_NS, NEVER

__all__ = ["Workers", "occupy", "serve_block", "serve_one"]

I64 = NDArray[np.int64]


class Workers(NamedTuple):
    """The workers: `service_model` is the service model, `delay` the network delay from the sources in ns, `held` what
    they hold where that slows them down (else None).

    int64[n]: `free` is when each worker is idle, `waits` the longest wait of a tuple, `dies` when a worker crashes
    (None: none does).
    """

    service_model: Any
    delay: int
    free: I64
    waits: I64
    dies: I64 | None
    held: Any = None


@register_jitable(forceinline=True)
def _service(model: Any, held: Any, worker: Any, key: Any, cost: Any, seq: Any, start: Any, entries: Any) -> Any:
    if held is not None:
        return model.slowed(worker, key, cost, seq, start, slowness(held, entries))
    return model.service(worker, key, cost, seq, start)


@register_jitable(forceinline=True)
def serve_one(workers: Any, worker: Any, key: Any, cost: Any, seq: Any, reached: Any, entries: Any) -> Any:
    """Return when tuple `seq`, which reaches a worker at `reached`, starts and finishes there; nothing is changed.

    `entries` is what the worker holds then (see `keys_held_by_workers.hold`).
    """
    start = max(workers.free[worker], reached)
    return start, start + _service(workers.service_model, workers.held, worker, key, cost, seq, start, entries)


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
        worker, key, seq = np.uint64(chosen[i]), np.int64(chunk.key[i]), chunk.offset + place
        reached = chunk.arrival[i] + workers.delay
        cost = get(chunk.cost, i, 0)
        entries = hold(workers.held, worker, key, seq, chunk.arrival[i])
        start, finish = serve_one(workers, worker, key, cost, seq, reached, entries)
        if finish > MAX_TIME_NS:
            return place
        at = np.uint64(place - base)
        put(served.start, at, start)
        put(served.entries, at, entries)
        served.finish[at] = occupy(workers, worker, reached, start, finish)
    return span.end
