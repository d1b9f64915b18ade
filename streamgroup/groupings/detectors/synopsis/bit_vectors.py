"""The synopsis of potentially hot keys of DStream (002, section IV): probabilistic counts in bit vectors that decline.

A tuple's key is reported with the length t of a run of heads, which is long with a probability that halves with each
more; a key that is reported often has seen many lengths, and each length is a bit of its vector. At each report every
vector is shifted right with a small probability, and a key whose vector is empty leaves.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.detectors.synopsis.counting_bloom import add, has, remove
from streamgroup.groupings.detectors.synopsis.messages_in_flight import NEVER, next_due, pop, push
from streamgroup.kernels import compiled_hash_placement
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.control_servers import serve

__all__ = [
    "Synopsis",
    "coin_tossed",
    "decline",
    "decline_exactly",
    "doubled",
    "make_synopsis",
    "note",
    "room_left",
    "toss",
]

# Bytes of a report and of a broadcast to one source.
KEY_BYTES = 16
_LEAVES, _COMES = 0, 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# A report carries a bit, and what passes until it arrives, in ns (4 years at most).
_BIT_BITS = 6
_LONGEST_PASSAGE = (1 << 57) - 1
_1, _11 = np.uint64(1), np.uint64(11)


class Synopsis(NamedTuple):
    """The table, with room for `bits.shape[0]` keys in the order in which they came.

    `key` uint32[room]; `announced` uint8[room], whether it was announced as hot; `bits` uint64[room], never 0; `left`
    int64[room]: keys that left at the last decline, to be announced; `size` int64[1]; `draw` uint64[1]: the stream of
    draws, at the place that was drawn last. A key is found by looking through all: each report visits all anyway.
    `announces_all` is as in the published code: each report of a key with enough bits, and all who leave.
    """

    key: NDArray[np.uint32]
    announced: NDArray[np.uint8]
    bits: NDArray[np.uint64]
    left: NDArray[np.int64]
    size: NDArray[np.int64]
    draw: NDArray[np.uint64]
    announces_all: bool


def make_synopsis(room: int, stream: int, announces_all: bool = False) -> Synopsis:
    """Make an empty table that draws from `stream` (see `random_draws.stream`)."""
    return Synopsis(
        key=np.zeros(room, dtype=np.uint32),
        announced=np.zeros(room, dtype=np.uint8),
        bits=np.zeros(room, dtype=np.uint64),
        left=np.zeros(room, dtype=np.int64),
        size=np.zeros(1, dtype=np.int64),
        draw=np.array([stream], dtype=np.uint64),
        announces_all=announces_all,
    )


def doubled(synopsis: Synopsis) -> Synopsis:
    """Return a table with the same keys and twice the room."""

    def twice(array: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([array, np.zeros_like(array)])

    return synopsis._replace(
        key=twice(synopsis.key),
        announced=twice(synopsis.announced),
        bits=twice(synopsis.bits),
        left=twice(synopsis.left),
    )


@njit(forceinline=True)
def toss(coins: Any, source: Any, shortest: Any, longest: Any) -> Any:
    """Toss a coin until the first tail, at most `longest` <= 64 times: count the heads, -1 if under `shortest` < 64.

    `coins` uint64[sources] holds each source's stream at the place that was drawn last. A word is 64 tosses, the lowest
    bit first, 0 is heads.
    """
    x = coins[np.uint64(source)] + _GOLDEN
    coins[np.uint64(source)] = x
    word = compiled_hash_placement.mixed(x)
    if word & ((_1 << np.uint64(shortest)) - _1) != 0:
        return np.int64(-1)
    length = np.int64(shortest)
    while length < longest and (word >> np.uint64(length)) & _1 == 0:
        length += 1
    return length


@njit(forceinline=True)
def note(synopsis: Any, key: Any, bit: Any, zeta: Any) -> Any:
    """Set a bit (0..63) of a key, which is new or not; return whether to announce it: it has `zeta` bits now."""
    size = synopsis.size[0]
    place = np.int64(0)
    while place < size and synopsis.key[place] != key:
        place += 1
    if place == size:
        synopsis.size[0] = size + 1
        synopsis.key[place] = key
        synopsis.announced[place] = 0
        synopsis.bits[place] = 0
    bits = synopsis.bits[place] | (_1 << np.uint64(bit))
    synopsis.bits[place] = bits
    if synopsis.announced[place] != 0 and not synopsis.announces_all:
        return False
    count = 0
    while bits != 0:
        bits &= bits - _1
        count += 1
    if count < zeta:
        return False
    synopsis.announced[place] = 1
    return True


@njit(forceinline=True)
def _sweep(synopsis: Any, first: Any) -> Any:
    """Take the keys without a bit out, of which that at `first` is the first; the others keep their order.

    Those whose leaving is to be announced are in `left` afterwards; the result is their number.
    """
    kept, gone = first, np.int64(0)
    for place in range(first, synopsis.size[0]):
        if synopsis.bits[place] != 0:
            synopsis.key[kept] = synopsis.key[place]
            synopsis.announced[kept] = synopsis.announced[place]
            synopsis.bits[kept] = synopsis.bits[place]
            kept += 1
        elif synopsis.announced[place] != 0 or synopsis.announces_all:
            synopsis.left[gone] = synopsis.key[place]
            gone += 1
    synopsis.size[0] = kept
    return gone


@njit(forceinline=True)
def decline(synopsis: Any, chance: Any) -> Any:
    """Shift each vector right with probability chance x 2^-53, one draw each in order; see `_sweep` for the result."""
    size = synopsis.size[0]
    x = synopsis.draw[0]
    limit = np.uint64(chance)
    empty = size
    for place in range(size):
        x += _GOLDEN
        if compiled_hash_placement.mixed(x) >> _11 < limit:
            bits = synopsis.bits[place] >> _1
            synopsis.bits[place] = bits
            if bits == 0:
                empty = min(empty, place)
    synopsis.draw[0] = x
    return _sweep(synopsis, empty)


@njit(forceinline=True)
def decline_exactly(synopsis: Any, share: Any) -> Any:
    """Shift `share` x size vectors right, drawn without replacement; a fraction left over is one more by chance.

    One draw is for the fraction, and one for each key in order.
    """
    size = synopsis.size[0]
    x = synopsis.draw[0] + _GOLDEN
    wanted = np.int64(share * size)
    if np.float64(compiled_hash_placement.mixed(x) >> _11) * 2.0**-53 < share * size - wanted:
        wanted += 1
    empty = size
    for place in range(size):
        x += _GOLDEN
        if np.int64(compiled_hash_placement.place(x, size - place)) < wanted:
            wanted -= 1
            bits = synopsis.bits[place] >> _1
            synopsis.bits[place] = bits
            if bits == 0:
                empty = min(empty, place)
    synopsis.draw[0] = x
    return _sweep(synopsis, empty)


@njit(forceinline=True)
def room_left(reports: Any, synopsis: Any, broadcasts: Any) -> Any:
    """Return the number of reports that may still come before one of three needs more room: two queues and the table.

    A report on its way may become a key of the table or announce one, and each key may leave, which is announced.
    """
    waiting, keys = reports.size[0], synopsis.size[0]
    announcements = broadcasts.size[0] + 2 * (waiting + keys)
    return min(
        reports.row.shape[0] - waiting,
        synopsis.bits.shape[0] - waiting - keys,
        (broadcasts.row.shape[0] - announcements) // 2,
    )


@njit(forceinline=True)
def coin_tossed(servers: Any, next_coin: Any, source: Any, now: Any) -> Any:
    """Send a signal to a coin server; return when it is served, had it arrived at once: all take equally long to
    arrive. Without coin servers (`next_coin` None) it is now.
    """
    if next_coin is not None:
        server = next_coin[source]
        following = server + 1
        next_coin[source] = 0 if following == servers.free.shape[0] - 1 else following
        return serve(servers.free, servers.jobs, servers.takes, server, now)
    return now


@njit
def report(predictor: Any, source: Any, key: Any, bit: Any, now: Any, tossed: Any) -> None:
    """Send a report to the synopsis for the coin of a tuple that was emitted `now`; `tossed` as from `coin_tossed`.

    (Rare, so it is kept out of the way of what every tuple does.)
    """
    due = tossed + predictor.report_delay
    # What passes from the arrival of the signal to that of the report goes with it.
    passes = min(tossed - now + predictor.coin_delay, _LONGEST_PASSAGE)
    push(predictor.reports, due, source, key, bit | (passes << _BIT_BITS))
    predictor.due[0] = min(predictor.due[0], due)
    predictor.room[0] -= 1
    predictor.control_messages[0] += 1
    predictor.control_bytes[0] += KEY_BYTES


@njit(forceinline=True)
def _next_served(servers: Any, reports: Any) -> Any:
    """Return when the service of the next report ends, NEVER if there is none."""
    last = servers.free.shape[0] - 1
    begins = max(next_due(reports), servers.free[last])
    return begins + min(servers.takes[last], NEVER - begins)


@njit
def deliver(predictor: Any, now: Any) -> None:
    """Handle all reports that are due by now, then apply the broadcasts that are."""
    reports, table, broadcasts, servers = predictor.reports, predictor.table, predictor.broadcasts, predictor.servers
    last = servers.free.shape[0] - 1
    while _next_served(servers, reports) <= now:
        due = next_due(reports)
        done = serve(servers.free, servers.jobs, servers.takes, last, due)
        arrives = done + predictor.broadcast_delay
        key, what = pop(reports)
        sent = np.int64(0)
        if note(table, key, what & ((1 << _BIT_BITS) - 1), predictor.zeta):
            predictor.signal_delay[0] += done - due + (what >> _BIT_BITS)
            predictor.signal_delay[1] += 1
            push(broadcasts, arrives, 0, key, _COMES)
            sent += 1
        gone = decline_exactly(table, predictor.share) if predictor.is_drawn else decline(table, predictor.chance)
        for i in range(gone):
            push(broadcasts, arrives, 0, table.left[i], _LEAVES)
        sent = (sent + gone) * predictor.held.shape[0]
        predictor.control_messages[0] += sent
        predictor.control_bytes[0] += sent * KEY_BYTES
    while next_due(broadcasts) <= now:
        key, what = pop(broadcasts)
        is_in = has(predictor.counters, predictor.columns, key) != 0
        change = 0
        # As the published code: a key that is in, or passes for one, is not added again, and all that leave may never
        # have come.
        if what == _COMES and not (is_in and table.announces_all):
            add(predictor.counters, predictor.columns, key)
            change = 1
        elif what == _LEAVES and is_in:
            remove(predictor.counters, predictor.columns, key)
            change = -1
        if predictor.is_exact:
            for source in range(predictor.held.shape[0]):
                predictor.held[source] += change
    predictor.entries[0] = table.size[0]
    predictor.due[0] = min(_next_served(servers, reports), next_due(broadcasts))
    predictor.room[0] = room_left(reports, table, broadcasts)
