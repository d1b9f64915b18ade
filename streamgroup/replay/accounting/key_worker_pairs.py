"""Which (key, worker) pairs were touched, in the run and in the window at hand.

A bitset while keys x workers <= 2^31, else a hash set. The common case, a pair seen before in this window, is one
look: only a pair that is new in the window can be new in the run.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["MAX_BITS", "BitPairs", "HashPairs", "grown", "make_pairs", "place_of"]

MAX_BITS = 1 << 31
_DIRTY = 1 << 20


@njit
def place_of(pair: Any, mask: Any) -> Any:
    """Return the first slot to look in: the upper bits of a multiplicative hash (Knuth, vol. 3, 6.4)."""
    return np.int64((np.uint64(pair) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask


class BitPairs(NamedTuple):
    """A bit a pair. `run`, `window`: uint8[ceil(keys n / 8)]; `dirty`: bytes of `window` in use; `used`: int64[1]."""

    run: NDArray[np.uint8]
    window: NDArray[np.uint8]
    dirty: NDArray[np.int64]
    used: NDArray[np.int64]
    workers: int

    def is_touched(self, key: int, worker: int) -> bool:
        """Return whether a pair was touched in the window at hand."""
        pair = key * self.workers + worker
        return self.window[np.uint64(pair >> 3)] & np.uint8(1 << (pair & 7)) != 0

    def touch(self, key: int, worker: int) -> int:
        """Mark a pair: 1 if it is new in the window, 3 if it is new in the run too, else 0."""
        pair = key * self.workers + worker
        place = np.uint64(pair >> 3)
        bit = np.uint8(1 << (pair & 7))
        before = self.window[place]
        if before & bit:
            return 0
        if before == 0:
            if self.used[0] < self.dirty.shape[0]:
                self.dirty[self.used[0]] = place
            self.used[0] += 1
        self.window[place] = before | bit
        known = self.run[place]
        if known & bit:
            return 1
        self.run[place] = known | bit
        return 3

    def is_full(self, more: int) -> bool:
        """Never: there is a bit for every pair."""
        return False

    def forget_window(self) -> None:
        """Clear the window's bits: those bytes that are known to be in use, or all when there were too many."""
        if self.used[0] <= self.dirty.shape[0]:
            for i in range(self.used[0]):
                self.window[self.dirty[i]] = 0
        else:
            self.window[:] = 0
        self.used[0] = 0

    def workers_of(self, key: int) -> int:
        """Count the workers that hold a key."""
        first = key * self.workers
        bits = np.arange(first, first + self.workers)
        return int(np.count_nonzero(self.run[bits >> 3] & (1 << (bits & 7)).astype(np.uint8)))


class HashPairs(NamedTuple):
    """Open addressing. `slot` int64[capacity] holds pair + 1, `stamp` int64[capacity] the window that last saw it.

    `meta` int64[2]: entries, number of the window at hand (from 1). Capacity is a power of two.
    """

    slot: NDArray[np.int64]
    stamp: NDArray[np.int64]
    meta: NDArray[np.int64]
    workers: int

    def is_touched(self, key: int, worker: int) -> bool:
        """Return whether a pair was touched in the window at hand."""
        pair = key * self.workers + worker + 1
        mask = self.slot.shape[0] - 1
        place = place_of(pair, mask)
        while self.slot[place] != 0 and self.slot[place] != pair:
            place = (place + 1) & mask
        return self.slot[place] == pair and self.stamp[place] == self.meta[1]

    def touch(self, key: int, worker: int) -> int:
        """Mark a pair: 1 if it is new in the window, 3 if it is new in the run too, else 0."""
        pair = key * self.workers + worker + 1
        mask = self.slot.shape[0] - 1
        place = place_of(pair, mask)
        while self.slot[place] != 0 and self.slot[place] != pair:
            place = (place + 1) & mask
        if self.slot[place] == pair:
            if self.stamp[place] == self.meta[1]:
                return 0
            self.stamp[place] = self.meta[1]
            return 1
        self.slot[place] = pair
        self.stamp[place] = self.meta[1]
        self.meta[0] += 1
        return 3

    def is_full(self, more: int) -> bool:
        """Return whether `more` pairs might fill half the slots."""
        return 2 * (self.meta[0] + more) > self.slot.shape[0]

    def forget_window(self) -> None:
        """Start the next window: stamps of earlier ones no longer count."""
        self.meta[1] += 1

    def workers_of(self, key: int) -> int:
        """Count the workers that hold a key."""
        mask = self.slot.shape[0] - 1
        held = 0
        for pair in range(key * self.workers + 1, (key + 1) * self.workers + 1):
            place = int(call(place_of, pair, mask))
            while self.slot[place] not in (0, pair):
                place = (place + 1) & mask
            held += int(self.slot[place] == pair)
        return held


@njit
def _rehash(slot: Any, stamp: Any, new_slot: Any, new_stamp: Any) -> None:
    mask = new_slot.shape[0] - 1
    for old in range(slot.shape[0]):
        if slot[old] != 0:
            place = place_of(slot[old], mask)
            while new_slot[place] != 0:
                place = (place + 1) & mask
            new_slot[place] = slot[old]
            new_stamp[place] = stamp[old]


def grown(pairs: HashPairs) -> HashPairs:
    """Double the slots of a hash set."""
    slot = np.zeros(2 * pairs.slot.shape[0], dtype=np.int64)
    stamp = np.zeros_like(slot)
    call(_rehash, pairs.slot, pairs.stamp, slot, stamp)
    return pairs._replace(slot=slot, stamp=stamp)


def make_pairs(keys: int, workers: int, max_bits: int = MAX_BITS) -> BitPairs | HashPairs:
    """Make the smaller structure that can hold the pairs of `keys` keys and `workers` workers."""
    if keys * workers <= max_bits:
        size = (keys * workers + 7) // 8
        dirty = np.zeros(min(size, _DIRTY), dtype=np.int64)
        return BitPairs(np.zeros(size, np.uint8), np.zeros(size, np.uint8), dirty, np.zeros(1, np.int64), workers)
    slot = np.zeros(1 << 16, dtype=np.int64)
    return HashPairs(slot, np.zeros_like(slot), np.array([0, 1], dtype=np.int64), workers)
