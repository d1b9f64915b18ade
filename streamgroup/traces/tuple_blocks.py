"""Columns of tuples and of keys, and streams of them cut into blocks of a size."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["DTYPES", "Columns", "KeyColumns", "blocks", "cut_chunks", "present_columns"]


class Columns(NamedTuple):
    """A segment of tuples, arrays of one length: timestamp in us, key ids, and what else the tuples carry."""

    timestamp: NDArray[np.int64]
    key_id: NDArray[np.uint32]
    cost: NDArray[np.float32] | None = None
    value: NDArray[np.float64] | None = None
    weight: NDArray[np.float64] | None = None
    parent: NDArray[np.int64] | None = None


class KeyColumns(NamedTuple):
    """A segment of the dictionary in id order: key bytes (arrow binary, null = null key), counts, hashes."""

    key: pa.Array
    count: NDArray[np.int64]  # type: ignore[assignment]
    hash_lo: NDArray[np.int64]
    hash_hi: NDArray[np.int64]


_Chunk = TypeVar("_Chunk", Columns, KeyColumns)

# Of each column, little-endian.
DTYPES: dict[str, np.dtype[Any]] = {
    "timestamp": np.dtype("<i8"),
    "key_id": np.dtype("<u4"),
    "cost": np.dtype("<f4"),
    "value": np.dtype("<f8"),
    "weight": np.dtype("<f8"),
    "parent": np.dtype("<i8"),
}


def present_columns(columns: Columns) -> tuple[str, ...]:
    """Name the columns that tuples carry."""
    return tuple(name for name in Columns._fields if getattr(columns, name) is not None)


def blocks(chunks: Iterable[Columns], rows: int) -> Iterator[Columns]:
    """Cut a stream of any chunking into blocks of `rows` rows (the last may be shorter); at least one."""
    names: tuple[str, ...] = ()

    def checked() -> Iterator[Columns]:
        nonlocal names
        for chunk in chunks:
            present = present_columns(chunk)
            names = names or present
            if present != names:
                raise ValueError(f"chunks with other columns: {present} after {names}")
            if any(len(getattr(chunk, name)) != len(chunk.timestamp) for name in names):
                raise ValueError("columns of different lengths")
            yield chunk

    empty = True
    for pieces in cut_chunks(checked(), rows):
        yield _join(pieces)
        empty = False
    if empty:
        # Even without a row a block has the columns.
        yield Columns(**{name: np.empty(0, DTYPES[name]) for name in names or ("timestamp", "key_id")})


def cut_chunks(chunks: Iterable[_Chunk], rows: int) -> Iterator[list[_Chunk]]:
    """Cut chunks of any size into lists of pieces that have `rows` rows together; the last list may have fewer."""
    pieces: list[_Chunk] = []
    free = rows
    for chunk in chunks:
        size, start = len(chunk[0]), 0
        while start < size:
            stop = min(start + free, size)
            cut: Any = (None if column is None else column[start:stop] for column in chunk)
            pieces.append(type(chunk)(*cut))
            free -= stop - start
            start = stop
            if not free:
                yield pieces
                pieces, free = [], rows
    if pieces:
        yield pieces


def _join(pieces: list[Columns]) -> Columns:
    arrays: dict[str, Any] = {}
    for name in present_columns(pieces[0]):
        parts = [np.asarray(getattr(piece, name), dtype=DTYPES[name]) for piece in pieces]
        arrays[name] = np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts))
    return Columns(**arrays)
