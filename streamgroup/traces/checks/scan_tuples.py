"""One pass over the tuples of a trace: what it holds, and whether order, ids and costs are sound."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.traces import layout
from streamgroup.traces.costs_in_ns import cost_ns
from streamgroup.traces.fingerprint import block_digest
from streamgroup.traces.read_batches import Batch, read_batches
from streamgroup.traces.read_parts import Part, columns_of
from streamgroup.traces.statistics.count_ids import add_counts
from streamgroup.traces.tuple_blocks import Columns, blocks

__all__ = ["Scan", "block_digests", "scan"]


class Scan(NamedTuple):
    """What a pass found: the content, and one line for each kind of fault (its first row and how many)."""

    tuples: int
    first_timestamp: int | None
    last_timestamp: int | None
    total_cost_ns: int | None
    count: NDArray[np.int64]  # type: ignore[assignment]
    faults: dict[str, str]


class _Fault:
    def __init__(self, name: str, words: str) -> None:
        self.name, self.words = name, words
        self.first: tuple[int, str] | None = None
        self.total = 0

    def note(self, offset: int, wrong: NDArray[np.bool_], values: NDArray[np.generic]) -> None:
        if not wrong.any():
            return
        self.total += int(np.count_nonzero(wrong))
        if self.first is None:
            row = int(np.argmax(wrong))
            self.first = (offset + row, f"{values[row]}")

    def lines(self) -> Iterator[tuple[str, str]]:
        if self.first is not None:
            row, value = self.first
            more = f" ({self.total} such tuples)" if self.total > 1 else ""
            yield self.name, f"tuple {row}: {self.words.format(value)}{more}"


def scan(parts: Sequence[Part], keys: int) -> Scan:
    """Read every tuple once against a dictionary of `keys` keys; memory is O(keys).

    Faults, by check: "order" (a timestamp before its predecessor's), "key_id" (not in the dictionary), "cost"
    (negative, NaN or infinite), "parent" (smaller than its predecessor's). DataError when a file cannot be decoded.
    """
    order = _Fault("order", "timestamp {} is earlier than the one before it")
    unknown = _Fault("key_id", f"key_id {{}} is not in the dictionary of {keys} keys")
    costs = _Fault("cost", "cost {} is not a service time")
    parents = _Fault("parent", "parent {} is smaller than the one before it")
    names = [name for name in columns_of(parts) if name in ("timestamp", "key_id", "cost", "parent")]
    count = np.zeros(keys, np.int64)
    tuples, total = 0, 0
    first: int | None = None
    last: int | None = None
    tree: int | None = None
    for batch in read_batches(parts, names):
        stamps, ids, cost = batch.timestamp, batch.key_id, batch.cost
        assert stamps is not None
        assert ids is not None
        order.note(batch.offset, _backward(stamps, last), stamps)
        if batch.parent is not None:
            parents.note(batch.offset, _backward(batch.parent, tree), batch.parent)
            tree = int(batch.parent[-1])
        if int(ids.max()) >= keys:
            outside = ids >= keys
            unknown.note(batch.offset, outside, ids)
            ids = ids[~outside]
        add_counts(count, ids)
        if cost is not None:
            bad = ~((cost >= 0) & (cost < np.inf))
            costs.note(batch.offset, bad, cost)
            total += 0 if costs.total else cost_ns(cost)
        tuples += len(stamps)
        first = int(stamps[0]) if first is None else first
        last = int(stamps[-1])
    faults = dict(line for fault in (order, unknown, costs, parents) for line in fault.lines())
    return Scan(tuples, first, last, total if "cost" in names else None, count, faults)


def _backward(values: NDArray[np.int64], before: int | None) -> NDArray[np.bool_]:
    """Mark the values that are smaller than the one before them; `before` is the one before all, if there is one."""
    marked = np.empty(len(values), np.bool_)
    marked[0] = before is not None and bool(values[0] < before)
    np.less(values[1:], values[:-1], out=marked[1:])
    return marked


def block_digests(parts: Sequence[Part]) -> Iterator[bytes]:
    """Digest each block of 2^20 tuples, for the fingerprint."""
    if sum(part.rows for part in parts):
        yield from map(block_digest, blocks(_columns(read_batches(parts, columns_of(parts))), layout.BLOCK_ROWS))


def _columns(batches: Iterable[Batch]) -> Iterator[Columns]:
    for batch in batches:
        assert batch.timestamp is not None
        assert batch.key_id is not None
        yield Columns(batch.timestamp, batch.key_id, batch.cost, batch.value, batch.weight, batch.parent)
