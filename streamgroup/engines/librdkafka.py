"""Where clients built on librdkafka (C, C++, and the Python, Go and .NET clients by Confluent) put a record.

The default, `consistent_random`, is `crc32(key bytes) % partitions`, so that their records are not co-partitioned with
those of a Java producer; `murmur2_random` is the Java rule. Partitioners (configuration `partitioner`):

- `consistent`: CRC-32 as in zlib, unsigned; the empty key and null are the same;
- `murmur2`: as `streamgroup.engines.kafka`; null is hashed as no bytes;
- `fnv1a`: FNV-1a of 32 bits, read as signed, and its absolute value;
- with `_random`: the same, but null goes to a random partition, and so does the empty key with `consistent_random`.

Vectors are those of librdkafka 2.16.0. What a random partition is, its batches decide, which a trace does not have.
"""

import zlib
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.hashes.java_hash_and_random import i32
from streamgroup.engines.kafka import java_hashes, kafka_hash
from streamgroup.engines.keys.serialized_key_bytes import big_endian, key_bytes
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Value, check_choice, check_workers

__all__ = ["Partitioner", "librdkafka_partition", "librdkafka_partition_all"]

Partitioner = Literal["consistent_random", "consistent", "murmur2_random", "murmur2", "fnv1a_random", "fnv1a"]

_FNV_START, _FNV_PRIME = 0x811C9DC5, 0x01000193


def librdkafka_partition(key: Value, n: int, partitioner: Partitioner = "consistent_random") -> int:
    """Return the partition, 0..n-1, of a record with this key in a topic of n partitions.

    DataError for a key that the partitioner sends to a random one.
    """
    rule = _rule_of(partitioner)
    check_workers(n)
    data = key_bytes(key)
    if partitioner.endswith("_random") and (key is None or (rule == "consistent" and not data)):
        raise _random_partition_error(partitioner, key)
    if rule == "consistent":
        return zlib.crc32(data) % n
    if rule == "murmur2":
        return (kafka_hash(data) & 0x7FFF_FFFF) % n
    h = _FNV_START
    for byte in data:
        h = (h ^ byte) * _FNV_PRIME & 0xFFFF_FFFF
    return abs(i32(h)) % n


def librdkafka_partition_all(keys: Keys, n: int, partitioner: Partitioner = "consistent_random") -> NDArray[np.uint16]:
    """Return `librdkafka_partition` of all keys: uint16[K]."""
    rule = _rule_of(partitioner)
    check_workers(n)
    keys.refuse_composite("librdkafka's partitioner")
    packed = big_endian(keys)
    if partitioner.endswith("_random"):
        if keys.null >= 0:
            raise _random_partition_error(partitioner, None)
        if rule == "consistent" and np.any(packed.start[1:] == packed.start[:-1]):
            raise _random_partition_error(partitioner, "")
    hashes = np.empty(keys.count, dtype=np.int64)
    if rule == "consistent":
        _crc_all(packed.data, packed.start, _CRC_TABLE, hashes)
    elif rule == "murmur2":
        hashes[:] = java_hashes(keys) & 0x7FFF_FFFF
    else:
        _fnv_all(packed.data, packed.start, hashes)
    found = (hashes % n).astype(np.uint16)
    if keys.null >= 0:
        # Among numbers the null key has bytes, too.
        found[keys.null] = librdkafka_partition(None, n, partitioner)
    return found


def _rule_of(partitioner: str) -> str:
    return check_choice("partitioner", partitioner, get_args(Partitioner)).removesuffix("_random")


def _random_partition_error(partitioner: str, key: Value) -> DataError:
    what = "a null key" if key is None else "an empty key"
    return DataError(
        f"{what}: librdkafka's {partitioner} sends it to a random partition, by batches which a trace does not have",
        f"leave it out when ingesting, or take partitioner={partitioner.removesuffix('_random')}",
    )


def _crc_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, np.uint32(0xEDB88320) ^ (table >> np.uint32(1)), table >> np.uint32(1))
    return table


_CRC_TABLE = _crc_table()


@compiled
def _crc_all(data: Any, start: Any, table: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        h = np.uint32(0xFFFFFFFF)
        for at in range(start[key], start[key + 1]):
            h = np.uint32(table[(h ^ np.uint32(data[at])) & np.uint32(255)] ^ (h >> np.uint32(8)))
        found[key] = h ^ np.uint32(0xFFFFFFFF)


@compiled
def _fnv_all(data: Any, start: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        h = np.uint32(_FNV_START)
        for at in range(start[key], start[key + 1]):
            h = np.uint32(np.uint64(h ^ np.uint32(data[at])) * np.uint64(_FNV_PRIME))
        found[key] = abs(np.int64(np.int32(h)))
