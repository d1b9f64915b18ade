"""A key's candidate workers, nearest first, by a ring or by the functions F_j; listed on first use and kept.

Most keys need two. A list of d takes a walk over d log d points of a ring, so lists are kept, in a table of bounded
size in which a newcomer replaces what is in its row.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels import compiled_hash_placement
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.hash_ring import walk

__all__ = ["Shortlists", "make_shortlists", "place_of", "row_of"]

# Bytes that kept lists may take.
_MOST_BYTES = 64 << 20


class Shortlists(NamedTuple):
    """The places of keys, the first two workers of each place, and lists of more.

    A key's place is its point on the ring, `point` int32[keys], or, without a ring, the key itself (`point` is empty).
    `nearest` uint16[places, 2]. `lists` uint16[2^r, n]: row p mod 2^r is that of place p. `live` uint16[n]. `kept`
    int64[2^r, 2]: whose list is in a row (-1: nobody's) and how long it is. `owner` uint16[points] is the ring; `words`
    uint64[keys, 2] are, without one, the keys' h1 plus the seed's part, and h2 | 1; `modulo` is as in
    `hash_placement.candidate`. `seen` int64[N] and `stamp` int64[1] are for walks.

    Without a ring F_1, ..., F_n may coincide, so that they are not all workers. All workers of a key are then listed
    apart, as those of place keys + key: F_1, ..., F_n without repetitions, then the other workers by id.
    """

    point: NDArray[np.int32]
    nearest: NDArray[np.uint16]
    lists: NDArray[np.uint16]
    kept: NDArray[np.int64]
    live: NDArray[np.uint16]
    owner: NDArray[np.uint16]
    words: NDArray[np.uint64]
    seen: NDArray[np.int64]
    stamp: NDArray[np.int64]
    modulo: bool = False


def make_shortlists(
    nearest: NDArray[np.uint16],
    live: NDArray[np.int64],
    point: NDArray[np.int32],
    owner: NDArray[np.uint16],
    words: NDArray[np.uint64],
) -> Shortlists:
    """Make them for `live` workers (int64, ascending); see `Shortlists`."""
    workers = len(live)
    places = len(nearest) if len(point) > 0 else 2 * len(nearest)
    rows = 1 << max(0, (places - 1).bit_length())
    while rows > 1 and rows * workers * 2 > _MOST_BYTES:
        rows >>= 1
    lists = np.empty((rows, workers), dtype=np.uint16)
    kept = np.zeros((rows, 2), dtype=np.int64)
    kept[:, 0] = -1
    seen = np.zeros(int(live[-1]) + 1, dtype=np.int64)
    stamp = np.zeros(1, dtype=np.int64)
    return Shortlists(point, nearest, lists, kept, live.astype(np.uint16), owner, words, seen, stamp)


@njit(forceinline=True)
def place_of(shortlists: Any, key: Any) -> Any:
    """Return the place of a key."""
    if shortlists.point.shape[0] > 0:
        return np.int64(shortlists.point[np.uint64(key)])
    return np.int64(key)


@njit
def _list_functions(shortlists: Any, key: Any, row: Any, d: Any) -> None:
    """Write F_1, ..., F_d of a key to a row."""
    lists, live = shortlists.lists, shortlists.live
    word, step = shortlists.words[key, 0], shortlists.words[key, 1]
    for j in range(d):
        word += step
        lists[row, j] = live[compiled_hash_placement.candidate_place(word, live.shape[0], shortlists.modulo)]


@njit
def _list_all(shortlists: Any, key: Any, row: Any) -> None:
    """Write F_1, ..., F_n of a key to a row, each worker once, and then the other workers by id."""
    lists, live, seen = shortlists.lists, shortlists.live, shortlists.seen
    workers = live.shape[0]
    _list_functions(shortlists, key, row, workers)
    shortlists.stamp[0] += 1
    found = 0
    for j in range(2 * workers):
        worker = lists[row, j] if j < workers else live[j - workers]
        if seen[worker] != shortlists.stamp[0]:
            seen[worker] = shortlists.stamp[0]
            lists[row, found] = worker
            found += 1


@njit
def _list_anew(shortlists: Any, place: Any, row: Any, d: Any) -> None:
    kept, lists, keys = shortlists.kept, shortlists.lists, shortlists.nearest.shape[0]
    if kept[row, 0] == place:
        d = min(max(d, 2 * kept[row, 1]), shortlists.live.shape[0])
    if shortlists.point.shape[0] > 0:
        shortlists.stamp[0] += 1
        walk(shortlists.owner, place, d, shortlists.seen, shortlists.stamp[0], lists, row)
    elif place >= keys:
        _list_all(shortlists, place - keys, row)
    else:
        _list_functions(shortlists, place, row, d)
    kept[row, 0] = place
    kept[row, 1] = d


@njit(forceinline=True)
def row_of(shortlists: Any, place: Any, d: Any) -> Any:
    """Return the row of `lists` whose first d workers are those of a place, d <= n."""
    if d == shortlists.live.shape[0] and shortlists.point.shape[0] == 0:
        place += shortlists.nearest.shape[0]
    row = place & (shortlists.kept.shape[0] - 1)
    if shortlists.kept[row, 0] != place or shortlists.kept[row, 1] < d:
        _list_anew(shortlists, place, row, d)
    return row
