"""Tuples after the contract, and the expansion of rows that stand for many tuples."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.ingest.readers.protocol import Each, Reject

__all__ = ["Tuples", "between", "expand", "pieces"]

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Tuples(NamedTuple):
    """Tuples in input order: us since 1970, key (binary, null = the null key), what else they carry.

    `row` numbers the rows kept in this batch from 0, one entry a tuple; `rows` is how many of them begin here.
    `repeat` says how many tuples each entry stands for, one if None, equal but for what `each` says of tuple j of entry
    i; `pieces` expands them; where each has its own time, to those in [since, until) of `within`. The first row is
    `continued` when the batch before held tuples of it. `nth` counts the tuples of a tree before each: where rows make
    several tuples, those of one row are a tree.
    """

    timestamp: I64
    key: pa.Array
    cost: NDArray[np.float32] | None
    value: NDArray[np.float64] | None
    row: I64
    rows: int
    rejects: list[Reject]
    filtered: Counter[str]
    weight: NDArray[np.float64] | None = None
    repeat: I64 | None = None
    continued: bool = False
    each: Callable[[I64, I64], Each] | None = None
    within: tuple[int | None, int | None] = (None, None)
    nth: NDArray[np.uint32] | None = None


def expand(repeat: I64, size: int) -> Iterator[tuple[I64, I64]]:
    """Yield entry and place (0, 1, ... within the entry) of all tuples, in batches of at most `size`."""
    ends = np.cumsum(repeat)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, size):
        stop = min(start + size, total)
        first, final = np.searchsorted(ends, [start, stop - 1], "right").tolist()
        inside = np.minimum(ends[first : final + 1], stop)
        entry = np.repeat(np.arange(first, final + 1), np.diff(inside, prepend=start))
        yield entry, np.arange(start, stop) - (ends - repeat)[entry]


def pieces(tuples: Tuples, size: int) -> Iterator[Tuples]:
    """Yield tuples in batches of at most `size`, every repeat an entry of its own; rejects and filters are left out.

    A row that is cut is one of the `rows` of the batch in which it begins; rows are numbered from 0 in each. Keys
    that repeat come as a dictionary array.
    """
    last = -1
    for entries, place in _batches(tuples, size):
        stamps, weight = tuples.timestamp[entries], tuples.weight[entries] if tuples.weight is not None else None
        if tuples.each is not None:
            stamps, own = tuples.each(entries, place)
            weight = weight if own is None else own
            inside = between(stamps, tuples.within)
            if not inside.any():
                continue
            entries, stamps, weight = entries[inside], stamps[inside], weight[inside] if weight is not None else None
        row = tuples.row[entries]
        continued = int(row[0]) == last
        last = int(row[-1])
        yield Tuples(
            stamps,
            _repeated_keys(tuples, entries),
            tuples.cost[entries] if tuples.cost is not None else None,
            tuples.value[entries] if tuples.value is not None else None,
            row - row[0],
            last - int(row[0]) + (not continued),
            [],
            Counter(),
            weight,
            continued=continued,
            nth=tuples.nth[entries] if tuples.nth is not None else None,
        )


def _batches(tuples: Tuples, size: int) -> Iterator[tuple[Any, Any]]:
    if tuples.repeat is not None:
        return expand(tuples.repeat, size)
    entries = len(tuples.timestamp)
    return ((slice(start, min(start + size, entries)), None) for start in range(0, entries, size))


def _repeated_keys(tuples: Tuples, entries: Any) -> Any:
    if isinstance(entries, slice):
        return tuples.key[entries]
    first, final = int(entries[0]), int(entries[-1])
    # As a dictionary: a long key is held once, however often it is repeated.
    encoded = tuples.key.slice(first, final + 1 - first).dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy()[entries - first]
    return pa.DictionaryArray.from_arrays(pa.array(codes), encoded.dictionary)


def between(stamps: I64, within: tuple[int | None, int | None]) -> Mask:
    """Mark the times in [since, until); None is no bound."""
    since, until = within
    inside = np.ones(len(stamps), bool) if since is None else stamps >= since
    return inside if until is None else inside & (stamps < until)
