"""Java's hash codes and random numbers, which half of the engines build on.

`hashCode` of a String is over UTF-16 code units: a character outside the basic plane counts as two. An Integer is its
value, a Long its halves xored, so that negative longs and ints differ (-1L is 0, -1 is -1). A list starts at 1 and
multiplies by 31, as does an array; bytes in it are signed. Null counts 0 within a list.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Int, Long, Value, check_value
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = [
    "absolute",
    "hash_code",
    "hash_codes",
    "i32",
    "list_hash",
    "random_below",
    "random_start",
    "string_hash",
    "utf16_hash",
]

_INT_MIN = -(1 << 31)
_MULTIPLIER, _INCREMENT, _48_BITS = 0x5DEECE66D, 0xB, (1 << 48) - 1


def i32(value: int) -> int:
    """Wrap to signed 32 bits."""
    return (value - _INT_MIN) % (1 << 32) + _INT_MIN


def absolute(value: int) -> int:
    """Return `Math.abs` of an int, with 0 for -2^31, whose absolute value is no int."""
    return 0 if value == _INT_MIN else abs(value)


def string_hash(text: str) -> int:
    """Return `String.hashCode`, signed 32 bits."""
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype="<u2")
    found = 0
    for unit in units.tolist():
        found = (31 * found + unit) & 0xFFFF_FFFF
    return i32(found)


def list_hash(hashes: Iterable[int]) -> int:
    """Return the hash of a list (`Arrays.hashCode`, too) from those of its elements."""
    found = 1
    for one in hashes:
        found = (31 * found + one) & 0xFFFF_FFFF
    return i32(found)


def hash_code(value: Value) -> int:
    """Return `hashCode` of a value, signed 32 bits: 0 of null, that of `Arrays.hashCode` of bytes."""
    value = check_value(value)
    if value is None:
        return 0
    if isinstance(value, str):
        return string_hash(value)
    if isinstance(value, bytes):
        return list_hash(byte - 256 if byte > 127 else byte for byte in value)
    if isinstance(value, Long):
        bits = int(value) & 0xFFFF_FFFF_FFFF_FFFF
        return i32(bits ^ (bits >> 32))
    assert isinstance(value, Int)
    return int(value)


def hash_codes(keys: Keys) -> NDArray[np.int32]:
    """Return `hash_code` of all keys: int32[K], 0 for the null key."""
    found = np.empty(keys.count, dtype=np.int32)
    if keys.kind == "int":
        found[:] = keys.number
    elif keys.kind == "long":
        bits = keys.number.view(np.uint64)
        found[:] = (bits ^ (bits >> np.uint64(32))).astype(np.uint32).view(np.int32)
    elif keys.kind == "string":
        _string_hashes(keys.data, keys.start, found)
    else:
        _byte_hashes(keys.data, keys.start, found)
    if keys.null >= 0:
        found[keys.null] = 0
    return found


@njit
def utf16_hash(data: Any, at: Any, end: Any) -> Any:
    """Return uint32: the String hash of the valid UTF-8 in data[at:end]."""
    found = np.uint32(0)
    while at < end:
        lead = np.uint32(data[at])
        if lead < 0x80:
            found = np.uint32(np.uint32(31) * found + lead)
            at += 1
        elif lead < 0xE0:
            unit = ((lead & 0x1F) << 6) | (data[at + 1] & 0x3F)
            found = np.uint32(np.uint32(31) * found + np.uint32(unit))
            at += 2
        elif lead < 0xF0:
            unit = ((lead & 0x0F) << 12) | ((np.uint32(data[at + 1]) & 0x3F) << 6) | (data[at + 2] & 0x3F)
            found = np.uint32(np.uint32(31) * found + np.uint32(unit))
            at += 3
        else:
            point = ((lead & 0x07) << 18) | ((np.uint32(data[at + 1]) & 0x3F) << 12)
            point |= ((np.uint32(data[at + 2]) & 0x3F) << 6) | (data[at + 3] & 0x3F)
            point -= 0x10000
            found = np.uint32(np.uint32(31) * found + np.uint32(0xD800 + (point >> 10)))
            found = np.uint32(np.uint32(31) * found + np.uint32(0xDC00 + (point & 0x3FF)))
            at += 4
    return found


@compiled
def _string_hashes(data: Any, start: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        found[key] = np.int32(utf16_hash(data, start[key], start[key + 1]))


@compiled
def _byte_hashes(data: Any, start: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        value = np.uint32(1)
        for at in range(start[key], start[key + 1]):
            value = np.uint32(np.uint32(31) * value + np.uint32(np.int32(np.int8(data[at]))))
        found[key] = np.int32(value)


def random_start(seed: int) -> int:
    """Return the state of `new java.util.Random(seed)`."""
    return (seed ^ _MULTIPLIER) & _48_BITS


def random_below(state: int, n: int) -> tuple[int, int]:
    """Draw `nextInt(n)`, 0..n-1: the number and the state after it.

    For n a power of two these are the top bits of the generator, which seeds near each other share.
    """
    while True:
        state = (state * _MULTIPLIER + _INCREMENT) & _48_BITS
        drawn = state >> 17
        if n & (n - 1) == 0:
            return (n * drawn) >> 31, state
        found = drawn % n
        if drawn - found + (n - 1) < 1 << 31:
            return found, state
