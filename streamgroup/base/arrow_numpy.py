"""Conversions between Arrow and numpy without pandas, whose import takes a third of a second."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["arrow", "column", "numbers"]


def arrow(values: NDArray[Any]) -> pa.Array:
    """Return a one-dimensional numpy array of integers or floats as an Arrow array of the same type, without a copy."""
    flat = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(flat.dtype), len(flat), [None, pa.py_buffer(flat)])


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return ints, floats, booleans, texts or None as an Arrow array of a type (int64, float64, bool, string)."""
    known = np.array([value is not None for value in values], dtype=np.bool_)
    valid = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    if pa.types.is_string(kind):
        pieces = [b"" if value is None else value.encode() for value in values]
        offsets = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])]).astype(np.int32)
        return pa.Array.from_buffers(kind, len(pieces), [valid, pa.py_buffer(offsets), pa.py_buffer(b"".join(pieces))])
    filled = np.array([value or 0 for value in values], dtype=kind.to_pandas_dtype())
    data = np.packbits(filled, bitorder="little") if pa.types.is_boolean(kind) else filled
    return pa.Array.from_buffers(kind, len(filled), [valid, pa.py_buffer(data)])


def numbers(array: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return integers or floats without nulls as a read-only numpy array of the same type, without a copy."""
    if isinstance(array, pa.ChunkedArray):
        chunks = [numbers(chunk) for chunk in array.chunks]
        if len(chunks) == 1:
            return chunks[0]
        return np.concatenate([np.empty(0, array.type.to_pandas_dtype()), *chunks])
    if len(array) == 0:
        return np.empty(0, array.type.to_pandas_dtype())
    found: NDArray[Any] = np.from_dlpack(array)
    return found
