"""A segment of a trace as a trace of its own, in memory, for a replay of a part of the stream."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.traces import schema
from streamgroup.traces.batches import DECODERS, Batch
from streamgroup.traces.dictionary import Dictionary
from streamgroup.traces.manifest import Manifest
from streamgroup.traces.trace import Trace
from streamgroup.traces.writer import Columns, block_digest, blocks, cost_ns, fingerprint

__all__ = ["take_slice"]

# What a replay reads of a tuple.
_COLUMNS = ("timestamp", "key_id", "cost")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Slice(Trace):
    """Tuples in memory, read-only, their keys numbered anew: 0 is the most frequent one of the segment.

    `of` int64[keys] are the ids that the keys have in the `whole` trace; ties are in the order of these.
    """

    whole: Trace = field(repr=False)
    of: NDArray[np.int64] = field(repr=False)
    count: NDArray[np.int64] = field(repr=False)
    held: dict[str, NDArray[Any]] = field(repr=False)

    def batches(
        self, columns: Sequence[str] = ("timestamp", "key_id"), start: int = 0, decoders: int = DECODERS
    ) -> Iterator[Batch]:
        """Yield tuples from place `start` on, as of a trace on disk; there is nothing to decode."""
        del decoders
        wanted = {name: array for name, array in self.held.items() if name in columns}
        if not wanted or set(columns) - set(_COLUMNS):
            raise ValueError(f"no columns {', '.join(columns)}")
        for low in range(start, self.tuples, schema.BLOCK_ROWS):
            yield Batch(low, *(_piece(wanted.get(name), low) for name in _COLUMNS))

    def dictionary(self) -> Dictionary:
        """Return counts within the segment, and hashes, by key id."""
        known = self._cache.get("dictionary")
        if isinstance(known, Dictionary):
            return known
        there = self.whole.dictionary()
        made = Dictionary(self.count, _frozen(there.hash_lo[self.of]), _frozen(there.hash_hi[self.of]))
        self._cache["dictionary"] = made
        return made

    def key_bytes(self, ids: Sequence[int]) -> list[bytes | None]:
        """Return the bytes of keys by id; None is the null key."""
        return self.whole.key_bytes([int(self.of[key]) for key in ids])

    def all_keys(self) -> Iterator[bytes | None]:
        """Yield the bytes of all keys in id order; None is the null key."""
        yield from self.key_bytes(range(self.keys))

    def packed_keys(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
        """Return the bytes of all keys, joined, by id, as `Trace` does."""
        data, start, null = self.whole.packed_keys()
        begin = np.zeros(self.keys + 1, dtype=np.int64)
        lengths = np.diff(start)[self.of]
        np.cumsum(lengths, out=begin[1:])
        places = np.repeat(start[self.of] - begin[:-1], lengths) + np.arange(begin[-1])
        nulls = np.flatnonzero(self.of == null)
        return data[places], begin, int(nulls[0]) if len(nulls) else -1

    def fingerprint(self) -> str:
        """Compute the fingerprint of the segment, as a trace on disk that holds nothing else."""
        known = self._cache.get("fingerprint")
        if not isinstance(known, str):
            columns = Columns(*(self.held.get(name) for name in _COLUMNS))  # type: ignore[arg-type]
            known = fingerprint(map(block_digest, blocks([columns], schema.BLOCK_ROWS)), self.all_keys())
            self._cache["fingerprint"] = known
        return known


def take_slice(trace: Trace, start: int, stop: int) -> Trace:
    """Read the tuples start..stop-1 into memory, 12 bytes each (16 with costs), as a trace of its own.

    It has the times, keys, hashes and costs of these tuples, and counts, totals and top keys of its own; `value` and
    `weight` are left out. ValueError for a segment without a tuple or out of the trace, DataError for a damaged file.
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
    held = {name: np.concatenate(found) for name, found in pieces.items()}
    count = np.bincount(held["key_id"], minlength=trace.keys)
    there = np.flatnonzero(count)
    of = there[np.argsort(-count[there], kind="stable")].astype(np.int64)
    number = np.zeros(len(count), dtype=np.uint32)
    number[of] = np.arange(len(of), dtype=np.uint32)
    held["key_id"] = number[held["key_id"]]
    cost = held.get("cost")
    size = stop - start
    return _Slice(
        path=trace.path,
        name=trace.name,
        manifest=Manifest(format_version=schema.FORMAT_VERSION),
        tuples=size,
        keys=len(of),
        first_timestamp=int(held["timestamp"][0]),
        last_timestamp=int(held["timestamp"][-1]),
        has_cost=cost is not None,
        total_cost_ns=None if cost is None else cost_ns(cost),
        p1=int(count[of[0]]) / size,
        columns=tuple(names),
        _tuple_parts=(),
        _key_parts=(),
        whole=trace,
        of=_frozen(of),
        count=_frozen(count[of].astype(np.int64)),
        held={name: _frozen(array) for name, array in held.items()},
    )


def _piece(array: NDArray[Any] | None, low: int) -> NDArray[Any] | None:
    return None if array is None else array[low : low + schema.BLOCK_ROWS]


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
