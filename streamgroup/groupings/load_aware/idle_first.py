"""Flink's adaptive partitioner: the first of a few workers that has nothing outstanding, or the one with the least."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["IdleFirst", "begin"]

I64 = NDArray[np.int64]

_NODES = 1 << 12
_CREDIT_BYTES = 8
# Columns of a node: the source, the worker, when the credit arrives, the next node (-1: none).
_SOURCE, _WORKER, _ARRIVAL, _NEXT = range(4)
# Columns of a queue: its first and its last node, -1 if it is empty. Places of `pool`: the first free node, and the
# first and the last credit on its way.
_FIRST, _LAST = range(2)
_FREE, _CREDIT, _LAST_CREDIT = range(3)


class IdleFirst(NamedTuple):
    """Of `traverse` workers, from the one after the last choice on, the first that has less than a buffer outstanding.

    Else the one with the fewest whole buffers outstanding, then the fewest tuples, ties to the first (FLIP-339,
    `AdaptiveLoadBasedRecordWriter`). `outstanding` int64[sources, N]: tuples that the source sent less `buffer` for
    each credit that arrived; `place` int64[sources], in `live`, where it begins to look.

    The workers' own: `finished` int64[sources, N], tuples since the last credit; `queue` int64[N, 2] the tuples that
    each has yet to finish, by their source, as linked nodes. A tuple is a node in its worker's queue, and then the
    credit that it caused, if any. `node` int64[capacity, 4], `pool` int64[3]; `room` int64[1] counts the free nodes.

    Departures from Flink: buffers wait at the worker, not at the source; the bytes of a queue are tuples; source s
    begins at worker s mod n, not 0.
    """

    outstanding: I64
    place: I64
    live: I64
    finished: I64
    queue: I64
    node: I64
    pool: I64
    room: I64
    control_messages: I64
    control_bytes: I64
    traverse: int
    buffer: int
    delay: int
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Look at the next workers, and take the idlest."""
        live, size = self.live, self.buffer
        workers, place = live.shape[0], self.place[source]
        best, least, worker = place, np.int64(9223372036854775807), live[place]
        for _ in range(min(self.traverse, workers)):
            tuples = self.outstanding[source, live[place]]
            # More tuples are never fewer buffers.
            if tuples < least:
                best, least, worker = place, tuples, live[place]
            if tuples < size:
                best, worker = place, live[place]
                break
            place = place + 1 if place + 1 < workers else np.int64(0)
        self.place[source] = best + 1 if best + 1 < workers else 0
        return worker

    def observe(self, source: int, key: int, worker: int, now: int) -> None:
        """Count what is outstanding, and put the tuple into the worker's queue."""
        self.outstanding[source, worker] += 1
        append(self, source, worker)

    def executed(self, worker: int, key: int, arrival: int, start: int, finish: int) -> None:
        """Take the tuple from the worker's queue; after each buffer of a source send a credit."""
        finish_first(self, worker, finish)

    def tick(self, now: int) -> None:
        """Deliver the credits that have arrived."""
        while self.pool[_CREDIT] >= 0 and self.node[self.pool[_CREDIT], _ARRIVAL] <= now:
            deliver(self)

    def grown(self) -> "IdleFirst":
        """Double the number of nodes."""
        capacity = len(self.node)
        more = _free_nodes(capacity, capacity, int(self.pool[_FREE]))
        pool = self.pool.copy()
        pool[_FREE] = capacity
        return self._replace(node=np.concatenate([self.node, more]), pool=pool, room=self.room + capacity)

    def workers_changed(self, change: WorkersChange, context: Context) -> "IdleFirst":
        """Look at the live workers from now on; joiners have nothing outstanding."""
        size = max(self.outstanding.shape[1], int(change.live[-1]) + 1)
        more = ((0, 0), (0, size - self.outstanding.shape[1]))
        return self._replace(
            outstanding=np.pad(self.outstanding, more),
            place=self.place % context.workers,
            live=change.live.copy(),
            finished=np.pad(self.finished, more),
            queue=np.pad(self.queue, (more[1], (0, 0)), constant_values=-1),
            state_entries=context.workers,
        )


def _free_nodes(first: int, count: int, following: int) -> I64:
    """Make linked free nodes with the numbers from `first` on; the last one leads to `following`."""
    node = np.zeros((count, 4), dtype=np.int64)
    node[:, _NEXT] = np.arange(first + 1, first + count + 1)
    node[-1, _NEXT] = following
    return node


@njit
def append(state: Any, source: Any, worker: Any) -> None:
    """Put a tuple of a source at the end of a worker's queue."""
    node, pool, queue = state.node, state.pool, state.queue
    one = pool[_FREE]
    pool[_FREE] = node[one, _NEXT]
    state.room[0] -= 1
    node[one, _SOURCE] = source
    node[one, _WORKER] = worker
    node[one, _NEXT] = -1
    if queue[worker, _FIRST] < 0:
        queue[worker, _FIRST] = one
    else:
        node[queue[worker, _LAST], _NEXT] = one
    queue[worker, _LAST] = one


@njit
def finish_first(state: Any, worker: Any, finish: Any) -> None:
    """Take the first tuple from a worker's queue; if it completes a buffer of its source, it becomes a credit."""
    node, pool, queue = state.node, state.pool, state.queue
    one = queue[worker, _FIRST]
    source = node[one, _SOURCE]
    queue[worker, _FIRST] = node[one, _NEXT]
    state.finished[source, worker] += 1
    if state.finished[source, worker] < state.buffer:
        free(state, one)
        return
    state.finished[source, worker] = 0
    state.control_messages[0] += 1
    state.control_bytes[0] += _CREDIT_BYTES
    node[one, _ARRIVAL] = finish + state.delay
    node[one, _NEXT] = -1
    if pool[_CREDIT] < 0:
        pool[_CREDIT] = one
    else:
        node[pool[_LAST_CREDIT], _NEXT] = one
    pool[_LAST_CREDIT] = one


@njit
def deliver(state: Any) -> None:
    """Let the first credit arrive."""
    node, pool = state.node, state.pool
    one = pool[_CREDIT]
    pool[_CREDIT] = node[one, _NEXT]
    state.outstanding[node[one, _SOURCE], node[one, _WORKER]] -= state.buffer
    free(state, one)


@njit(forceinline=True)
def free(state: Any, one: Any) -> None:
    """Return a node to the pool."""
    state.node[one, _NEXT] = state.pool[_FREE]
    state.pool[_FREE] = one
    state.room[0] += 1


def begin(context: Context, traverse: int, buffer: int) -> IdleFirst:
    """Nothing has been sent."""
    by_worker = np.zeros((context.sources, context.workers), dtype=np.int64)
    return IdleFirst(
        outstanding=by_worker,
        place=np.arange(context.sources, dtype=np.int64) % context.workers,
        live=context.live.copy(),
        finished=by_worker.copy(),
        queue=np.full((context.workers, 2), -1, dtype=np.int64),
        node=_free_nodes(0, _NODES, -1),
        pool=np.array([0, -1, -1], dtype=np.int64),
        room=np.full(1, _NODES, dtype=np.int64),
        control_messages=np.zeros(1, dtype=np.int64),
        control_bytes=np.zeros(1, dtype=np.int64),
        traverse=traverse,
        buffer=buffer,
        delay=context.control_delay,
        state_entries=context.workers,
        state_entry_bytes=8,
    )
