"""The fingerprint of a trace: a digest of the content of its tuples and its dictionary."""

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from streamgroup.traces.tuple_blocks import DTYPES, Columns, present_columns

__all__ = ["block_digest", "fingerprint"]

_NULL_LENGTH = b"\xff\xff\xff\xff"


def block_digest(columns: Columns) -> bytes:
    """Digest one block of at most 2^20 rows: sha256 of its columns one after the other, little-endian."""
    digest = hashlib.sha256()
    for name in present_columns(columns):
        digest.update(np.ascontiguousarray(getattr(columns, name), dtype=DTYPES[name]).data)
    return digest.digest()


def fingerprint(block_digests: Iterable[bytes], keys: Iterable[bytes | pa.LargeBinaryArray | None]) -> str:
    """Name a trace by its content: sha256 of the block digests, then of the dictionary in id order, in hex.

    Each key is its length as uint32, little-endian, and its bytes; the null key is only 0xFFFFFFFF. Keys come one by
    one or in arrow arrays of many.
    """
    digest = hashlib.sha256()
    for block in block_digests:
        digest.update(block)
    for key in keys:
        digest.update(_frame_all(key) if isinstance(key, pa.Array) else _frame(key))
    return digest.hexdigest()


def _frame(key: bytes | None) -> bytes:
    return _NULL_LENGTH if key is None else len(key).to_bytes(4, "little") + key


def _frame_all(keys: pa.LargeBinaryArray) -> bytes | memoryview:
    """Put the length of each key before its bytes."""
    if keys.null_count or not len(keys):
        return b"".join(map(_frame, keys.to_pylist()))
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    first, last = int(ends[0]), int(ends[-1])
    framed = np.empty(last - first + 4 * len(keys), np.uint8)
    is_key = np.ones(len(framed), np.bool_)
    heads = ends[:-1] - first + 4 * np.arange(len(keys))
    for byte in range(4):
        is_key[heads + byte] = False
        framed[heads + byte] = np.diff(ends) >> 8 * byte & 0xFF
    framed[is_key] = np.frombuffer(data, np.uint8)[first:last] if last > first else 0
    return framed.data
