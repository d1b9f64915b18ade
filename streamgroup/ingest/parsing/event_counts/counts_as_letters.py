"""Parses counts by hour or day coded as letters: `A5B1X2` is 5 in the first hour, 1 in the second, 2 in the last."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.ingest.parsing.event_counts.count_rows import MAX_COUNT, whole_numbers

__all__ = ["Slots", "read_letters"]

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_FIRST = ord("A")


class Slots(NamedTuple):
    """The letters of all texts, one after the other: the text of each, its slot (0: A), and its number.

    Text i has the letters [first[i], first[i + 1]).
    """

    owner: I64
    slot: I64
    number: I64
    first: I64

    def of(self, kept: I64) -> "Slots":
        """Return the letters with a number above 0 of some of the texts (ascending), renumbered."""
        place = np.full(len(self.first), -1)
        place[kept] = np.arange(len(kept))
        mine = (place[self.owner] >= 0) & (self.number > 0)
        owner = place[self.owner[mine]]
        return Slots(owner, self.slot[mine], self.number[mine], np.searchsorted(owner, np.arange(len(kept) + 1)))


def read_letters(data: NDArray[np.uint8], start: I64, end: I64, slots: int) -> tuple[Slots, Mask]:
    """Read slices of a block as letters with a number after each, and mark those that are.

    Letters are those of the first `slots` characters from A on, and ascend; numbers are at most MAX_COUNT.
    """
    texts, length = len(start), end - start
    owner = np.repeat(np.arange(texts), length)
    place = np.repeat(start - (np.cumsum(length) - length), length) + np.arange(len(owner))
    byte = data[place]
    letter = np.flatnonzero((byte - np.uint8(ord("0"))) > 9)
    of, slot = owner[letter], byte[letter].astype(np.int64) - _FIRST
    first = np.searchsorted(of, np.arange(texts + 1))
    begin = place[letter] + 1
    # A number goes on to the next letter, or to the end of its text.
    last = np.ones(len(letter), bool)
    last[:-1] = of[1:] != of[:-1]
    finish = np.where(last, end[of], np.append(place[letter], 0)[1:])
    count, number = whole_numbers(data, begin, finish)
    fine = number & (count <= MAX_COUNT) & (slot >= 0) & (slot < slots)
    fine[1:] &= (slot[1:] > slot[:-1]) | last[:-1]
    good = length > 0
    good[good] = (data[start[good]] - np.uint8(ord("0"))) > 9
    good[of[~fine]] = False
    return Slots(of, slot, count, first), good
