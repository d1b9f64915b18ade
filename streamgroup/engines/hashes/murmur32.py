"""The 32-bit Murmur hashes of bytes that engines use: MurmurHash2 and MurmurHash3 x86-32 (A. Appleby).

The functions of Python ints are the rule as it reads; those with `_at` are compiled and read a slice of many keys.
All hashes are unsigned 32-bit numbers; what reads them as signed ones says so.
"""

import mmh3
import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = [
    "finish",
    "finish_word",
    "mix",
    "mix_word",
    "murmur2",
    "murmur2_at",
    "murmur3",
    "murmur3_at",
    "word_at",
]

Bytes = NDArray[np.uint8]

_MASK = 0xFFFF_FFFF


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _MASK


def mix(h: int, block: int) -> int:
    """Mix a block of four bytes into the state of MurmurHash3: both of its steps for a whole block."""
    block = _rotated((block & _MASK) * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotated(h ^ block, 13) * 5 + 0xE6546B64) & _MASK


def finish(h: int, length: int) -> int:
    """End MurmurHash3 of `length` bytes: every bit of the state comes to matter for every bit of the hash."""
    h ^= length
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    return h ^ h >> 16


def murmur3(data: bytes, seed: int = 0) -> int:
    """Hash bytes with MurmurHash3 x86-32."""
    return int(mmh3.hash(data, seed, signed=False))


def murmur2(data: bytes, seed: int) -> int:
    """Hash bytes with MurmurHash2 (32 bits)."""
    multiplier, whole = 0x5BD1E995, len(data) // 4 * 4
    h = (seed ^ len(data)) & _MASK
    for at in range(0, whole, 4):
        block = int.from_bytes(data[at : at + 4], "little") * multiplier & _MASK
        h = h * multiplier & _MASK ^ (block ^ block >> 24) * multiplier & _MASK
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * multiplier & _MASK
    h = (h ^ h >> 13) * multiplier & _MASK
    return h ^ h >> 15


@njit(forceinline=True)
def _multiply(word: np.uint32, factor: int) -> np.uint32:
    return np.uint32(np.uint64(word) * np.uint64(factor))


@njit(forceinline=True)
def _rotate(word: np.uint32, by: int) -> np.uint32:
    return np.uint32((word << np.uint32(by)) | (word >> np.uint32(32 - by)))


@njit(forceinline=True)
def _scramble(block: np.uint32) -> np.uint32:
    return _multiply(_rotate(_multiply(block, 0xCC9E2D51), 15), 0x1B873593)


@njit(forceinline=True)
def mix_word(h: np.uint32, block: np.uint32) -> np.uint32:
    """Mix a block into the state, as `mix` does."""
    return np.uint32(np.uint64(_rotate(np.uint32(h ^ _scramble(block)), 13)) * np.uint64(5) + np.uint64(0xE6546B64))


@njit(forceinline=True)
def finish_word(h: np.uint32, length: int) -> np.uint32:
    """End the hash of `length` bytes, as `finish` does."""
    h = np.uint32(h ^ np.uint32(length))
    h = _multiply(np.uint32(h ^ (h >> np.uint32(16))), 0x85EBCA6B)
    h = _multiply(np.uint32(h ^ (h >> np.uint32(13))), 0xC2B2AE35)
    return np.uint32(h ^ (h >> np.uint32(16)))


@njit(forceinline=True)
def word_at(data: Bytes, at: int) -> np.uint32:
    """Read four bytes, the lowest first."""
    low = np.uint32(data[at]) | (np.uint32(data[at + 1]) << np.uint32(8))
    return np.uint32(low | (np.uint32(data[at + 2]) << np.uint32(16)) | (np.uint32(data[at + 3]) << np.uint32(24)))


@njit(forceinline=True)
def _rest_at(data: Bytes, at: int, end: int) -> np.uint32:
    """Read up to three bytes, the lowest first."""
    rest = np.uint32(0)
    for place in range(end - 1, at - 1, -1):
        rest = np.uint32((rest << np.uint32(8)) | np.uint32(data[place]))
    return rest


@njit(forceinline=True)
def murmur3_at(data: Bytes, begin: int, end: int, seed: int, ahead: int) -> np.uint32:
    """Hash data[begin:end] as `murmur3` does; `ahead` bytes, whole blocks, are mixed into the seed already."""
    h = np.uint32(seed)
    whole = begin + (end - begin) // 4 * 4
    for at in range(begin, whole, 4):
        h = mix_word(h, word_at(data, at))
    return finish_word(np.uint32(h ^ _scramble(_rest_at(data, whole, end))), ahead + end - begin)


@njit(forceinline=True)
def murmur2_at(data: Bytes, begin: int, end: int, seed: int) -> np.uint32:
    """Hash data[begin:end] as `murmur2` does."""
    h = np.uint32(np.uint32(seed) ^ np.uint32(end - begin))
    whole = begin + (end - begin) // 4 * 4
    for at in range(begin, whole, 4):
        block = _multiply(word_at(data, at), 0x5BD1E995)
        block = _multiply(np.uint32(block ^ (block >> np.uint32(24))), 0x5BD1E995)
        h = np.uint32(_multiply(h, 0x5BD1E995) ^ block)
    if whole < end:
        h = _multiply(np.uint32(h ^ _rest_at(data, whole, end)), 0x5BD1E995)
    h = _multiply(np.uint32(h ^ (h >> np.uint32(13))), 0x5BD1E995)
    return np.uint32(h ^ (h >> np.uint32(15)))
