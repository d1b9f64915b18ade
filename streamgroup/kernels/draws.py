"""Draws by counter: the value depends on (seed, purpose, index) alone, so every grouping sees the same world.

No state is kept, so a draw can be made in any order, in any chunk and on any core. Only additions, multiplications,
shifts and exact conversions are used, so the values are the same on every machine.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.hashing import mix64

__all__ = ["exponential", "stream", "uniform", "words"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LN2 = 0.6931471805599453


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


def _log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take the natural logarithm of x in (0, 1] with basic operations only (error below 1e-15 relative to 1).

    The library's logarithm differs in its last bit between processors; this one does not: x = m 2^e with m in
    [sqrt(1/2), sqrt(2)), log m = 2 artanh((m - 1) / (m + 1)) as a series of which 14 terms suffice.
    """
    mantissa, exponent = np.frexp(x)
    small = mantissa < 0.7071067811865476
    mantissa = np.where(small, mantissa * 2.0, mantissa)
    exponent = exponent - small
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    total = np.full_like(ratio, 1.0 / 27.0)
    for odd in range(25, 0, -2):
        total = total * square + 1.0 / odd
    return 2.0 * ratio * total + exponent * _LN2


def exponential(seed: int, purpose: str, index: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draw from the exponential distribution with mean 1 for each index, by inversion."""
    return -_log(1.0 - uniform(seed, purpose, index))
