"""The least loaded of a key's many candidates, for loads that only grow: each search goes on where the last one ended.

What the least loaded candidate of a key had when it was last looked for, none of them has less than now; and of those
before it in the list none had as little. So the search goes on from there, for the same load, and starts anew, for a
higher one, only where none is left. The candidates themselves are listed once, not hashed for each tuple.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels import compiled_hash_placement
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["Cursors", "least_of_many", "make_cursors"]

I64 = NDArray[np.int64]

# Bytes that lists may take, and most of them.
_MOST_BYTES, _MOST_ROWS = 16 << 20, 1 << 14
# Columns of `kept`, and of the four numbers of a search.
_OWNER, _LISTED = range(2)
_KEY, _OF, _LEAST, _PLACE = range(4)
# Candidates that are compared before it is asked whether one is the least of all.
_STEP = 16


class Cursors(NamedTuple):
    """The candidates of keys, and how far each source's search for the least loaded of them has come.

    `words` uint64[keys, 2] are `hash_placement.candidate_words`, and `modulo` is as in `hash_placement.candidate`.
    `lists` uint16[2^r, d] begin with the candidates of a key, in the row key mod 2^r; a newcomer replaces who is there.
    `kept` int64[2^r, 2]: key + 1 (0: nobody's) and how many are listed. `search` int64[sources, 4 x 2^r]: in the same
    rows, key + 1, d, the load that was the least of F_1..F_d, and the place in the list up to which none has it.
    """

    words: NDArray[np.uint64]
    lists: NDArray[np.uint16]
    kept: I64
    search: I64
    modulo: bool


def make_cursors(words: NDArray[np.uint64], sources: int, most: int, *, modulo: bool = False) -> Cursors:
    """Begin with no list, for up to `most` candidates of a key."""
    rows = 1 << max(0, (len(words) - 1).bit_length())
    while rows > 1 and (rows > _MOST_ROWS or rows * most * 2 > _MOST_BYTES):
        rows >>= 1
    return Cursors(
        words=words,
        lists=np.empty((rows, most), dtype=np.uint16),
        kept=np.zeros((rows, 2), dtype=np.int64),
        search=np.zeros((sources, 4 * rows), dtype=np.int64),
        modulo=modulo,
    )


@njit
def _list_anew(cursors: Any, live: Any, key: Any, row: Any, d: Any) -> None:
    """List the candidates of a key, somewhat more than are asked for: d changes often."""
    word, step = cursors.words[key, 0], cursors.words[key, 1]
    d = min(d + (d >> 3), cursors.lists.shape[1])
    for place in range(d):
        word += step
        cursors.lists[row, place] = live[compiled_hash_placement.candidate_place(word, live.shape[0], cursors.modulo)]
    cursors.kept[row, _OWNER] = key + 1
    cursors.kept[row, _LISTED] = d


@njit(forceinline=True)
def _load_at(cursors: Any, load: Any, source: Any, row: Any, place: Any) -> Any:
    return load[source, np.uint64(cursors.lists[row, np.uint64(place)])]


@njit(forceinline=True)
def _first_of_least(cursors: Any, load: Any, source: Any, row: Any, d: Any, floor: Any) -> Any:
    """Give the least load of the first d candidates, and the place of the first that has it."""
    least, begin, found = np.int64(9223372036854775807), np.int64(0), np.int64(0)
    while begin < d and least > floor:
        end, low = min(begin + _STEP, d), np.int64(9223372036854775807)
        for place in range(begin, end):
            low = min(low, _load_at(cursors, load, source, row, place))
        found = begin if low < least else found
        least = min(low, least)
        begin = end
    while _load_at(cursors, load, source, row, found) != least:
        found += 1
    return least, found


@njit(forceinline=True)
def least_of_many(cursors: Any, load: Any, live: Any, source: Any, key: Any, d: Any, floor: Any) -> Any:
    """Give the least loaded of F_1..F_d of a key for a source, ties to the first.

    `load` int64[sources, N] only grows while the workers `live` int64[n] stay the same; no live worker's is below
    `floor`.
    """
    line = np.uint64(source)
    row = np.uint64(np.int64(key) & (cursors.kept.shape[0] - 1))
    if cursors.kept[row, _OWNER] != key + 1 or cursors.kept[row, _LISTED] < d:
        _list_anew(cursors, live, key, row, d)
    search, at = cursors.search[line], np.int64(row) << 2
    least, place = search[at + _LEAST], np.int64(d)
    if search[at + _KEY] == key + 1 and least >= floor:
        place = search[at + _PLACE]
        for further in range(search[at + _OF], d):
            value = _load_at(cursors, load, line, row, further)
            if value < least:
                least, place = value, np.int64(further)
        while place < d and _load_at(cursors, load, line, row, place) != least:
            place += 1
    if place >= d:
        least, place = _first_of_least(cursors, load, line, row, d, floor)
    search[at + _KEY] = key + 1
    search[at + _OF] = d
    search[at + _LEAST] = least
    search[at + _PLACE] = place
    return np.int64(cursors.lists[row, np.uint64(place)])
