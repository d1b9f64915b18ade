"""Reads the tuples of a trace in batches, decoded ahead by a few threads, in order, with bounded memory."""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.traces import layout
from streamgroup.traces.read_parts import DecodeUnit, Part, decode, decode_units

__all__ = ["DECODERS", "Batch", "read_batches"]

# More decoders than this only take memory bandwidth from the caller.
DECODERS = min(4, os.cpu_count() or 1)


class Batch(NamedTuple):
    """At most 2^20 tuples from place `offset` on: C-contiguous read-only arrays, None if not asked for."""

    offset: int
    timestamp: NDArray[np.int64] | None
    key_id: NDArray[np.uint32] | None
    cost: NDArray[np.float32] | None = None
    value: NDArray[np.float64] | None = None
    weight: NDArray[np.float64] | None = None
    parent: NDArray[np.int64] | None = None


def read_batches(
    parts: Sequence[Part], columns: Sequence[str], start: int = 0, decoders: int = DECODERS
) -> Iterator[Batch]:
    """Decode columns (which all parts have) from tuple `start` on; DataError when a file is damaged.

    `decoders` threads decode ahead of the caller; with 0 each is decoded when it is asked for.
    """
    if decoders == 0:
        for part, unit, offset in _work(parts, start):
            yield from _cut(offset + unit.first, decode(part, unit, columns, offset), start)
        return
    with ThreadPoolExecutor(decoders, thread_name_prefix="decode") as pool:
        pending: deque[tuple[int, Future[dict[str, NDArray[Any]]]]] = deque()
        try:
            for part, unit, offset in _work(parts, start):
                pending.append((offset + unit.first, pool.submit(decode, part, unit, columns, offset)))
                if len(pending) > decoders:
                    place, future = pending.popleft()
                    yield from _cut(place, future.result(), start)
            while pending:
                place, future = pending.popleft()
                yield from _cut(place, future.result(), start)
        finally:
            for _, future in pending:
                future.cancel()


def _work(parts: Sequence[Part], start: int) -> Iterator[tuple[Part, DecodeUnit, int]]:
    offset = 0
    for part in parts:
        if offset + part.rows > start:
            for unit in decode_units(part):
                if offset + unit.first + unit.rows > start:
                    yield part, unit, offset
        offset += part.rows


def _cut(place: int, arrays: dict[str, NDArray[Any]], start: int) -> Iterator[Batch]:
    rows = len(next(iter(arrays.values())))
    first = max(0, start - place)
    for low in range(first, rows, layout.BLOCK_ROWS):
        high = min(rows, low + layout.BLOCK_ROWS)
        pieces = {name: array[low:high] for name, array in arrays.items()}
        yield Batch(
            place + low,
            pieces.get("timestamp"),
            pieces.get("key_id"),
            pieces.get("cost"),
            pieces.get("value"),
            pieces.get("weight"),
            pieces.get("parent"),
        )
