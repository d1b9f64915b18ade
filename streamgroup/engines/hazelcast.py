"""Where Hazelcast and Hazelcast Jet place an entry: its partition, and the processor that owns the partition.

`partition = |h| % partition_count` (0 for h = -2^31), where h is MurmurHash3 x86-32, seed 0x01000193, of the serialised
key without its header of 8 bytes: a string is the length of its UTF-8 in 4 bytes, highest first, and the UTF-8; an int
4 bytes, a long 8, highest first (classes `HashUtil`, `Partitioner` and `PartitionArrangement` of hazelcast/hazelcast,
4.x and later). A cluster has 271 partitions by default. Vectors are from the Python client 5.7.0.

On one member, Jet assigns partitions to the processors of an edge round robin: `processor = partition % processors`.
That is derived from its source, without vectors. With several members the cluster's partition table decides who owns a
partition, which is no function of the key.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.hashes.java_hash_and_random import absolute, i32
from streamgroup.engines.hashes.murmur32 import mix_word, murmur3, murmur3_at
from streamgroup.engines.keys.serialized_key_bytes import big_endian, key_bytes
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Value, check_value, check_workers

__all__ = ["DEFAULT_PARTITIONS", "hazelcast_partition", "hazelcast_partition_all", "hazelcast_processor"]

DEFAULT_PARTITIONS = 271

_SEED = 0x01000193
_BYTES = "only the serialisation of strings, ints and longs is covered"


def hazelcast_partition(key: Value, partition_count: int = DEFAULT_PARTITIONS) -> int:
    """Return the partition, 0..partition_count-1, that holds a key.

    DataError for the null key, which maps refuse; UsageError for bytes.
    """
    check_workers(partition_count, "partition_count")
    if check_value(key) is None:
        raise DataError("hazelcast refuses a null key", "leave it out")
    if isinstance(key, bytes):
        raise UsageError(f"{key!r}: {_BYTES}", "use a string, Int or Long")
    data = key_bytes(key)
    if isinstance(key, str):
        data = len(data).to_bytes(4, "big") + data
    return absolute(i32(murmur3(data, _SEED))) % partition_count


def hazelcast_processor(key: Value, n: int, partition_count: int = DEFAULT_PARTITIONS) -> int:
    """Return which of a member's n processors, 0..n-1, gets a key over a partitioned edge, if there is one member."""
    return hazelcast_partition(key, partition_count) % check_workers(n)


def hazelcast_partition_all(keys: Keys, partition_count: int = DEFAULT_PARTITIONS) -> NDArray[np.uint16]:
    """Return `hazelcast_partition` of all keys: uint16[K]."""
    check_workers(partition_count, "partition_count")
    keys.refuse_composite("hazelcast")
    keys.refuse_null("hazelcast")
    keys.refuse_kinds("hazelcast", ["bytes"], _BYTES)
    packed = big_endian(keys)
    hashes = np.empty(keys.count, dtype=np.int64)
    _hash_all(packed.data, packed.start, keys.kind == "string", hashes)
    return (hashes % partition_count).astype(np.uint16)


@compiled
def _hash_all(data: Any, start: Any, text: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        begin, end = start[key], start[key + 1]
        h: Any = np.uint32(_SEED)
        if text:
            # The length is a whole block in front: mixed in first, and four more bytes at the end.
            length = np.uint32(end - begin)
            swapped = ((length & 0xFF) << 24) | ((length & 0xFF00) << 8) | ((length >> 8) & 0xFF00) | (length >> 24)
            h = mix_word(h, np.uint32(swapped))
        signed = np.int32(murmur3_at(data, begin, end, h, 4 if text else 0))
        found[key] = 0 if signed == -(1 << 31) else abs(np.int64(signed))
