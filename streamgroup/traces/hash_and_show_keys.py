"""Key bytes: their hashes, their text, and how a dictionary column holds them."""

from collections.abc import Iterable
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["as_binary", "hash_key", "hash_keys", "key_text", "not_utf8", "split_texts"]

_NULL_SEED = 1


def hash_key(key: bytes | None) -> tuple[int, int]:
    """Hash a key: h1 and h2 of MurmurHash3 x64-128, seed 0, signed; the null key is no bytes with seed 1."""
    if key is None:
        lo, hi = mmh3.hash64(b"", seed=_NULL_SEED, x64arch=True, signed=True)
    else:
        lo, hi = mmh3.hash64(key, seed=0, x64arch=True, signed=True)
    return int(lo), int(hi)


def hash_keys(keys: pa.Array | Iterable[bytes | None]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hash many keys (an arrow binary array, or bytes with None for the null key): (hash_lo, hash_hi)."""
    values: list[bytes | None] = keys.to_pylist() if isinstance(keys, pa.Array) else list(keys)
    digest: Any = mmh3.hash_bytes
    try:
        joined = b"".join(map(digest, values))
    except TypeError:  # a null among them
        none = digest(b"", _NULL_SEED)
        joined = b"".join(none if value is None else digest(value) for value in values)
    both = np.frombuffer(joined, dtype="<i8").reshape(-1, 2)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


def as_binary(keys: Any) -> pa.LargeBinaryArray:
    """Make one large_binary array of keys: an arrow array (binary or string), or a list of bytes and None."""
    if isinstance(keys, pa.ChunkedArray):
        if not keys.num_chunks:
            return pa.array([], pa.large_binary())
        chunks = [as_binary(chunk) for chunk in keys.chunks]
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    if not isinstance(keys, pa.Array):
        return pa.array(keys, pa.large_binary())
    # The same buffers, with wider offsets: a cast imports pyarrow.compute, which takes longer than opening a trace.
    if pa.types.is_large_string(keys.type):
        return keys.view(pa.large_binary())
    if (pa.types.is_string(keys.type) or pa.types.is_binary(keys.type)) and len(keys):
        valid, offsets, data = keys.buffers()
        wide = np.frombuffer(offsets, np.int32, keys.offset + len(keys) + 1).astype(np.int64)
        buffers = [valid, pa.py_buffer(wide), data]
        return pa.Array.from_buffers(pa.large_binary(), len(keys), buffers, offset=keys.offset)
    return keys.cast(pa.large_binary())


def _is_utf8(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


def not_utf8(keys: pa.LargeBinaryArray) -> list[int]:
    """Return the positions of the keys that are not valid UTF-8."""
    try:
        keys.cast(pa.large_string())
    except pa.ArrowInvalid:
        return [i for i, key in enumerate(keys.to_pylist()) if key is not None and not _is_utf8(key)]
    return []


def key_text(key: bytes | None) -> str | None:
    """Show a key: its text, replacement characters where it is not UTF-8; None for the null key."""
    return None if key is None else key.decode("utf-8", errors="replace")


def split_texts(keys: pa.LargeBinaryArray) -> tuple[pa.LargeStringArray, pa.LargeBinaryArray | None]:
    """Split keys into the columns `key` and `key_bytes`; the second is None when every key is valid UTF-8."""
    odd = not_utf8(keys)
    if not odd:
        return keys.cast(pa.large_string()), None
    values = keys.to_pylist()
    texts = pa.array([key_text(value) for value in values], pa.large_string())
    kept: list[bytes | None] = [None] * len(values)
    for i in odd:
        kept[i] = values[i]
    return texts, pa.array(kept, pa.large_binary())
