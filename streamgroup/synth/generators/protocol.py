"""The interface of generators: streams that can be generated from any position, so again, in pieces, on many cores.

A generator is a module with `Params` (pydantic, frozen) and `generate(params) -> Stream`.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

__all__ = ["Chunk", "Generator", "Stream"]


class Chunk(NamedTuple):
    """A segment of a stream, arrays of one length: timestamps in us, the labels of the keys (0 to labels - 1).

    What else the tuples carry is there in all chunks of a stream or in none: cost in us, value, weight.
    """

    timestamp: NDArray[np.int64]
    label: NDArray[np.int64]
    cost: NDArray[np.float32] | None = None
    value: NDArray[np.float64] | None = None
    weight: NDArray[np.float64] | None = None


class Stream(NamedTuple):
    """A synthetic stream: its length, how many keys it may have, and two functions.

    `chunk(first, rows)` makes the tuples first, ..., first + rows - 1 (rows up to 2^20). A tuple depends on the
    parameters and its place alone, so pieces can be made anywhere, in any order.
    `key(label)` gives the bytes of a key.
    """

    tuples: int
    labels: int
    chunk: Callable[[int, int], Chunk]
    key: Callable[[int], bytes]


class Generator(Protocol):
    """A generator's module."""

    Params: type[BaseModel]

    def generate(self, params: BaseModel) -> Stream:
        """Make the stream that the parameters describe."""
        ...
