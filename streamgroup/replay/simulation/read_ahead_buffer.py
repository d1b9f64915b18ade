"""The read-ahead buffer of the event-driven simulation: tuples that were read and that no source has sent yet."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.replay.simulation.event_state import grown_rows
from streamgroup.replay.simulation.optional_array_elements import get, put
from streamgroup.replay.simulation.turns_of_sources import turn_all

__all__ = ["Stream", "grown_stream", "load", "make_stream"]


class Stream(NamedTuple):
    """Tuples that were read and are not sent: tuple i at i mod capacity, a power of two.

    `arrival` int64, `key` uint32, `cost` int64 or float64 (None where all cost the same), `following` int64 (the next
    tuple of the same source, -1: not read yet) and `source` int32, of size 1 where sources take tuples round robin.
    `factor` float64 is the random factor of the time at the source, None where there is none. `held_window` int64 is
    the window that workers hold the key for, None where it follows from number and arrival.
    """

    arrival: NDArray[np.int64]
    key: NDArray[np.uint32]
    cost: NDArray[Any] | None
    following: NDArray[np.int64]
    source: NDArray[np.int32]
    factor: NDArray[np.float64] | None
    held_window: NDArray[np.int64] | None


def make_stream(cost: Any, *, round_robin: bool, factor: bool, held_window: bool, capacity: int) -> Stream:
    """Make an empty stream; `cost` is the type of the costs, None where all cost the same."""
    return Stream(
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.uint32),
        None if cost is None else np.zeros(capacity, dtype=cost),
        np.full(1 if round_robin else capacity, -1, dtype=np.int64),
        np.zeros(1 if round_robin else capacity, dtype=np.int32),
        np.zeros(capacity, dtype=np.float64) if factor else None,
        np.zeros(capacity, dtype=np.int64) if held_window else None,
    )


def grown_stream(stream: Stream, first: int, end: int) -> Stream:
    """Make room for twice as many tuples; first..end-1 are kept."""

    def grown(one: NDArray[Any]) -> NDArray[Any]:
        return grown_rows(one, first, end) if len(one) > 1 else one

    return Stream(
        grown(stream.arrival),
        grown(stream.key),
        None if stream.cost is None else grown(stream.cost),
        grown(stream.following),
        grown(stream.source),
        None if stream.factor is None else grown(stream.factor),
        None if stream.held_window is None else grown(stream.held_window),
    )


@njit(forceinline=True)
def _take_source(source_of: Any, i: Any, state: Any, stream: Any, last_of: Any, seq: Any) -> None:
    """Note to which source tuple `seq` belongs, and that it follows the one before of that source."""
    if source_of is not None:
        mask = stream.key.shape[0] - 1
        source = source_of[i]
        stream.source[seq & mask] = source
        stream.following[seq & mask] = -1
        if state.by_source[source].next_tuple < 0:
            state.by_source[source].next_tuple = seq
        elif last_of[source] >= 0:
            stream.following[last_of[source] & mask] = seq
        last_of[source] = seq


def load(state: Any, stream: Any, last_of: Any, chunk: Any, last: Any) -> None:
    """Take a chunk into the stream, which has room for it; `last` says that it is the last one.

    `last_of` int64[sources] is the last tuple of each source that was read, -1 for none.
    """
    mask = stream.key.shape[0] - 1
    for i in range(chunk.key.shape[0]):
        seq = chunk.offset + i
        stream.key[seq & mask] = chunk.key[i]
        if state.model.max_pending == 0:
            stream.arrival[seq & mask] = chunk.arrival[i]
        put(stream.cost, seq & mask, get(chunk.cost, i, 0))
        put(stream.factor, seq & mask, get(chunk.source_factor, i, 0.0))
        put(stream.held_window, seq & mask, get(chunk.held_window, i, 0))
        _take_source(chunk.source, i, state, stream, last_of, seq)
    turn_all(state, stream, chunk.offset + chunk.key.shape[0], last)
