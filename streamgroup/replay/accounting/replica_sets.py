"""The pairs of key and worker that a run touched, kept beyond it: what replicas it has that another one has not."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.key_worker_pairs import BitPairs, HashPairs

__all__ = ["TouchedPairs", "beyond", "touched"]

# Cells of the tables that are compared at once.
_CELLS = 1 << 22


class TouchedPairs(NamedTuple):
    """Pairs of `keys` keys and `workers` workers, the pair of a key and a worker being key x workers + worker.

    Either `bits` uint8[ceil(keys x workers / 8)] has a bit for each, the lowest first, or, where that is empty,
    `pairs` int64[replicas] lists them, ascending.
    """

    bits: NDArray[np.uint8]
    pairs: NDArray[np.int64]
    keys: int
    workers: int

    def table(self, first: int, last: int) -> NDArray[np.bool_]:
        """Return which workers hold the keys from `first` to before `last`: bool[keys, workers]."""
        begin, end = first * self.workers, last * self.workers
        if len(self.bits):
            bits = np.unpackbits(self.bits[begin >> 3 : (end + 7) >> 3], bitorder="little")
            held = bits[begin & 7 : (begin & 7) + end - begin].view(np.bool_)
        else:
            held = np.zeros(end - begin, dtype=np.bool_)
            held[self.pairs[slice(*np.searchsorted(self.pairs, [begin, end]))] - begin] = True
        return held.reshape(-1, self.workers)


def touched(pairs: BitPairs | HashPairs, keys: int) -> TouchedPairs:
    """Take what a run has touched out of what it was counted with."""
    if isinstance(pairs, BitPairs):
        return TouchedPairs(pairs.run, np.empty(0, dtype=np.int64), keys, pairs.workers)
    listed = np.sort(pairs.slot[pairs.slot != 0] - 1)
    return TouchedPairs(np.empty(0, dtype=np.uint8), listed, keys, pairs.workers)


def beyond(mine: TouchedPairs, theirs: TouchedPairs) -> int:
    """Count the pairs of one run that another run of the same keys has not; worker ids mean the same in both."""
    step = max(1, _CELLS // max(mine.workers, theirs.workers))
    both = min(mine.workers, theirs.workers)
    found = 0
    for first in range(0, mine.keys, step):
        last = min(first + step, mine.keys)
        held = mine.table(first, last)
        shared = held[:, :both] & theirs.table(first, last)[:, :both]
        found += int(np.count_nonzero(held)) - int(np.count_nonzero(shared))
    return found
