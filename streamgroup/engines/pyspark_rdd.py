"""Where PySpark puts the pairs of an RDD: `partitionBy`, `reduceByKey`, `groupByKey` and others in Python.

`partition = portable_hash(key) % n` (python/pyspark/core/rdd.py of apache/spark), where `portable_hash` is Python's own
`hash`, but for None (0) and tuples (the hash that tuples had before CPython 3.8). The hash of a string is SipHash of
its characters in 1, 2 or 4 bytes each, whatever the widest one needs, with keys that PYTHONHASHSEED decides: Spark's
launchers set it to 0. Vectors are from jobs of Spark 3.5.6 and 4.3.0 on CPython 3.11, and from CPython 3.6 to 3.13.

Traps: CPython 3.11 went from SipHash-2-4 to SipHash-1-3, so that strings move when Python is upgraded. hash(-1) is
hash(-2). An int and a long are the same here. No rule of the JVM agrees with it.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.hashes.siphash import ROUNDS, add_word, begin, end, hash_keys, siphash
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Value, check_value, check_workers, fields_of

__all__ = ["Python", "portable_hash", "pyspark_rdd_partition", "pyspark_rdd_partition_all"]

# 3.10 stands for CPython 3.4 to 3.10, 3.11 for 3.11 and later.
Python = Literal["3.10", "3.11"]

_PRIME = (1 << 61) - 1
_MOST = (1 << 63) - 1


def portable_hash(key: Value | Sequence[Value], python: Python = "3.11", seed: int = 0) -> int:
    """Return PySpark's `portable_hash`, signed 64 bits, under CPython `python` with PYTHONHASHSEED=`seed`.

    A tuple of values is a tuple; half of a surrogate pair is a character like another.
    """
    rounds = _rounds(python)
    if isinstance(key, (tuple, list)):
        h = 0x345678
        for field in fields_of(key):
            h = ((h ^ portable_hash(field, python, seed)) * 1_000_003) & _MOST
        return h ^ len(key)
    value = check_value(key)
    if value is None:
        return 0
    if isinstance(value, int):
        found = abs(value) % _PRIME * (1 if value >= 0 else -1)
    else:
        data = _characters(value) if isinstance(value, str) else value
        # CPython takes no bytes to hash to 0.
        found = siphash(data, hash_keys(seed), rounds) if data else 0
        found -= found >> 63 << 64
    return -2 if found == -1 else found


def _characters(text: str) -> bytes:
    """Return the characters as CPython keeps them (PEP 393)."""
    widest = max(map(ord, text), default=0)
    if widest < 256:
        return text.encode("latin-1")
    return text.encode("utf-16-le" if widest < 1 << 16 else "utf-32-le", "surrogatepass")


def _rounds(python: str) -> tuple[int, int]:
    if python not in ROUNDS:
        raise UsageError(f"python={python}: 3.10 (for 3.4 to 3.10) or 3.11 (and later)", "these are the two rules")
    return ROUNDS[python]


def pyspark_rdd_partition(key: Value | Sequence[Value], n: int, python: Python = "3.11", seed: int = 0) -> int:
    """Return the partition, 0..n-1, of a pair with this key."""
    return portable_hash(key, python, seed) % check_workers(n)


def pyspark_rdd_partition_all(keys: Keys, n: int, python: Python = "3.11", seed: int = 0) -> NDArray[np.uint16]:
    """Return `pyspark_rdd_partition` of all keys: uint16[K]."""
    check_workers(n)
    each, last = _rounds(python)
    if keys.parts:
        return keys.each(lambda key: pyspark_rdd_partition(key, n, python, seed))
    found = np.empty(keys.count, dtype=np.int64)
    if keys.kind in ("int", "long"):
        _hash_numbers(keys.number, found)
    else:
        low, high = (np.uint64(key) for key in hash_keys(seed))
        _hash_texts(keys.data, keys.start, keys.kind == "string", (low, high, each, last), found)
    if keys.null >= 0:
        found[keys.null] = 0
    return (found % n).astype(np.uint16)


@compiled
def _hash_numbers(number: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        value = number[key]
        if value >= 0:
            found[key] = value % _PRIME
        else:
            # The bits of -2^63 are those of its absolute value.
            h = -np.int64(np.uint64(-value) % np.uint64(_PRIME))
            found[key] = -2 if h == -1 else h


@compiled
def _hash_texts(data: Any, start: Any, text: Any, how: Any, found: Any) -> None:
    """Hash bytes or, with `text`, the characters that they are the UTF-8 of."""
    low, high, each, last = how
    for key in range(found.shape[0]):
        at, stop = start[key], start[key + 1]
        # How many bytes a character takes: the highest first byte tells. Up to 0x7f it is ASCII, which is its own
        # UTF-8; up to 0xc3 the characters are below 256, up to 0xef below 65,536.
        top = np.uint8(0)
        if text:
            for place in range(at, stop):
                top = max(top, data[place])
        width = 1 if top < 0xC4 else 2 if top < 0xF0 else 4
        state = begin(low, high)
        word, filled, length = np.uint64(0), np.uint64(0), np.uint64(0)
        while at < stop:
            lead = np.uint32(data[at])
            at += 1
            if text and lead >= 0x80:
                more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
                point = lead & np.uint32(0x3F >> more)
                for _ in range(more):
                    point = (point << np.uint32(6)) | (np.uint32(data[at]) & np.uint32(0x3F))
                    at += 1
            else:
                point = lead
            word |= np.uint64(point) << filled
            filled += np.uint64(8 * width)
            length += np.uint64(width)
            if filled == 64:
                state = add_word(state, word, each)
                word, filled = np.uint64(0), np.uint64(0)
        h = np.int64(0)
        if length > 0:
            h = np.int64(end(state, word | ((length & np.uint64(255)) << np.uint64(56)), each, last))
        found[key] = -2 if h == -1 else h
