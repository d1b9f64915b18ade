"""What the event-driven simulation keeps between two events: unfinished tuples, blocked sources, and what comes next.

All of it is plain arrays, an element for each tuple, source or worker, and free functions over them, which compile into
the loop. Lists are linked by place; -1 ends a list, or stands for none.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.ordered.tournament_tree import leaves, make_tournament
from streamgroup.replay.simulation.source_server import SERVER_FIELDS, Servers
from streamgroup.replay.tuple_arrays import NEVER, Records, make_records

__all__ = [
    "Model",
    "State",
    "block",
    "certain",
    "close_source",
    "free",
    "give_back",
    "grown_rows",
    "grown_tuples",
    "make_state",
    "note_sent",
    "open_source",
    "place_of",
]

I64 = NDArray[np.int64]


# Unfinished tuples that a state has room for at first.
_UNFINISHED = 4096


class Model(NamedTuple):
    """What limits sources and workers, and what a run has to keep.

    A worker's queue holds `capacity` waiting tuples (0: no limit); a full one `drops` what comes or blocks the source.
    A source of a closed loop has at most `max_pending` unfinished tuples (0: an open loop). Sources take tuples
    `round_robin` or those that are theirs. Waits and states count from tuple `measured_from` on. `firm`: nothing can be
    lost any more; `light`: no finish is needed as an event.
    """

    capacity: int
    drops: bool
    max_pending: int
    round_robin: bool
    measured_from: int
    firm: bool
    light: bool


# An unfinished tuple: its number in the stream, arrival at the source, key and source; when it reached its worker, and
# its start and finish there (of a rejected tuple: the worker in place of the start). `following` is the next tuple in
# its list: of free places, of unsent tuples of a source, of a worker's queue, or of rejected tuples.
_TUPLE = ("seq", "arrival", "key", "source", "reached", "start", "finish", "following")
# A source: its next tuple in the stream, which it can send from `ready_at` on; `first_unsent` heads the list of tuples
# that it has to send before. `blocked` is the tuple that waits for a full worker since `blocked_since`, `next_waiter`
# the source that waits there after this one. In a closed loop `pending` counts its unfinished tuples, and `may_emit` is
# 1 if it may emit another. The rest is about its server, if sources have a service time (see `source_server`).
_SOURCE = (
    "next_tuple", "ready_at", "first_unsent", "blocked", "blocked_since", "next_waiter", "pending", "may_emit",
    *SERVER_FIELDS,
)  # fmt: skip
# A worker: the first and last tuple of its queue, the first that has not started, how many have not, and the sources
# that wait for room. Where no finish is needed as an event, only tuples that have not started are kept.
_WORKER = ("first", "last", "first_waiting", "waiting", "first_waiter", "last_waiter")
# Numbers that change: the first free place; the first and last tuple on its way to a queue that will be full; in a
# closed loop how many sources may emit, none below `lowest_emitter`; the longest queue; redeliveries done.
_SCALARS = (
    "first_free", "first_rejected", "last_rejected", "emitters", "lowest_emitter", "queue_max", "redelivered",
)  # fmt: skip


class State(NamedTuple):
    """The state of the edge between two events.

    Records of int64 (fields above): unfinished `tuples` [capacity], `by_source` [sources], `by_worker` [workers] and
    `scalars` [1]. `cost` int64 or float64[capacity] are the costs of the unfinished tuples. Two tournaments (see
    `kernels.ordered.tournament_tree`) say what comes next: `event_time` and `event_worker` int64[1, 2 P] over the
    workers' next events, ties to the lower worker; `turn_time` and `turn_source` int64[1, 2 L] over the sources' next
    tuples, ties to the earlier tuple, `turn_tuple` int64[L]. `redelivery` int64[crashes + 1, 2] is time and first tuple
    of each redelivery. `servers` is None where sources take no time.
    """

    model: Model
    tuples: Records
    cost: NDArray[Any]
    by_source: Records
    by_worker: Records
    event_time: I64
    event_worker: I64
    turn_time: I64
    turn_source: I64
    turn_tuple: I64
    redelivery: I64
    scalars: Records
    servers: Servers | None = None


def _no_events(count: int) -> tuple[I64, I64]:
    return make_tournament(np.full((1, count), NEVER, dtype=np.int64), np.arange(count))


def make_state(model: Model, servers: Servers | None, sources: int, workers: int, crashes: int) -> State:
    """Make an empty state."""
    capacity = _UNFINISHED
    tuples, by_source = make_records(_TUPLE, capacity), make_records(_SOURCE, sources)
    by_worker, scalars = make_records(_WORKER, workers), make_records(_SCALARS, 1)
    tuples.following[:-1] = np.arange(1, capacity)
    if model.round_robin:
        by_source.next_tuple = np.arange(sources)
    by_source.ready_at, by_source.pending, by_source.may_emit = 0, 0, 1
    by_source.idle_at = by_source.service = 0
    by_worker.waiting = 0
    scalars.first_free = scalars.lowest_emitter = scalars.redelivered = 0
    scalars.emitters = sources
    return State(
        model, tuples, np.zeros(capacity, dtype=np.int64), by_source, by_worker, *_no_events(workers),
        *_no_events(sources), np.full(leaves(sources), NEVER, dtype=np.int64),
        np.zeros((crashes + 1, 2), dtype=np.int64), scalars, servers,
    )  # fmt: skip


def grown_tuples(state: State) -> State:
    """Make room for twice as many tuples, when there is no room left."""
    old = len(state.cost)
    tuples = make_records(_TUPLE, 2 * old)
    tuples[:old] = state.tuples
    tuples.following[old:-1] = np.arange(old + 1, 2 * old)
    state.scalars.first_free = old
    return state._replace(tuples=tuples, cost=np.concatenate([state.cost, np.zeros_like(state.cost)]))


def grown_rows(rows: NDArray[Any], first: int, end: int) -> NDArray[Any]:
    """Double an array that holds item i at i mod its length, for the items first..end-1."""
    old = rows.shape[0]
    larger = np.zeros((2 * old, *rows.shape[1:]), dtype=rows.dtype)
    items = np.arange(first, end)
    larger[items & (2 * old - 1)] = rows[items & (old - 1)]
    return larger


@njit(forceinline=True)
def free(tuples: Any, scalars: Any, taken: Any) -> None:
    """Free the place of a tuple."""
    tuples[taken].following = scalars[0].first_free
    scalars[0].first_free = taken


@njit(forceinline=True)
def open_source(by_source: Any, scalars: Any, source: Any) -> None:
    """In a closed loop: let the source emit, unless its server holds a tuple."""
    if by_source[source].may_emit == 0 and by_source[source].held < 0:
        by_source[source].may_emit = 1
        scalars[0].lowest_emitter = source if scalars[0].emitters == 0 else min(scalars[0].lowest_emitter, source)
        scalars[0].emitters += 1


@njit(forceinline=True)
def close_source(by_source: Any, scalars: Any, source: Any) -> None:
    """In a closed loop: do not let the source emit."""
    if by_source[source].may_emit == 1:
        by_source[source].may_emit = 0
        scalars[0].emitters -= 1


@njit
def _insert(first: Any, place: Any, following: Any, rank: Any, item: Any) -> None:
    """Insert an item into the list that begins at `first[place]`, ordered by rank, then by number."""
    before = np.int64(-1)
    after = first[place]
    while after >= 0 and (rank[after] < rank[item] or (rank[after] == rank[item] and after < item)):
        before = after
        after = following[after]
    following[item] = after
    if before < 0:
        first[place] = item
    else:
        following[before] = item


@njit
def block(by_source: Any, by_worker: Any, worker: Any, source: Any, taken: Any, now: Any) -> None:
    """Block a source with a tuple for a full worker: room goes to sources by waiting time, then by number."""
    by_source[source].blocked = taken
    by_source[source].blocked_since = now
    last = by_worker[worker].last_waiter
    if last >= 0 and (by_source[last].blocked_since < now or last < source):
        # Most often it is the last.
        by_source[last].next_waiter = source
        by_source[source].next_waiter = -1
        by_worker[worker].last_waiter = source
        return
    if last < 0:
        by_worker[worker].last_waiter = source
    _insert(by_worker.first_waiter, worker, by_source.next_waiter, by_source.blocked_since, source)


@njit
def give_back(tuples: Any, by_source: Any, taken: Any, now: Any) -> None:
    """Put a tuple back among those that its source has to send, in the order of the stream."""
    source = tuples[taken].source
    _insert(by_source.first_unsent, source, tuples.following, tuples.seq, taken)
    by_source[source].ready_at = now


@njit(forceinline=True)
def certain(tuples: Any, events: Any, waits: Any, worker: Any, taken: Any, first: Any) -> None:
    """Note that a tuple will finish, and of tuples from `first` on how long it waits: `waits` int64[workers]."""
    row = np.uint64(taken)
    seq = tuples[row].seq
    events.finish[place_of(events, seq)] = tuples[row].finish
    if seq >= first:
        place = np.uint64(worker)
        waits[place] = max(waits[place], tuples[row].start - tuples[row].reached)


@njit(forceinline=True)
def place_of(events: Any, seq: Any) -> Any:
    """Return the place of tuple `seq` in the columns of events, whose length is a power of two."""
    return np.uint64(seq & (events.finish.shape[0] - 1))


@njit(forceinline=True)
def note_sent(tuples: Any, events: Any, worker: Any, taken: Any) -> None:
    """Note to whom a tuple was sent, and when it starts."""
    row = np.uint64(taken)
    place = place_of(events, tuples[row].seq)
    events.source[place] = tuples[row].source
    events.key[place] = tuples[row].key
    events.worker[place] = worker
    events.arrival[place] = tuples[row].arrival
    events.start[place] = tuples[row].start
