"""What the ordered loop keeps between two events: tuples on their way, who waits for what, and what happens next.

All of it is plain arrays of int64, a tuple, a source or a worker a row, and free functions over them, which compile
into the loop. -1 means none.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.replay.measure import (
    NEVER,
    ROW_ARRIVAL,
    ROW_COLUMNS,
    ROW_FINISH,
    ROW_START,
    ROW_WHO,
    packed,
)

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
    "Board",
    "at",
    "certain",
    "give_back",
    "grown_nodes",
    "grown_rows",
    "make_board",
    "make_tournament",
    "row_of",
    "set_next",
    "source_opens",
    "source_shuts",
    "wait_for_place",
    "write_row",
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


class Board(NamedTuple):
    """The state of the edge between two events.

    `node` int64[8 capacity] holds tuples, `source` int64[8 sources], `worker` int64[8 workers], eight columns a row.
    Two tournaments say what comes next: `time` and `who` int64[2 L] over the workers' events (L a power of two, leaves
    from L on, the winner at 1, ties to the lower worker), `turn` int64[4 x 2 L] over the sources' next tuples: time,
    tuple, source. `meta` int64[8].
    """

    node: NDArray[np.int64]
    source: NDArray[np.int64]
    worker: NDArray[np.int64]
    time: NDArray[np.int64]
    who: NDArray[np.int64]
    turn: NDArray[np.int64]
    meta: NDArray[np.int64]


def _leaves(count: int) -> int:
    return 1 << max(count - 1, 1).bit_length()


def make_tournament(workers: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Make `time` and `who` of a tournament in which nobody has an event."""
    leaves = _leaves(workers)
    who = np.zeros(2 * leaves, dtype=np.int64)
    who[leaves:] = np.arange(leaves)
    for place in range(leaves - 1, 0, -1):
        who[place] = who[2 * place]
    return np.full(2 * leaves, NEVER, dtype=np.int64), who


def make_board(sources: int, workers: int, *, dealt: bool = True, capacity: int = 4096) -> Board:
    """Make an empty board with room for `capacity` tuples; `dealt` says that sources take tuples in turn."""
    node = np.zeros((capacity, 8), dtype=np.int64)
    node[:, NODE_NEXT] = np.arange(1, capacity + 1)
    node[-1, NODE_NEXT] = -1
    source = np.full((sources, 8), -1, dtype=np.int64)
    if dealt:
        source[:, NEXT_TUPLE] = np.arange(sources)
    source[:, SINCE] = source[:, PENDING] = 0
    source[:, MAY_EMIT] = 1
    worker = np.full((workers, 8), -1, dtype=np.int64)
    worker[:, QUEUED] = 0
    time, who = make_tournament(workers)
    turn = np.full(4 * 2 * _leaves(sources), NEVER, dtype=np.int64)
    meta = np.zeros(8, dtype=np.int64)
    meta[AVAILABLE] = sources
    meta[DOOMED_FIRST] = meta[DOOMED_LAST] = -1
    return Board(node.reshape(-1), source.reshape(-1), worker.reshape(-1), time, who, turn, meta)


def grown_nodes(board: Board) -> Board:
    """Make room for twice as many tuples, when there is no room left."""
    old = board.node.shape[0] // WIDTH
    node = np.empty((2 * old, WIDTH), dtype=np.int64)
    node[:old] = board.node.reshape(-1, WIDTH)
    node[old:, NODE_NEXT] = np.arange(old + 1, 2 * old + 1)
    node[-1, NODE_NEXT] = -1
    board.meta[FREE] = old
    return board._replace(node=node.reshape(-1))


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
def row_of(rows: Any, seq: Any, column: Any) -> Any:
    """Give the place of a column of tuple `seq` in the flat table of rows."""
    return np.uint64(((seq * ROW_COLUMNS) & (rows.shape[0] - 1)) + column)


@njit(forceinline=True)
def set_next(time: Any, who: Any, worker: Any, when: Any) -> None:
    """Set when a worker's next event is; of equal times the lower worker's is first."""
    place = np.uint64(worker + (time.shape[0] >> 1))
    one = np.uint64(1)
    winner = np.int64(worker)
    time[place] = when
    while place > one:
        sibling = place ^ one
        other, its = time[sibling], who[sibling]
        # A sibling at an even place lies to the left, so its worker is the lower one.
        # Without a branch, which no processor could predict.
        wins = -np.int64(other < when + np.int64(place & one))
        when ^= (when ^ other) & wins
        winner ^= (winner ^ its) & wins
        place >>= one
        time[place] = when
        who[place] = winner


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
def wait_for_place(table: Any, crew: Any, worker: Any, source: Any, node: Any, now: Any) -> None:
    """Let a source wait at a worker that is full: places go in order of waiting time, then of sources."""
    table[at(source, WAITING)] = node
    table[at(source, WAITING_SINCE)] = now
    table[at(source, WAITER_NEXT)] = -1
    last = crew[at(worker, WAIT_LAST)]
    if last < 0:
        crew[at(worker, WAIT_FIRST)] = source
        crew[at(worker, WAIT_LAST)] = source
        return
    if table[at(last, WAITING_SINCE)] < now or last < source:
        table[at(last, WAITER_NEXT)] = source
        crew[at(worker, WAIT_LAST)] = source
        return
    before = np.int64(-1)
    after = crew[at(worker, WAIT_FIRST)]
    while table[at(after, WAITING_SINCE)] < now or after < source:
        before = after
        after = table[at(after, WAITER_NEXT)]
    table[at(source, WAITER_NEXT)] = after
    if before < 0:
        crew[at(worker, WAIT_FIRST)] = source
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
def certain(node: Any, rows: Any, waits: Any, worker: Any, taken: Any, first: Any) -> None:
    """Note that a tuple will finish, and of tuples from `first` on how long it waits: `waits` int64[workers]."""
    seq = node[at(taken, NODE_SEQ)]
    rows[row_of(rows, seq, ROW_FINISH)] = node[at(taken, NODE_FINISH)]
    if seq >= first:
        place = np.uint64(worker)
        waits[place] = max(waits[place], node[at(taken, NODE_START)] - node[at(taken, NODE_REACHED)])


@njit(forceinline=True)
def write_row(node: Any, rows: Any, worker: Any, taken: Any) -> None:
    """Note to whom a tuple was sent, and when it starts."""
    seq = node[at(taken, NODE_SEQ)]
    rows[row_of(rows, seq, ROW_WHO)] = packed(node[at(taken, NODE_KEY)], worker, node[at(taken, NODE_SOURCE)])
    rows[row_of(rows, seq, ROW_ARRIVAL)] = node[at(taken, NODE_ARRIVAL)]
    rows[row_of(rows, seq, ROW_START)] = node[at(taken, NODE_START)]
