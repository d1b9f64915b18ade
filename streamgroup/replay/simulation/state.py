"""What the ordered loop keeps between two events: tuples on their way, who waits for what, and what happens next.

All of it is plain arrays of int64, a tuple, a source or a worker a row, and free functions over them, which compile
into the loop. -1 means none.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.kernels.tournament import make_tournament
from streamgroup.replay.simulation.events import NEVER

__all__ = [
    "AVAILABLE",
    "DOOMED_FIRST",
    "DOOMED_LAST",
    "DUE",
    "FREE",
    "LOWEST",
    "MAY_EMIT",
    "NEXT_TUPLE",
    "NODE_ARRIVAL",
    "NODE_FINISH",
    "NODE_KEY",
    "NODE_NEXT",
    "NODE_REACHED",
    "NODE_SEQ",
    "NODE_SOURCE",
    "NODE_START",
    "PENDING",
    "QUEUED",
    "QUEUE_MAX",
    "SENT_FIRST",
    "SENT_LAST",
    "SINCE",
    "UNSENT",
    "UNSTARTED",
    "WAITER_NEXT",
    "WAITING",
    "WAITING_SINCE",
    "WAIT_FIRST",
    "WAIT_LAST",
    "WIDTH",
    "Model",
    "State",
    "at",
    "certain",
    "give_back",
    "grown_nodes",
    "grown_rows",
    "make_state",
    "note_sent",
    "place_of",
    "source_opens",
    "source_shuts",
    "wait_for_place",
]

# Columns of a node, a tuple that waits or is being served.
(
    NODE_SEQ, NODE_ARRIVAL, NODE_KEY, NODE_SOURCE, NODE_REACHED, NODE_START, NODE_FINISH, NODE_NEXT,
) = range(8)  # fmt: skip
# Columns of a source: its next tuple in the stream; since when it could send that; tuples it has to send before (their
# first node); the one that was chosen and waits for a place, since when, and who waits there after it; in a closed
# loop how many are chosen and not finished, and whether it may emit.
(
    NEXT_TUPLE, SINCE, UNSENT, WAITING, WAITING_SINCE, WAITER_NEXT, PENDING, MAY_EMIT,
) = range(8)  # fmt: skip
# Columns of a worker: its tuples in order, the first that has not started, how many have not, the sources that wait.
# Where nothing asks what has finished, only those that have not started are kept.
SENT_FIRST, SENT_LAST, UNSTARTED, QUEUED, WAIT_FIRST, WAIT_LAST = range(6)
# Places in `meta`: first free node; in a closed loop how many sources may emit and where to look for the lowest; the
# longest queue; first and last tuple on its way to be dropped; redeliveries done.
FREE, AVAILABLE, LOWEST, QUEUE_MAX, DOOMED_FIRST, DOOMED_LAST, DUE = range(7)


# All tables are flat, with rows of this many columns: places are found by shifts.
WIDTH = 8


class Model(NamedTuple):
    """What limits sources and workers, and what a run has to keep.

    A worker's queue has room for `capacity` tuples (0: no limit), of which a full one `drops` what comes or blocks its
    source; a source of a closed loop has at most `max_pending` tuples in flight (0: an open loop), and sources take
    tuples `round_robin` or those that are theirs. Waits and states count from tuple `measured_from` on. `firm`: nothing
    can be lost any more; `light`: nobody asks what has finished.
    """

    capacity: int
    drops: bool
    max_pending: int
    round_robin: bool
    measured_from: int
    firm: bool
    light: bool


class State(NamedTuple):
    """The state of the edge between two events.

    `node` int64[8 capacity] holds tuples in flight, `source` int64[8 sources], `worker` int64[8 workers], eight columns
    a row; `cost` int64 or float64[capacity] the costs of the tuples. Two tournaments say what comes next: `tree` and
    `winner` int64[1, 2 P] over the workers' events (ties to the lower worker), `turn` int64[4 x 2 L] over the sources'
    next tuples (L a power of two, leaves from L on, the winner at 1): time, tuple, source. `due` int64[crashes, 2] is
    the time and the first node of each redelivery. `meta` int64[8] (places above).
    """

    model: Model
    node: NDArray[np.int64]
    cost: NDArray[Any]
    source: NDArray[np.int64]
    worker: NDArray[np.int64]
    tree: NDArray[np.int64]
    winner: NDArray[np.int64]
    turn: NDArray[np.int64]
    due: NDArray[np.int64]
    meta: NDArray[np.int64]


def _leaves(count: int) -> int:
    return 1 << max(count - 1, 1).bit_length()


def make_state(model: Model, sources: int, workers: int, crashes: int, capacity: int = 4096) -> State:
    """Make an empty state with room for `capacity` tuples in flight."""
    node = np.zeros((capacity, 8), dtype=np.int64)
    node[:, NODE_NEXT] = np.arange(1, capacity + 1)
    node[-1, NODE_NEXT] = -1
    source = np.full((sources, 8), -1, dtype=np.int64)
    if model.round_robin:
        source[:, NEXT_TUPLE] = np.arange(sources)
    source[:, SINCE] = source[:, PENDING] = 0
    source[:, MAY_EMIT] = 1
    worker = np.full((workers, 8), -1, dtype=np.int64)
    worker[:, QUEUED] = 0
    tree, winner = make_tournament(np.full((1, workers), NEVER, dtype=np.int64), np.arange(workers))
    turn = np.full(4 * 2 * _leaves(sources), NEVER, dtype=np.int64)
    meta = np.zeros(8, dtype=np.int64)
    meta[AVAILABLE] = sources
    meta[DOOMED_FIRST] = meta[DOOMED_LAST] = -1
    due = np.zeros((crashes + 1, 2), dtype=np.int64)
    cost = np.zeros(capacity, dtype=np.int64)
    return State(model, node.reshape(-1), cost, source.reshape(-1), worker.reshape(-1), tree, winner, turn, due, meta)


def grown_nodes(state: State) -> State:
    """Make room for twice as many tuples, when there is no room left."""
    old = state.node.shape[0] // WIDTH
    node = np.empty((2 * old, WIDTH), dtype=np.int64)
    node[:old] = state.node.reshape(-1, WIDTH)
    node[old:, NODE_NEXT] = np.arange(old + 1, 2 * old + 1)
    node[-1, NODE_NEXT] = -1
    state.meta[FREE] = old
    return state._replace(node=node.reshape(-1), cost=np.concatenate([state.cost, np.zeros_like(state.cost)]))


def grown_rows(rows: NDArray[Any], first: int, end: int) -> NDArray[Any]:
    """Double an array that holds item i at i mod its length, for the items first..end-1."""
    old = rows.shape[0]
    larger = np.zeros((2 * old, *rows.shape[1:]), dtype=rows.dtype)
    items = np.arange(first, end)
    larger[items & (2 * old - 1)] = rows[items & (old - 1)]
    return larger


@njit(forceinline=True)
def at(row: Any, column: Any) -> Any:
    """Give the place of a column of a row in a flat table; unsigned, so that nothing checks for negative ones."""
    return np.uint64(row * WIDTH + column)


@njit(forceinline=True)
def source_opens(table: Any, meta: Any, source: Any) -> None:
    """In a closed loop: the source may emit."""
    if table[at(source, MAY_EMIT)] == 0:
        table[at(source, MAY_EMIT)] = 1
        meta[LOWEST] = source if meta[AVAILABLE] == 0 else min(meta[LOWEST], source)
        meta[AVAILABLE] += 1


@njit(forceinline=True)
def source_shuts(table: Any, meta: Any, source: Any) -> None:
    """In a closed loop: the source may not emit."""
    if table[at(source, MAY_EMIT)] == 1:
        table[at(source, MAY_EMIT)] = 0
        meta[AVAILABLE] -= 1


@njit
def wait_for_place(table: Any, worker_table: Any, worker: Any, source: Any, node: Any, now: Any) -> None:
    """Let a source wait at a worker that is full: places go in order of waiting time, then of sources."""
    table[at(source, WAITING)] = node
    table[at(source, WAITING_SINCE)] = now
    table[at(source, WAITER_NEXT)] = -1
    last = worker_table[at(worker, WAIT_LAST)]
    if last < 0:
        worker_table[at(worker, WAIT_FIRST)] = source
        worker_table[at(worker, WAIT_LAST)] = source
        return
    if table[at(last, WAITING_SINCE)] < now or last < source:
        table[at(last, WAITER_NEXT)] = source
        worker_table[at(worker, WAIT_LAST)] = source
        return
    before = np.int64(-1)
    after = worker_table[at(worker, WAIT_FIRST)]
    while table[at(after, WAITING_SINCE)] < now or after < source:
        before = after
        after = table[at(after, WAITER_NEXT)]
    table[at(source, WAITER_NEXT)] = after
    if before < 0:
        worker_table[at(worker, WAIT_FIRST)] = source
    else:
        table[at(before, WAITER_NEXT)] = source


@njit
def give_back(node: Any, table: Any, taken: Any, now: Any) -> None:
    """Put a tuple back among those that its source has to send, in the order of the stream."""
    seq = node[at(taken, NODE_SEQ)]
    source = node[at(taken, NODE_SOURCE)]
    before = np.int64(-1)
    after = table[at(source, UNSENT)]
    while after >= 0 and node[at(after, NODE_SEQ)] < seq:
        before = after
        after = node[at(after, NODE_NEXT)]
    node[at(taken, NODE_NEXT)] = after
    if before < 0:
        table[at(source, UNSENT)] = taken
    else:
        node[at(before, NODE_NEXT)] = taken
    table[at(source, SINCE)] = now


@njit(forceinline=True)
def certain(node: Any, events: Any, waits: Any, worker: Any, taken: Any, first: Any) -> None:
    """Note that a tuple will finish, and of tuples from `first` on how long it waits: `waits` int64[workers]."""
    seq = node[at(taken, NODE_SEQ)]
    events.finish[place_of(events, seq)] = node[at(taken, NODE_FINISH)]
    if seq >= first:
        place = np.uint64(worker)
        waits[place] = max(waits[place], node[at(taken, NODE_START)] - node[at(taken, NODE_REACHED)])


@njit(forceinline=True)
def place_of(events: Any, seq: Any) -> Any:
    """Give the place of tuple `seq` in the columns of events, whose length is a power of two."""
    return np.uint64(seq & (events.finish.shape[0] - 1))


@njit(forceinline=True)
def note_sent(node: Any, events: Any, worker: Any, taken: Any) -> None:
    """Note to whom a tuple was sent, and when it starts."""
    place = place_of(events, node[at(taken, NODE_SEQ)])
    events.source[place] = node[at(taken, NODE_SOURCE)]
    events.key[place] = node[at(taken, NODE_KEY)]
    events.worker[place] = worker
    events.arrival[place] = node[at(taken, NODE_ARRIVAL)]
    events.start[place] = node[at(taken, NODE_START)]
