"""A segment of a trace as a trace of its own, in memory, for a replay of a part of the stream."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.traces import layout
from streamgroup.traces.costs_in_ns import cost_ns
from streamgroup.traces.fingerprint import block_digest, fingerprint
from streamgroup.traces.manifest import Manifest
from streamgroup.traces.read_batches import DECODERS, Batch
from streamgroup.traces.read_dictionary import Dictionary
from streamgroup.traces.trace import Trace
from streamgroup.traces.tuple_blocks import Columns, blocks

__all__ = ["take_slice"]

# What a replay reads of a tuple.
_COLUMNS = ("timestamp", "key_id", "cost", "parent")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Slice(Trace):
    """Tuples in memory, read-only, their keys numbered anew: 0 is the most frequent one of the segment.

    `original_id` int64[keys] are the ids that the keys have in the `parent` trace; ties are in the order of these.
    """

    parent: Trace = field(repr=False)
    original_id: NDArray[np.int64] = field(repr=False)
    count: NDArray[np.int64] = field(repr=False)
    arrays: dict[str, NDArray[Any]] = field(repr=False)

    def batches(
        self, columns: Sequence[str] = ("timestamp", "key_id"), start: int = 0, decoders: int = DECODERS
    ) -> Iterator[Batch]:
        """Yield tuples from place `start` on, as of a trace on disk; there is nothing to decode."""
        del decoders
        wanted = {name: array for name, array in self.arrays.items() if name in columns}
        if not wanted or set(columns) - set(_COLUMNS):
            raise ValueError(f"no columns {', '.join(columns)}")
        for low in range(start, self.tuples, layout.BLOCK_ROWS):
            yield Batch(low, *(_piece(wanted.get(name), low) for name in Batch._fields[1:]))

    def dictionary(self) -> Dictionary:
        """Return counts within the segment, and hashes, by key id."""
        known = self._cache.get("dictionary")
        if isinstance(known, Dictionary):
            return known
        present = self.parent.dictionary()
        made = Dictionary(
            self.count, _read_only(present.hash_lo[self.original_id]), _read_only(present.hash_hi[self.original_id])
        )
        self._cache["dictionary"] = made
        return made

    def key_bytes(self, ids: Sequence[int]) -> list[bytes | None]:
        """Return the bytes of keys by id; None is the null key."""
        return self.parent.key_bytes([int(self.original_id[key]) for key in ids])

    def all_keys(self) -> Iterator[bytes | None]:
        """Yield the bytes of all keys in id order; None is the null key."""
        yield from self.key_bytes(range(self.keys))

    def packed_keys(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
        """Return the bytes of all keys, joined, by id, as `Trace` does."""
        data, start, null = self.parent.packed_keys()
        begin = np.zeros(self.keys + 1, dtype=np.int64)
        lengths = np.diff(start)[self.original_id]
        np.cumsum(lengths, out=begin[1:])
        places = np.repeat(start[self.original_id] - begin[:-1], lengths) + np.arange(begin[-1])
        nulls = np.flatnonzero(self.original_id == null)
        return data[places], begin, int(nulls[0]) if len(nulls) else -1

    def fingerprint(self) -> str:
        """Compute the fingerprint of the segment, as a trace on disk that holds nothing else."""
        known = self._cache.get("fingerprint")
        if not isinstance(known, str):
            columns = Columns(**self.arrays)
            known = fingerprint(map(block_digest, blocks([columns], layout.BLOCK_ROWS)), self.all_keys())
            self._cache["fingerprint"] = known
        return known


def take_slice(trace: Trace, start: int, stop: int) -> Trace:
    """Read the tuples start..stop-1 into memory, 12 bytes each (4 more with costs, 8 with parents), as a trace.

    It has the times, keys, hashes, costs and parents of these tuples, and counts, totals and top keys of its own;
    `value` and `weight` are left out. ValueError for a segment without a tuple or out of the trace, DataError for a
    damaged file.
    """
    if not 0 <= start < stop <= trace.tuples:
        raise ValueError(f"tuples {start}..{stop - 1} of {trace.tuples}")
    names = [name for name in _COLUMNS if name in trace.columns]
    pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    for batch in trace.batches(names, start):
        for name in names:
            pieces[name].append(getattr(batch, name)[: stop - batch.offset])
        if batch.offset + len(pieces["key_id"][-1]) >= stop:
            break
    arrays = {name: np.concatenate(found) for name, found in pieces.items()}
    count = np.bincount(arrays["key_id"], minlength=trace.keys)
    present = np.flatnonzero(count)
    original_id = present[np.argsort(-count[present], kind="stable")].astype(np.int64)
    number = np.zeros(len(count), dtype=np.uint32)
    number[original_id] = np.arange(len(original_id), dtype=np.uint32)
    arrays["key_id"] = number[arrays["key_id"]]
    cost = arrays.get("cost")
    size = stop - start
    return _Slice(
        path=trace.path,
        name=trace.name,
        manifest=Manifest(format_version=layout.FORMAT_VERSION),
        tuples=size,
        keys=len(original_id),
        first_timestamp=int(arrays["timestamp"][0]),
        last_timestamp=int(arrays["timestamp"][-1]),
        has_cost=cost is not None,
        total_cost_ns=None if cost is None else cost_ns(cost),
        p1=int(count[original_id[0]]) / size,
        columns=tuple(names),
        _tuple_parts=(),
        _key_parts=(),
        parent=trace,
        original_id=_read_only(original_id),
        count=_read_only(count[original_id].astype(np.int64)),
        arrays={name: _read_only(array) for name, array in arrays.items()},
    )


def _piece(array: NDArray[Any] | None, low: int) -> NDArray[Any] | None:
    return None if array is None else array[low : low + layout.BLOCK_ROWS]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
