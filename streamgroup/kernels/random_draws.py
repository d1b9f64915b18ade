"""Draws by counter: the value depends on (seed, purpose, index) alone, so every grouping sees the same world.

No state is kept, so a draw can be made in any order, in any chunk and on any core. Only additions, multiplications,
shifts and exact conversions are used, so the values are the same on every machine.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels import elementary_functions
from streamgroup.kernels.hash_placement import mix64

__all__ = ["exponential", "normal", "stream", "uniform", "words"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def stream(seed: int, purpose: str) -> int:
    """Name the stream of draws of one purpose: an unsigned 64-bit start value."""
    digest = hashlib.sha256(f"{seed}\0{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def words(seed: int, purpose: str, index: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Draw a 64-bit word for each index (0, 1, ...): splitmix64 at that place of the stream."""
    start = np.array([stream(seed, purpose)], dtype=np.uint64)
    return mix64(start + (index.astype(np.int64).view(np.uint64) + np.uint64(1)) * _GOLDEN)


def uniform(seed: int, purpose: str, index: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draw uniformly from [0, 1) with 53 bits for each index."""
    return (words(seed, purpose, index) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def exponential(seed: int, purpose: str, index: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draw from the exponential distribution with mean 1 for each index, by inversion."""
    return -elementary_functions.log(1.0 - uniform(seed, purpose, index))


def normal(seed: int, purpose: str, index: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draw from the standard normal distribution for each index, by inversion at (the word's 53 bits + 1/2) x 2^-53.

    That probability less one half is exact in a float64, which the probability itself is not.
    """
    bits = (words(seed, purpose, index) >> np.uint64(11)).astype(np.int64)
    return elementary_functions.inverse_normal(((bits - np.int64(1 << 52)).astype(np.float64) + 0.5) * 2.0**-53)
