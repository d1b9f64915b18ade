"""What the ordered loop keeps between two events: tuples on their way, who waits for what, and what happens next.

All of it is plain arrays of int64, a tuple, a source or a worker a row, and free functions over them, which compile
into the loop. -1 means none.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.replay.measure import (
    DROPPED,
    LOST,
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
    "Stream",
    "at",
    "certain",
    "crash",
    "forget_dropped",
    "forget_waiters",
    "give_back",
    "grown_nodes",
    "grown_rows",
    "grown_stream",
    "load",
    "lose",
    "make_board",
    "make_stream",
    "make_tournament",
    "row_of",
    "set_next",
    "set_turn",
    "settle",
    "source_opens",
    "source_shuts",
    "turn_all",
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


class Stream(NamedTuple):
    """Tuples that were read and are not sent: tuple i at i mod capacity, a power of two.

    `arrival` int64, `key` uint32, `cost` int64 or float64 (one of size 1 where all cost the same), `following` int64
    (the next tuple of the same source, -1: not read yet; of size 1 where tuples are dealt in turn), `source` int32.
    """

    arrival: NDArray[np.int64]
    key: NDArray[np.uint32]
    cost: NDArray[Any]
    following: NDArray[np.int64]
    source: NDArray[np.int32]


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


def make_stream(cost: Any, *, dealt: bool, capacity: int) -> Stream:
    """Make an empty stream; `cost` is the type of the costs, None where all cost the same."""
    return Stream(
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.uint32),
        np.zeros(1 if cost is None else capacity, dtype=np.int64 if cost is None else cost),
        np.full(1 if dealt else capacity, -1, dtype=np.int64),
        np.zeros(1 if dealt else capacity, dtype=np.int32),
    )


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


def grown_stream(stream: Stream, first: int, end: int) -> Stream:
    """Make room for twice as many tuples; first..end-1 are kept."""

    def grown(one: NDArray[Any]) -> NDArray[Any]:
        return grown_rows(one, first, end) if len(one) > 1 else one

    return Stream(
        grown(stream.arrival), grown(stream.key), grown(stream.cost), grown(stream.following), grown(stream.source)
    )


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
def _enter(turn: Any, source: Any, when: Any, seq: Any) -> None:
    """Set when a source's next tuple may be chosen; of equal times the earlier tuple is first."""
    place = source + (turn.shape[0] >> 3)
    winner = np.int64(source)
    turn[np.uint64(place * 4)], turn[np.uint64(place * 4 + 1)], turn[np.uint64(place * 4 + 2)] = when, seq, winner
    while place > 1:
        sibling = (place ^ 1) * 4
        other, its_seq, its = turn[np.uint64(sibling)], turn[np.uint64(sibling + 1)], turn[np.uint64(sibling + 2)]
        wins = -np.int64((other < when) | ((other == when) & (its_seq < seq)))
        when ^= (when ^ other) & wins
        seq ^= (seq ^ its_seq) & wins
        winner ^= (winner ^ its) & wins
        place >>= 1
        turn[np.uint64(place * 4)], turn[np.uint64(place * 4 + 1)], turn[np.uint64(place * 4 + 2)] = when, seq, winner


@njit(forceinline=True)
def set_turn(node: Any, table: Any, turn: Any, arrival: Any, source: Any, end: Any, last: Any, closed: Any) -> None:
    """Find when a source's next tuple may be chosen, of the tuples before `end` that were read.

    Of a tuple that was not read it is known only that it is not earlier than the last one read; after the `last`
    chunk there is none. In a `closed` loop only tuples that were sent before have a turn of their own.
    """
    when, seq = np.int64(NEVER), np.int64(NEVER)
    if table[at(source, WAITING)] < 0:
        if table[at(source, UNSENT)] >= 0:
            when, seq = table[at(source, SINCE)], node[at(table[at(source, UNSENT)], NODE_SEQ)]
        elif closed == 0:
            seq = table[at(source, NEXT_TUPLE)]
            if 0 <= seq < end:
                when = max(arrival[seq & (arrival.shape[0] - 1)], table[at(source, SINCE)])
            elif last == 0:
                seq = max(seq, end)
                when = (
                    max(arrival[(end - 1) & (arrival.shape[0] - 1)], table[at(source, SINCE)])
                    if end > 0
                    else np.int64(0)
                )
            else:
                seq = np.int64(NEVER)
    _enter(turn, source, when, seq)


@njit
def turn_all(board: Any, stream: Any, end: Any, last: Any, closed: Any) -> None:
    """Find the turns of all sources anew."""
    for source in range(board.source.shape[0] // WIDTH):
        set_turn(board.node, board.source, board.turn, stream.arrival, source, end, last, closed)


@njit
def load(
    board: Any,
    stream: Any,
    last_of: Any,
    begin: Any,
    arrival: Any,
    key: Any,
    cost: Any,
    source: Any,
    last: Any,
    closed: Any,
) -> None:
    """Take a chunk that begins at tuple `begin` into the stream, which has room for it.

    `last_of` int64[sources] is the last tuple of each source that was read, -1 for none; `source` is None where tuples
    are dealt in turn.
    """
    mask = stream.key.shape[0] - 1
    for i in range(key.shape[0]):
        place = (begin + i) & mask
        stream.key[place] = key[i]
        if closed == 0:
            stream.arrival[place] = arrival[i]
        if cost is not None:
            stream.cost[place] = cost[i]
        if source is not None:
            its = source[i]
            stream.source[place] = its
            stream.following[place] = -1
            if board.source[at(its, NEXT_TUPLE)] < 0:
                board.source[at(its, NEXT_TUPLE)] = begin + i
            elif last_of[its] >= 0:
                stream.following[last_of[its] & mask] = begin + i
            last_of[its] = begin + i
    turn_all(board, stream, begin + key.shape[0], last, closed)


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


@njit
def forget_dropped(board: Any, rows: Any, now: Any) -> None:
    """Note as dropped the tuples that reached a full worker by now."""
    meta, node = board.meta, board.node
    first = meta[DOOMED_FIRST]
    while first >= 0 and node[at(first, NODE_REACHED)] <= now:
        following = node[at(first, NODE_NEXT)]
        rows[row_of(rows, node[at(first, NODE_SEQ)], ROW_FINISH)] = DROPPED
        node[at(first, NODE_NEXT)] = meta[FREE]
        meta[FREE] = first
        first = following
    meta[DOOMED_FIRST] = first


@njit
def forget_waiters(board: Any, worker: Any, now: Any) -> None:
    """Let the sources that wait for a place on a worker choose anew: it takes nothing any more."""
    crew, table = board.worker, board.source
    source = crew[at(worker, WAIT_FIRST)]
    while source >= 0:
        waiting = table[at(source, WAITING)]
        table[at(source, WAITING)] = -1
        give_back(board.node, table, waiting, now)
        source = table[at(source, WAITER_NEXT)]
    crew[at(worker, WAIT_FIRST)] = -1
    crew[at(worker, WAIT_LAST)] = -1
    first = crew[at(worker, SENT_FIRST)]
    set_next(board.time, board.who, worker, board.node[at(first, NODE_FINISH)] if first >= 0 else np.int64(NEVER))


@njit
def crash(board: Any, worker: Any, now: Any) -> Any:
    """Take all tuples away from a worker that crashes, but those that have finished: their nodes, int64[k]."""
    node, crew, meta = board.node, board.worker, board.meta
    count = 0
    taken = crew[at(worker, SENT_FIRST)]
    while taken >= 0:
        count += 1
        taken = node[at(taken, NODE_NEXT)]
    doomed = meta[DOOMED_FIRST]
    while doomed >= 0:
        count += node[at(doomed, NODE_START)] == worker
        doomed = node[at(doomed, NODE_NEXT)]
    lost = np.empty(count, dtype=np.int64)
    count = 0
    taken = crew[at(worker, SENT_FIRST)]
    kept = np.int64(-1)
    crew[at(worker, SENT_FIRST)] = -1
    while taken >= 0:
        following = node[at(taken, NODE_NEXT)]
        if node[at(taken, NODE_FINISH)] <= now:
            # It finishes at this very instant, and will be told so.
            if kept < 0:
                crew[at(worker, SENT_FIRST)] = taken
            else:
                node[at(kept, NODE_NEXT)] = taken
            node[at(taken, NODE_NEXT)] = -1
            kept = taken
        else:
            lost[count] = taken
            count += 1
        taken = following
    crew[at(worker, SENT_LAST)] = kept
    crew[at(worker, UNSTARTED)] = -1
    crew[at(worker, QUEUED)] = 0
    before = np.int64(-1)
    doomed = meta[DOOMED_FIRST]
    while doomed >= 0:
        following = node[at(doomed, NODE_NEXT)]
        if node[at(doomed, NODE_START)] == worker:
            lost[count] = doomed
            count += 1
            if before < 0:
                meta[DOOMED_FIRST] = following
            else:
                node[at(before, NODE_NEXT)] = following
        else:
            before = doomed
        doomed = following
    meta[DOOMED_LAST] = before
    return lost[:count]


@njit
def lose(board: Any, rows: Any, lost: Any, most: Any) -> None:
    """Give lost tuples up: note it in their rows, free their nodes.

    In a closed loop, where sources have at most `most` tuples pending (else 0), they free their places.
    """
    node, table = board.node, board.source
    for taken in lost:
        rows[row_of(rows, node[at(taken, NODE_SEQ)], ROW_FINISH)] = LOST
        if most > 0:
            source = node[at(taken, NODE_SOURCE)]
            table[at(source, PENDING)] -= 1
            if table[at(source, WAITING)] < 0:
                source_opens(table, board.meta, source)
        node[at(taken, NODE_NEXT)] = board.meta[FREE]
        board.meta[FREE] = taken


@njit
def settle(board: Any, rows: Any, waits: Any, first: Any) -> None:
    """Note of all tuples that were sent that they will finish: nothing can be lost any more (see `certain`)."""
    node = board.node
    for worker in range(board.worker.shape[0] // WIDTH):
        taken = board.worker[at(worker, SENT_FIRST)]
        while taken >= 0:
            certain(node, rows, waits, worker, taken, first)
            taken = node[at(taken, NODE_NEXT)]
