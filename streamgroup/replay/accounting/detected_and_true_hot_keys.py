"""Compares the keys that a grouping treats as hot with those that are, window by window (METRICS: hot keys).

A key is hot in truth in a window if it has at least the share theta of the window's tuples. It becomes hot in a window
if it was not so in the one before (the first has none before), and is detected at its next treatment as hot, at once if
its last one before the window was such. All of this goes over tuples in the order of the stream that workers accepted,
outside of the loops. Memory is O(keys), and a window costs no more than the distinct keys in it.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.replay.accounting.outcome import HotKeys
from streamgroup.replay.tuple_arrays import DROPPED, Events

__all__ = ["Hotness", "follow", "heads"]

I64 = NDArray[np.int64]

# Of a key's word: its last treatment was as hot; that before the window was; it was treated as hot in the window; it
# was ever treated at all; it became hot and was not treated as hot since; it was ever treated as hot. Above these its
# tuples in the window, 32 bits, and above those the number of workers that its last tuple was given, 0 as a cold one.
_LAST, _BEFORE, _HOT, _SEEN, _PENDING, _EVER = 1, 2, 4, 8, 16, 32
_COUNT = 8
_ONE = 1 << _COUNT
_GIVEN = 40
_BELOW = (1 << _GIVEN) - 1
_COUNTED = _BELOW + 1 - _ONE
_KEPT = ~(_COUNTED | _BEFORE | _HOT)

# Places in `Marks.meta`: distinct keys and tuples of the window at hand, its first tuple (-1: none has come) and when
# that arrived, keys treated as hot in it; windows that ended; keys that became hot and were detected, and the sums of
# what that took, in tuples and in ns (high x 2^31 + low).
_KEYS, _TUPLES, _START, _START_NS, _TREATED, _ENDED, _DETECTED, _DELAY, _DELAY_HIGH, _DELAY_LOW = range(10)
_HALF = 31
_LOW = (1 << _HALF) - 1
# Of keys that were not detected yet: how often each became hot, the sum of those tuples and times.
_TIMES, _SINCE, _SINCE_HIGH, _SINCE_LOW = range(4)

# A count times the denominator of theta stays below 2^63.
_LARGEST = 1 << 30


class Marks(NamedTuple):
    """What is known of keys.

    By key: `word` int64 (above); `first` int64[2], the tuple and time of its first treatment as hot in the window;
    `true` int64, the window after the last one in which it was hot in truth (from 2; 0: in none); `pending` int64[4]
    (above). `touched` uint32[keys + 1] lists the keys of the window; `meta` int64[10] is above.

    All but `word` and `touched` are written for hot keys only, and zeros that nobody writes take no memory.
    """

    word: I64
    first: I64
    true: I64
    pending: I64
    touched: NDArray[np.uint32]
    meta: I64


@njit
def _detect(marks: Any, key: Any, place: Any, now: Any) -> None:
    """Count a key as detected, as often as it became hot before."""
    meta, pending = marks.meta, marks.pending
    times = pending[key, _TIMES]
    meta[_DETECTED] += times
    meta[_DELAY] += times * place - pending[key, _SINCE]
    meta[_DELAY_HIGH] += times * (now >> _HALF) - pending[key, _SINCE_HIGH]
    meta[_DELAY_LOW] += times * (now & _LOW) - pending[key, _SINCE_LOW]
    for column in range(4):
        pending[key, column] = 0


@njit
def _become_hot(marks: Any, key: Any, word: Any) -> Any:
    """Note that a key became hot in the window that ends; give its word."""
    meta, pending = marks.meta, marks.pending
    start, start_ns = meta[_START], meta[_START_NS]
    if word & _BEFORE:
        meta[_DETECTED] += 1
        return word
    pending[key, _TIMES] += 1
    pending[key, _SINCE] += start
    pending[key, _SINCE_HIGH] += start_ns >> _HALF
    pending[key, _SINCE_LOW] += start_ns & _LOW
    if word & _HOT:
        _detect(marks, key, marks.first[key, 0], marks.first[key, 1])
        return word
    return word | _PENDING


@njit
def _end_window(marks: Any, share: Any, rows: Any, row: Any) -> None:
    """Compare what was treated as hot with what is; write both and what is in both into the row."""
    meta, words = marks.meta, marks.word
    ended = meta[_ENDED] + 1
    least = share[0] * meta[_TUPLES]
    hot, both = 0, 0
    for place in range(meta[_KEYS]):
        key = np.int64(marks.touched[place])
        word = words[key]
        if ((word & _COUNTED) >> _COUNT) * share[1] >= least:
            hot += 1
            if word & _HOT:
                both += 1
            if marks.true[key] != ended:
                word = _become_hot(marks, key, word)
            marks.true[key] = ended + 1
        words[key] = (word & _KEPT) | (word & _LAST) * _BEFORE
    rows[row, 0], rows[row, 1], rows[row, 2] = meta[_TREATED], hot, both
    meta[_KEYS], meta[_TUPLES], meta[_TREATED] = 0, 0, 0
    meta[_START] = -1
    meta[_ENDED] = ended


class Piece(NamedTuple):
    """The next tuples of the stream: `offset` is the number of the first, and the first `skip` are warm-up.

    `keys` uint32, `arrivals` int64 and `allowed` int32 (workers that a tuple treated as hot may go to, 0 of a cold one,
    -1 of one that no worker accepted) are of one length.
    """

    keys: NDArray[np.uint32]
    arrivals: I64
    allowed: NDArray[np.int32]
    offset: int
    skip: int


def follow(marks: Any, piece: Any, share: Any, ends: Any, rows: Any) -> None:
    """Follow the next tuples of the stream, a `Piece`.

    `share` int64[2] is theta. `ends` int64[windows] are the places before which windows end, `rows` int64[windows, 3]
    take the keys treated as hot, hot in truth, and both.
    """
    words, meta = marks.word, marks.meta
    keys, arrivals, allowed, offset, skip = piece.keys, piece.arrivals, piece.allowed, piece.offset, piece.skip
    for i in range(skip):
        if allowed[i] >= 0:
            words[np.uint64(keys[i])] = _LAST | _BEFORE if allowed[i] > 0 else 0
    begin = skip
    for window in range(ends.shape[0] + 1):
        stop = ends[window] if window < ends.shape[0] else keys.shape[0]
        if begin < stop and meta[_START] < 0:
            meta[_START], meta[_START_NS] = offset + begin, arrivals[begin]
        distinct, tuples = meta[_KEYS], meta[_TUPLES]
        for i in range(begin, stop):
            given = allowed[np.uint64(i)]
            if given < 0:
                continue
            key = np.uint64(keys[np.uint64(i)])
            word = words[key]
            tuples += 1
            # No processor can predict which keys are new in the window, or hot: branches only where little happens.
            marks.touched[np.uint64(distinct)] = key
            distinct += np.int64(word & _COUNTED == 0)
            hot = given > 0
            if hot & (word & _HOT == 0):
                marks.first[key, 0], marks.first[key, 1] = offset + i, arrivals[i]
                meta[_TREATED] += 1
                if word & _PENDING:
                    _detect(marks, key, offset + i, arrivals[i])
                    word -= _PENDING
            word = (word & (_BELOW - _LAST)) | (np.int64(given) << _GIVEN) | _SEEN
            words[key] = (word | (_LAST | _HOT | _EVER if hot else 0)) + _ONE
        begin = stop
        meta[_KEYS], meta[_TUPLES] = distinct, tuples
        if window < ends.shape[0]:
            _end_window(marks, share, rows, window)


def heads(count: I64, share: Fraction) -> NDArray[np.uint8]:
    """Return which keys have at least a share of all tuples, by their counts: 1 for each that has, in order of ids.

    It ends with a 0 behind the last such key, which stands for all keys from there on.
    """
    least = -(-share.numerator * int(count.sum()) // share.denominator)
    keys = np.flatnonzero(count >= least)
    found = np.zeros(int(keys.max(initial=-1)) + 2, dtype=np.uint8)
    found[keys] = 1
    return found


class Hotness:
    """Follows the hot keys of a run over `keys` keys; `run` is `follow`, compiled or interpreted.

    A key is hot in truth from `share` of a window's tuples on. A thread follows the tuples while the loop goes on.
    """

    def __init__(self, run: Callable[..., None], keys: int, share: Fraction) -> None:
        if not 0 < share <= 1 or share.denominator > _LARGEST:
            raise UsageError(
                f"hot_share() gave {share}",
                "it is a share of the stream: above 0 and at most 1, its denominator 2^30 at most",
            )
        self._run = run
        self._share = np.array([share.numerator, share.denominator], dtype=np.int64)
        self._marks = Marks(
            np.zeros(keys, dtype=np.int64),
            np.zeros((keys, 2), dtype=np.int64),
            np.zeros(keys, dtype=np.int64),
            np.zeros((keys, 4), dtype=np.int64),
            np.zeros(keys + 1, dtype=np.uint32),
            np.zeros(10, dtype=np.int64),
        )
        self._marks.meta[_START] = -1
        self._rows: list[I64] = []
        self._following: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="streamgroup-hot-keys")

    def add(
        self, keys: NDArray[np.uint32], arrival: I64, allowed: NDArray[np.int32], offset: int, skip: int, ends: I64
    ) -> None:
        """Add the next tuples of the stream, arguments as of `Piece`; the arrays are read until the next call."""
        rows = np.zeros((len(ends), 3), dtype=np.int64)
        # Read-only, as all that goes through compiled code.
        piece = Piece(keys[:], arrival[:], allowed[:], offset, skip)
        for column in piece[:3]:
            column.flags.writeable = False
        self._collect()
        self._following = self._thread.submit(self._run, self._marks, piece, self._share, ends.copy(), rows)
        if len(rows):
            self._rows.append(rows)

    def _collect(self) -> None:
        if self._following is not None:
            self._following.result()
            self._following = None

    def end(self) -> None:
        """End the last window."""
        end = np.zeros(1, dtype=np.int64)
        self.add(np.zeros(0, dtype=np.uint32), end[:0], np.zeros(0, dtype=np.int32), 0, 0, end)
        self._collect()
        self._thread.shutdown()

    def add_events(self, events: Events, offset: int, skip: int, ends: I64) -> None:
        """Add tuples of the event-driven simulation, none of them open; their columns will be used again."""
        assert events.hot is not None
        allowed = np.where(events.finish == DROPPED, np.int32(-1), events.hot)
        self.add(events.key.copy(), events.arrival.copy(), allowed, offset, skip, ends)

    def was_hot(self, key: int) -> bool:
        """Return whether a key was ever treated as hot, by a measured tuple."""
        return bool(self._marks.word[key] & _EVER)

    def choices(self, cold: int) -> I64:
        """Return how many workers the last measured tuple of each key was given, `cold` for one treated as cold."""
        word = self._marks.word
        given: I64 = np.where(word & _LAST, word >> _GIVEN, np.int64(cold))
        return np.where(word & _SEEN, given, np.int64(0))

    def found(self) -> HotKeys:
        """Return what was found, after the last window ended."""
        rows = np.concatenate(self._rows)
        meta = self._marks.meta.tolist()
        return HotKeys(
            treated=rows[:, 0].copy(),
            hot=rows[:, 1].copy(),
            both=rows[:, 2].copy(),
            detected=meta[_DETECTED],
            delay_tuples=meta[_DELAY],
            delay_ns=(meta[_DELAY_HIGH] << _HALF) + meta[_DELAY_LOW],
        )
