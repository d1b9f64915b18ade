"""Arrow numbers as numpy arrays without pandas, whose import takes a third of a second and which pyarrow would use."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["numbers"]


def numbers(array: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Give integers or floats as a numpy array of the same type, read-only, without a copy; there must be no nulls."""
    if isinstance(array, pa.ChunkedArray):
        chunks = [numbers(chunk) for chunk in array.chunks]
        if len(chunks) == 1:
            return chunks[0]
        return np.concatenate([np.empty(0, array.type.to_pandas_dtype()), *chunks])
    if len(array) == 0:
        return np.empty(0, array.type.to_pandas_dtype())
    found: NDArray[Any] = np.from_dlpack(array)
    return found
