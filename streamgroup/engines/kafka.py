"""Where Kafka's Java producer, and Kafka Streams, put a record: the partition of its topic.

`partition = (murmur2(key bytes) & 0x7fffffff) % partitions`, the same from the new producer of 0.8.2 to 3.9, in classes
`DefaultPartitioner` and `BuiltInPartitioner` (apache/kafka, clients: org/apache/kafka/clients/producer/internals), and
`DefaultStreamPartitioner` (streams). The key's bytes are what its serializer makes: UTF-8 of a string, 4 or 8 bytes,
highest first, of an int or a long. So "42", Int(42) and Long(42) go to unrelated partitions.

Traps: an empty key is a key, no null. All partitions count, available or not. More partitions move nearly all keys.
Clients on librdkafka do otherwise by default (`streamgroup.engines.librdkafka`). A serializer that talks to a schema
registry puts five bytes in front: give bytes for that.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.hashes.java_hash_and_random import i32
from streamgroup.engines.hashes.murmur32 import murmur2, murmur2_at
from streamgroup.engines.keys.serialized_key_bytes import big_endian, key_bytes
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Value, check_workers

__all__ = ["StickyPartitioner", "java_hashes", "kafka_hash", "kafka_partition", "kafka_partition_all"]

_SEED = 0x9747B28C


def kafka_hash(key: Value) -> int:
    """Return murmur2 of the bytes that Kafka's serializers make of a key, signed 32 bits.

    DataError for the null key, which has no bytes to hash.
    """
    if key is None:
        raise _no_partition()
    return i32(murmur2(key_bytes(key), _SEED))


def kafka_partition(key: Value, n: int) -> int:
    """Return the partition, 0..n-1, of a record with this key in a topic of n partitions."""
    return (kafka_hash(key) & 0x7FFF_FFFF) % check_workers(n)


def java_hashes(keys: Keys) -> NDArray[np.int32]:
    """Return murmur2 of all keys' bytes: int32[K]."""
    packed = big_endian(keys)
    found = np.empty(keys.count, dtype=np.int32)
    _hash_all(packed.data, packed.start, found)
    return found


def kafka_partition_all(keys: Keys, n: int) -> NDArray[np.uint16]:
    """Return `kafka_partition` of all keys: uint16[K]."""
    check_workers(n)
    keys.refuse_composite("Kafka's producer")
    if keys.null >= 0:
        raise _no_partition()
    return ((java_hashes(keys) & 0x7FFF_FFFF) % n).astype(np.uint16)


def _no_partition() -> DataError:
    return DataError(
        "a null key: Kafka's producer places records without a key by its batches, which a trace does not have",
        "ingest it with --null-keys drop",
    )


@compiled
def _hash_all(data: Any, start: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        found[key] = np.int32(murmur2_at(data, start[key], start[key + 1], _SEED))


class StickyPartitioner:
    """Where a producer of Kafka 3.3 or later (KIP-794, class `BuiltInPartitioner`) puts records without a key.

    It sticks to one partition until `batch_size` bytes have been appended there and its last batch is full, or twice
    as many bytes in any case. The record that crosses the limit still goes to the old partition, and the count begins
    at 0 again. The next partition is drawn, and may be the same.

    `available` are the ids of the partitions with a leader, or their number. `draws` gives the random ints (32 bits)
    that Java would draw: one at the start and one at each switch. A producer that knows of queues of unequal lengths
    prefers the short ones; that depends on the brokers and is not here, so this is its behaviour with
    `partitioner.adaptive.partitioning.enable=false`.
    """

    def __init__(self, available: int | Sequence[int], draws: Iterable[int], batch_size: int = 16_384) -> None:
        self._available = range(available) if isinstance(available, int) else list(available)
        if not self._available:
            raise UsageError("no partition is available", "give at least one")
        if batch_size < 1:
            raise UsageError(f"batch_size={batch_size}: must be at least 1")
        self._draws = iter(draws)
        self._limit = batch_size
        self._appended = 0
        self._partition = self._drawn()

    def append(self, size: int, enable_switch: bool = True) -> int:
        """Append a record of `size` bytes and give its partition; `enable_switch`: the last batch there is full now.

        A switch that was held back is tried again before the next record if that batch is closed by then:
        `append(0)` does that.
        """
        partition = self._partition
        self._appended += size
        if self._appended >= 2 * self._limit or (enable_switch and self._appended >= self._limit):
            self._partition = self._drawn()
            self._appended = 0
        return partition

    def _drawn(self) -> int:
        try:
            drawn = next(self._draws)
        except StopIteration:
            raise UsageError("there are no more random numbers to draw a partition with", "give more draws") from None
        return self._available[(drawn & 0x7FFF_FFFF) % len(self._available)]
