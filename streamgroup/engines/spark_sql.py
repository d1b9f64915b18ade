"""Where Spark SQL puts a row: `DataFrame.repartition(n, columns)`, and every other shuffle by hash.

`partition = pmod(hash(columns), n)`, with Spark's own Murmur3 of 32 bits, seed 42 (classes `HashPartitioning` and
`Murmur3_x86_32` in apache/spark). The hash of a column is the seed of the next; a null leaves it as it is. An int is
one block of four bytes, a long two; a string is its UTF-8 in blocks of four, and each byte that is left is widened, as
a signed one, to a block of its own, which no other Murmur3 does. The rule is the same in all sources from 2.x to 4.3;
vectors are from jobs of 3.5.6 and 4.3.0.

Traps: an int and a long of the same value go to different partitions. `repartition(column)` without n takes
`spark.sql.shuffle.partitions` (200), and adaptive execution may then merge neighbouring partitions. Columns with
another collation than UTF8_BINARY are hashed by their collation keys, which is not covered.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.hashes.java_hash_and_random import i32
from streamgroup.engines.hashes.murmur32 import finish, finish_word, mix, mix_word, word_at
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Int, Long, Value, check_workers, fields_of, java_utf8

__all__ = ["spark_sql_hash", "spark_sql_partition", "spark_sql_partition_all"]

_SEED = 42


def spark_sql_hash(key: Value | Sequence[Value]) -> int:
    """Return Spark SQL's `hash(columns)`, signed 32 bits; a tuple stands for several columns, None for a null."""
    h = _SEED
    for value in fields_of(key):
        h = _hash_one(value, h)
    return i32(h)


def _hash_one(value: Value, seed: int) -> int:
    if value is None:
        return seed
    if isinstance(value, Int):
        return finish(mix(seed, value), 4)
    if isinstance(value, Long):
        return finish(mix(mix(seed, value), value >> 32), 8)
    data = java_utf8(value) if isinstance(value, str) else value
    h, whole = seed, len(data) // 4 * 4
    for at in range(0, whole, 4):
        h = mix(h, int.from_bytes(data[at : at + 4], "little"))
    for byte in data[whole:]:
        h = mix(h, byte - 256 if byte > 127 else byte)
    return finish(h, len(data))


def spark_sql_partition(key: Value | Sequence[Value], n: int) -> int:
    """Return the partition, 0..n-1, of a row that is partitioned by this key; a tuple stands for several columns."""
    return spark_sql_hash(key) % check_workers(n)


def spark_sql_partition_all(keys: Keys, n: int) -> NDArray[np.uint16]:
    """Return `spark_sql_partition` of all keys, each one column: uint16[K]."""
    check_workers(n)
    if keys.parts:
        return keys.each(lambda key: spark_sql_partition(key, n))
    found = np.empty(keys.count, dtype=np.int32)
    if keys.kind in ("int", "long"):
        _hash_numbers(keys.number, keys.kind == "long", found)
    else:
        _hash_bytes(keys.data, keys.start, found)
    if keys.null >= 0:
        found[keys.null] = _SEED
    return (found % np.int32(n)).astype(np.uint16)


@compiled
def _hash_numbers(number: Any, long: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        bits = np.uint64(number[key])
        h = mix_word(np.uint32(_SEED), np.uint32(bits))
        if long:
            h = mix_word(h, np.uint32(bits >> np.uint64(32)))
        found[key] = np.int32(finish_word(h, 8 if long else 4))


@compiled
def _hash_bytes(data: Any, start: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        begin, end = start[key], start[key + 1]
        whole = begin + (end - begin) // 4 * 4
        h = np.uint32(_SEED)
        for at in range(begin, whole, 4):
            h = mix_word(h, word_at(data, at))
        for at in range(whole, end):
            h = mix_word(h, np.uint32(np.int32(np.int8(data[at]))))
        found[key] = np.int32(finish_word(h, end - begin))
