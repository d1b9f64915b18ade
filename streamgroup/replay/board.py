"""What the ordered loop keeps of tuples that have not finished: where they wait, and what happens next.

All of it is plain arrays of int64, a tuple, a source or a worker a row, and free functions over them, which compile
into the loop. -1 means none.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.replay.measure import DROPPED, FINISHED, LOST, NEVER, ROW_STATUS

__all__ = [
    "AVAILABLE",
    "BLOCKED_AT",
    "DOOMED_FIRST",
    "DOOMED_LAST",
    "DUE",
    "FREE",
    "LOWEST",
    "NODE_ARRIVAL",
    "NODE_COLUMNS",
    "NODE_FINISH",
    "NODE_KEY",
    "NODE_NEXT",
    "NODE_REACHED",
    "NODE_SEQ",
    "NODE_SOURCE",
    "NODE_START",
    "OPEN_SOURCE",
    "PENDING",
    "QUEUED",
    "QUEUE_MAX",
    "READY",
    "SENT_FIRST",
    "SENT_LAST",
    "UNSENT_FIRST",
    "UNSENT_LAST",
    "UNSTARTED",
    "WAITER_NEXT",
    "WAITING",
    "WAITING_SINCE",
    "WAIT_FIRST",
    "WAIT_LAST",
    "Board",
    "crash",
    "forget_dropped",
    "forget_waiters",
    "grown_nodes",
    "grown_rows",
    "lose",
    "make_board",
    "new_node",
    "next_at",
    "pop_ready",
    "push_ready",
    "refill_ready",
    "set_next",
    "settle",
    "source_opens",
    "source_shuts",
    "unsend",
    "wait_for_place",
]

# Columns of a node, a tuple that waits or is being served.
(
    NODE_SEQ, NODE_ARRIVAL, NODE_KEY, NODE_SOURCE, NODE_REACHED, NODE_START, NODE_FINISH, NODE_NEXT,
) = range(8)  # fmt: skip
NODE_COLUMNS = 8
# Columns of a source: its tuples that were not chosen yet, the one that was chosen and waits for a place (since when,
# at which worker, and who waits there after it), how many are chosen and not finished, whether it may emit.
(
    UNSENT_FIRST, UNSENT_LAST, WAITING, WAITING_SINCE, BLOCKED_AT, WAITER_NEXT, PENDING, OPEN_SOURCE,
) = range(8)  # fmt: skip
# Columns of a worker: its tuples in order, the first that has not started, how many have not, the sources that wait.
SENT_FIRST, SENT_LAST, UNSTARTED, QUEUED, WAIT_FIRST, WAIT_LAST = range(6)
# Places in `meta`: first free node; size of the heap of ready sources; in a closed loop how many sources may emit and
# where to look for the lowest; the longest queue; first and last tuple on its way to be dropped; redeliveries done.
FREE, READY, AVAILABLE, LOWEST, QUEUE_MAX, DOOMED_FIRST, DOOMED_LAST, DUE = range(8)


class Board(NamedTuple):
    """The state of the edge between two events.

    `node` int64[capacity, 8] holds tuples, `source` int64[sources, 8], `worker` int64[workers, 6]; `time` and `who`
    int64[2 L] are a tournament over the workers' next events (L a power of two, leaves from L on, the winner at 1);
    `ready` int64[sources, 2] is a heap of (tuple, source) that may be chosen now; `meta` int64[8].
    """

    node: NDArray[np.int64]
    source: NDArray[np.int64]
    worker: NDArray[np.int64]
    time: NDArray[np.int64]
    who: NDArray[np.int64]
    ready: NDArray[np.int64]
    meta: NDArray[np.int64]


def make_board(sources: int, workers: int, capacity: int = 4096) -> Board:
    """Make an empty board with room for `capacity` tuples."""
    node = np.zeros((capacity, NODE_COLUMNS), dtype=np.int64)
    node[:, NODE_NEXT] = np.arange(1, capacity + 1)
    node[-1, NODE_NEXT] = -1
    source = np.full((sources, 8), -1, dtype=np.int64)
    source[:, PENDING] = 0
    source[:, OPEN_SOURCE] = 1
    worker = np.full((workers, 6), -1, dtype=np.int64)
    worker[:, QUEUED] = 0
    leaves = 1 << max(workers - 1, 1).bit_length()
    time = np.full(2 * leaves, NEVER, dtype=np.int64)
    who = np.zeros(2 * leaves, dtype=np.int64)
    who[leaves:] = np.arange(leaves)
    for place in range(leaves - 1, 0, -1):
        who[place] = who[2 * place]
    meta = np.zeros(8, dtype=np.int64)
    meta[AVAILABLE] = sources
    meta[DOOMED_FIRST] = meta[DOOMED_LAST] = -1
    return Board(node, source, worker, time, who, np.zeros((sources, 2), dtype=np.int64), meta)


def grown_nodes(board: Board) -> Board:
    """Make room for twice as many tuples, when there is no room left."""
    old = board.node.shape[0]
    more = np.zeros((old, NODE_COLUMNS), dtype=np.int64)
    more[:, NODE_NEXT] = np.arange(old + 1, 2 * old + 1)
    more[-1, NODE_NEXT] = -1
    board.meta[FREE] = old
    return board._replace(node=np.concatenate([board.node, more]))


def grown_rows(rows: NDArray[np.int64], first: int, end: int) -> NDArray[np.int64]:
    """Double an array that holds item i at i mod its length, for the items first..end-1."""
    old = rows.shape[0]
    larger = np.zeros((2 * old, *rows.shape[1:]), dtype=np.int64)
    items = np.arange(first, end)
    larger[items & (2 * old - 1)] = rows[items & (old - 1)]
    return larger


@njit(forceinline=True)
def new_node(board: Any) -> Any:
    """Take a free node; there must be one."""
    taken = board.meta[FREE]
    board.meta[FREE] = board.node[taken, NODE_NEXT]
    return taken


@njit(forceinline=True)
def next_at(board: Any) -> Any:
    """Tell when the next event of a worker is, 2^62 if never."""
    return board.time[1]


@njit(forceinline=True)
def set_next(board: Any, worker: Any, at: Any) -> None:
    """Set when a worker's next event is; of equal times the lower worker's is first."""
    time, who = board.time, board.who
    place = np.uint64(worker + (time.shape[0] >> 1))
    one = np.uint64(1)
    winner = np.int64(worker)
    time[place] = at
    while place > one:
        sibling = place ^ one
        other, its = time[sibling], who[sibling]
        # A sibling at an even place lies to the left, so its worker is the lower one.
        wins = other < at + np.int64(place & one)
        at = other if wins else at
        winner = its if wins else winner
        place >>= one
        time[place] = at
        who[place] = winner


@njit
def push_ready(board: Any, seq: Any, source: Any) -> None:
    """Note that a source's tuple may be chosen now."""
    heap, meta = board.ready, board.meta
    place = meta[READY]
    meta[READY] = place + 1
    while place > 0:
        above = (place - 1) // 2
        if heap[above, 0] <= seq:
            break
        heap[place, 0], heap[place, 1] = heap[above, 0], heap[above, 1]
        place = above
    heap[place, 0], heap[place, 1] = seq, source


@njit
def pop_ready(board: Any) -> Any:
    """Take the source whose tuple is the first in the stream of those that may be chosen now."""
    heap, meta = board.ready, board.meta
    taken = heap[0, 1]
    size = meta[READY] - 1
    meta[READY] = size
    seq, source = heap[size, 0], heap[size, 1]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1, 0] < heap[child, 0]:
            child += 1
        if heap[child, 0] >= seq:
            break
        heap[place, 0], heap[place, 1] = heap[child, 0], heap[child, 1]
        place = child
    heap[place, 0], heap[place, 1] = seq, source
    return taken


@njit(forceinline=True)
def source_opens(board: Any, source: Any) -> None:
    """In a closed loop: the source may emit."""
    if board.source[source, OPEN_SOURCE] == 0:
        board.source[source, OPEN_SOURCE] = 1
        board.meta[AVAILABLE] += 1
        board.meta[LOWEST] = min(board.meta[LOWEST], source)


@njit(forceinline=True)
def source_shuts(board: Any, source: Any) -> None:
    """In a closed loop: the source may not emit."""
    if board.source[source, OPEN_SOURCE] == 1:
        board.source[source, OPEN_SOURCE] = 0
        board.meta[AVAILABLE] -= 1


@njit
def wait_for_place(board: Any, source: Any, worker: Any, node: Any, now: Any) -> None:
    """Let a source wait at a worker that is full: places go in order of waiting time, then of sources."""
    table, mine = board.source, board.worker[worker]
    table[source, WAITING] = node
    table[source, WAITING_SINCE] = now
    table[source, BLOCKED_AT] = worker
    table[source, WAITER_NEXT] = -1
    last = mine[WAIT_LAST]
    if last < 0:
        mine[WAIT_FIRST] = source
        mine[WAIT_LAST] = source
        return
    if table[last, WAITING_SINCE] < now or last < source:
        table[last, WAITER_NEXT] = source
        mine[WAIT_LAST] = source
        return
    before = np.int64(-1)
    after = mine[WAIT_FIRST]
    while table[after, WAITING_SINCE] < now or after < source:
        before = after
        after = table[after, WAITER_NEXT]
    table[source, WAITER_NEXT] = after
    if before < 0:
        mine[WAIT_FIRST] = source
    else:
        table[before, WAITER_NEXT] = source


@njit
def unsend(board: Any, source: Any, node: Any) -> None:
    """Put a tuple back among those that its source has to send, in the order of the stream."""
    nodes, table = board.node, board.source
    seq = nodes[node, NODE_SEQ]
    before = table[source, UNSENT_LAST] if table[source, UNSENT_FIRST] >= 0 else np.int64(-1)
    if before >= 0 and nodes[before, NODE_SEQ] < seq:
        nodes[before, NODE_NEXT] = node
        nodes[node, NODE_NEXT] = -1
        table[source, UNSENT_LAST] = node
        return
    before = np.int64(-1)
    after = table[source, UNSENT_FIRST]
    while after >= 0 and nodes[after, NODE_SEQ] < seq:
        before = after
        after = nodes[after, NODE_NEXT]
    nodes[node, NODE_NEXT] = after
    if before < 0:
        table[source, UNSENT_FIRST] = node
    else:
        nodes[before, NODE_NEXT] = node
    if after < 0:
        table[source, UNSENT_LAST] = node


@njit
def forget_dropped(board: Any, rows: Any, now: Any) -> None:
    """Note as dropped the tuples that reached a full worker by now."""
    meta, node = board.meta, board.node
    first = meta[DOOMED_FIRST]
    while first >= 0 and node[first, NODE_REACHED] <= now:
        following = node[first, NODE_NEXT]
        rows[node[first, NODE_SEQ] & (rows.shape[0] - 1), ROW_STATUS] = DROPPED
        node[first, NODE_NEXT] = meta[FREE]
        meta[FREE] = first
        first = following
    meta[DOOMED_FIRST] = first


@njit
def refill_ready(board: Any) -> None:
    """Find anew which sources may choose now: all that have a tuple to send and do not wait for a place."""
    board.meta[READY] = 0
    for source in range(board.source.shape[0]):
        first = board.source[source, UNSENT_FIRST]
        if first >= 0 and board.source[source, WAITING] < 0:
            push_ready(board, board.node[first, NODE_SEQ], np.int64(source))


@njit
def forget_waiters(board: Any, worker: Any) -> None:
    """Let the sources that wait for a place on a worker choose anew: it takes nothing any more."""
    mine, table = board.worker[worker], board.source
    source = mine[WAIT_FIRST]
    while source >= 0:
        node = table[source, WAITING]
        table[source, WAITING] = -1
        unsend(board, source, node)
        source = table[source, WAITER_NEXT]
    mine[WAIT_FIRST] = -1
    mine[WAIT_LAST] = -1
    refill_ready(board)


@njit
def crash(board: Any, worker: Any, now: Any) -> Any:
    """Take all tuples away from a worker that crashes, but those that have finished: their nodes, int64[k]."""
    node, mine, meta = board.node, board.worker[worker], board.meta
    count = 0
    taken = mine[SENT_FIRST]
    while taken >= 0:
        count += 1
        taken = node[taken, NODE_NEXT]
    doomed = meta[DOOMED_FIRST]
    while doomed >= 0:
        count += node[doomed, NODE_START] == worker
        doomed = node[doomed, NODE_NEXT]
    lost = np.empty(count, dtype=np.int64)
    count = 0
    taken = mine[SENT_FIRST]
    kept_last = np.int64(-1)
    kept_first = np.int64(-1)
    while taken >= 0:
        following = node[taken, NODE_NEXT]
        if node[taken, NODE_FINISH] <= now:
            # It finishes at this very instant, and will be told so.
            if kept_first < 0:
                kept_first = taken
            else:
                node[kept_last, NODE_NEXT] = taken
            node[taken, NODE_NEXT] = -1
            kept_last = taken
        else:
            lost[count] = taken
            count += 1
        taken = following
    mine[SENT_FIRST] = kept_first
    mine[SENT_LAST] = kept_last
    mine[UNSTARTED] = -1
    mine[QUEUED] = 0
    before = np.int64(-1)
    doomed = meta[DOOMED_FIRST]
    while doomed >= 0:
        following = node[doomed, NODE_NEXT]
        if node[doomed, NODE_START] == worker:
            lost[count] = doomed
            count += 1
            if before < 0:
                meta[DOOMED_FIRST] = following
            else:
                node[before, NODE_NEXT] = following
        else:
            before = doomed
        doomed = following
    meta[DOOMED_LAST] = before
    set_next(board, worker, node[kept_first, NODE_FINISH] if kept_first >= 0 else np.int64(NEVER))
    return lost[:count]


@njit
def lose(board: Any, rows: Any, lost: Any, closed: Any) -> None:
    """Give lost tuples up: note it in their rows, free their nodes, and if `closed` the places at their sources."""
    node, table = board.node, board.source
    for taken in lost:
        rows[node[taken, NODE_SEQ] & (rows.shape[0] - 1), ROW_STATUS] = LOST
        if closed:
            source = node[taken, NODE_SOURCE]
            table[source, PENDING] -= 1
            if table[source, WAITING] < 0:
                source_opens(board, source)
        node[taken, NODE_NEXT] = board.meta[FREE]
        board.meta[FREE] = taken


@njit
def settle(board: Any, rows: Any) -> None:
    """Note of all tuples that were sent that they will finish: nothing can be lost any more."""
    node = board.node
    for worker in range(board.worker.shape[0]):
        taken = board.worker[worker, SENT_FIRST]
        while taken >= 0:
            rows[node[taken, NODE_SEQ] & (rows.shape[0] - 1), ROW_STATUS] = FINISHED
            taken = node[taken, NODE_NEXT]
