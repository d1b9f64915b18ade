"""MurmurHash3 for x64 with 128 bits: its first half, which Guava's `murmur3_128(seed)` gives as a long."""

from typing import Any

import mmh3
import numpy as np

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["murmur128", "murmur128_low"]

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_ADD1, _ADD2 = np.uint64(0x52DCE729), np.uint64(0x38495AB5)
_MIX1, _MIX2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_FIVE = np.uint64(5)


def murmur128(key: bytes, seed: int) -> int:
    """Return the first 64 bits of the hash, signed; `seed` is below 2^32."""
    return int(mmh3.hash64(key, seed=seed, x64arch=True, signed=True)[0])


@njit
def _rotated(word: Any, bits: Any) -> Any:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@njit
def _final(word: Any) -> Any:
    word = (word ^ (word >> np.uint64(33))) * _MIX1
    word = (word ^ (word >> np.uint64(33))) * _MIX2
    return word ^ (word >> np.uint64(33))


@njit
def _word(data: Any, at: Any, end: Any) -> Any:
    """Read up to 8 bytes, the lowest first."""
    found = np.uint64(0)
    for place in range(min(8, end - at)):
        found |= np.uint64(data[at + place]) << np.uint64(8 * place)
    return found


@njit
def murmur128_low(data: Any, at: Any, end: Any, seed: Any) -> Any:
    """Return the same of data[at:end] as uint64; `seed` is uint64."""
    length = np.uint64(end - at)
    one, two = seed, seed
    while at + 16 <= end:
        one ^= _rotated(_word(data, at, end) * _C1, 31) * _C2
        one = (_rotated(one, 27) + two) * _FIVE + _ADD1
        two ^= _rotated(_word(data, at + 8, end) * _C2, 33) * _C1
        two = (_rotated(two, 31) + one) * _FIVE + _ADD2
        at += 16
    if at + 8 < end:
        two ^= _rotated(_word(data, at + 8, end) * _C2, 33) * _C1
    if at < end:
        one ^= _rotated(_word(data, at, end) * _C1, 31) * _C2
    one ^= length
    two ^= length
    one += two
    two += one
    return _final(one) + _final(two)
