"""The bytes that serializers make of keys: UTF-8 of a string, 4 or 8 bytes, highest first, of an int or a long."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Int, Long, Value, check_value, java_utf8

__all__ = ["Packed", "big_endian", "key_bytes"]


class Packed(NamedTuple):
    """The bytes of K keys: those of key i are `data[start[i]:start[i + 1]]` (uint8[...], int64[K + 1])."""

    data: NDArray[np.uint8]
    start: NDArray[np.int64]


def key_bytes(key: Value) -> bytes:
    """Return the bytes of one key; those of bytes are themselves, and null has none."""
    key = check_value(key)
    if key is None:
        return b""
    if isinstance(key, str):
        return java_utf8(key)
    if isinstance(key, (Int, Long)):
        return key.to_bytes(key.bits // 8, "big", signed=True)
    return key


def big_endian(keys: Keys) -> Packed:
    """Return the bytes of all keys; null has those of no key (no bytes) or, among numbers, those of 0."""
    if keys.kind in ("string", "bytes"):
        return Packed(keys.data, keys.start)
    width = 4 if keys.kind == "int" else 8
    data = keys.number.astype(f">i{width}").view(np.uint8)
    return Packed(data, np.arange(keys.count + 1, dtype=np.int64) * width)
