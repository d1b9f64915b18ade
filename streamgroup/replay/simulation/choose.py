"""The choosing half: a grouping chooses a worker for each tuple. It is compiled for each grouping."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit, register_jitable
from streamgroup.replay.simulation.optional_array_elements import get, put

__all__ = ["CHOSEN", "FULL_STATE", "NO_WORKER", "Sources", "choose_block", "choose_one", "report", "see"]

I64 = NDArray[np.int64]

# Why choosing stopped: all are chosen; the state has no room for another tuple; the worker does not exist.
CHOSEN, FULL_STATE, NO_WORKER = range(3)


class Sources(NamedTuple):
    """What the sources see besides their own state, and what they report.

    `workers` is the number of ids, `alive` uint8[workers] which of them may be chosen (None: all). `cost` float64[1]
    and `slowdown` float64[workers] take what a grouping sees of the tuple at hand, None where it sees neither.

    The rest is the state's own, None where it reports nothing: `choices` int64[1], `state_entries` int64[sources],
    `detector` int64[1] and `room` int64[1] (for how many more tuples there is room). `largest_state` int64[1] takes the
    maximum of `state_entries`. `feedback` is None unless the grouping receives completion feedback.
    """

    workers: int
    alive: NDArray[np.uint8] | None
    cost: NDArray[np.float64] | None
    slowdown: NDArray[np.float64] | None
    choices: I64 | None
    state_entries: I64 | None
    detector: I64 | None
    room: I64 | None
    largest_state: I64
    feedback: bool | None = None


@register_jitable(forceinline=True)
def see(cost_seen: Any, slowdown_seen: Any, service: Any, key: Any, cost: Any, seq: Any, now: Any) -> None:
    """Show the sources what they may see of tuple `seq` before they choose."""
    if cost_seen is not None:
        cost_seen[0] = cost
    if slowdown_seen is not None:
        service.look(key, seq, now, slowdown_seen)


@register_jitable(forceinline=True)
def choose_one(grouping: Any, sources: Any, source: Any, key: Any, now: Any) -> Any:
    """Let a source choose a worker; return -1 if that is not a worker that may be chosen."""
    grouping.tick(now)
    worker = np.int64(grouping.choose(source, key, now))
    if np.uint64(worker) >= np.uint64(sources.workers) or get(sources.alive, np.uint64(worker), 1) == 0:
        return np.int64(-1)
    grouping.observe(source, key, worker, now)
    return worker


@njit(forceinline=True)
def _report_entries(state_entries: Any, largest_state: Any, source: Any, measured: Any) -> None:
    if state_entries is not None and measured:
        largest_state[0] = max(largest_state[0], state_entries[source])


@njit(forceinline=True)
def report(sources: Any, choices: Any, place: Any, source: Any, measured: Any) -> None:
    """Note what the grouping reports of the tuple at a place; its state counts for `measured` tuples only."""
    # More workers than there are would mean nothing.
    put(choices.hot, place, max(0, min(get(sources.choices, 0, 0), sources.workers)))
    put(choices.entries, place, get(sources.detector, 0, 0))
    _report_entries(sources.state_entries, sources.largest_state, source, measured)


def choose_block(grouping: Any, sources: Any, chunk: Any, choices: Any, span: Any) -> Any:
    """Let the sources choose workers for the tuples of a span; return why it stopped, and before which place."""
    source: Any = np.int64((chunk.offset + span.begin) % chunk.sources)
    for place in range(span.begin, span.end):
        i = np.uint64(place)
        if get(sources.room, 0, 1) < 1:
            return FULL_STATE, place
        source = np.int64(get(chunk.source, i, source))
        worker = choose_one(grouping, sources, source, np.int64(chunk.key[i]), chunk.arrival[i])
        if worker < 0:
            return NO_WORKER, place
        choices.worker[i] = worker
        report(sources, choices, i, source, True)
        source += 1
        if source == chunk.sources:
            source = 0
    return CHOSEN, span.end
