"""Writes numbers as decimal texts, packed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.compile_key_functions import compiled

__all__ = ["decimal_texts"]


def decimal_texts(number: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Write int64[K] as Java and Python do: (data uint8[...], start int64[K + 1])."""
    start = np.zeros(len(number) + 1, dtype=np.int64)
    _measure(number, start)
    np.cumsum(start, out=start)
    data = np.empty(int(start[-1]), dtype=np.uint8)
    _write(number, start, data)
    return data, start


@compiled
def _measure(number: Any, start: Any) -> None:
    """Put the length of each text behind its place."""
    for key in range(number.shape[0]):
        # The absolute value of -2^63 is right as an unsigned number.
        rest = np.uint64(-number[key]) if number[key] < 0 else np.uint64(number[key])
        length = 2 if number[key] < 0 else 1
        while rest > np.uint64(9):
            rest //= np.uint64(10)
            length += 1
        start[key + 1] = length


@compiled
def _write(number: Any, start: Any, data: Any) -> None:
    for key in range(number.shape[0]):
        rest = np.uint64(-number[key]) if number[key] < 0 else np.uint64(number[key])
        first = start[key]
        if number[key] < 0:
            data[first] = 45
            first += 1
        for at in range(start[key + 1] - 1, first - 1, -1):
            data[at] = np.uint8(48) + np.uint8(rest % np.uint64(10))
            rest //= np.uint64(10)
