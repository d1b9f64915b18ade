"""Where Pulsar puts a message with a key: the partition of its topic, or the consumer of a Key_Shared subscription.

- Producer, `java_string_hash` (the default): `(String.hashCode & 0x7fffffff) % partitions`; `murmur3`:
  `(murmur3_32(UTF-8) & 0x7fffffff) % partitions`, seed 0.
- Key_Shared by ranges that split (`subscriptionKeySharedUseConsistentHashing=false`): 65,536 slots; a consumer that
  joins takes the lower half of the largest range, so that the order of joining matters, and with a number of
  consumers that is no power of two some have twice the range of others. Class
  `HashRangeAutoSplitStickyKeyConsumerSelector` (apache/pulsar, pulsar-broker).
- Key_Shared by consistent hashing, the broker's default, as in 4.x: 65,535 slots, 100 points a consumer, that come from
  its name. Class `ConsistentHashingStickyKeyConsumerSelector`. Names are random unless they are set, and 3.x has
  other points, so a trace alone does not tell who gets a key: here the consumers are `consumer-0`, `consumer-1`, ...

All of it is derived from the source, the vectors too: nothing here was compared with a running Pulsar. A key is text,
so there are strings only. A message without a key goes round by batches, which a trace does not have.
"""

import bisect
import heapq
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.hashes.java_hash_and_random import hash_codes, string_hash
from streamgroup.engines.hashes.murmur32 import murmur3, murmur3_at
from streamgroup.engines.keys.serialized_key_bytes import key_bytes
from streamgroup.engines.keys.typed_key_arrays import Keys, make_keys, pack
from streamgroup.engines.keys.typed_key_values import Value, check_choice, check_value, check_workers

__all__ = [
    "HashRanges",
    "Hashing",
    "consistent_consumer",
    "consistent_consumer_all",
    "consumer_names",
    "hash_ring",
    "pulsar_partition",
    "pulsar_partition_all",
    "pulsar_slot",
    "pulsar_slot_all",
    "range_sizes",
    "ring_slot",
]

Hashing = Literal["java_string_hash", "murmur3"]

_SLOTS = 1 << 16
_RING_SLOTS = (1 << 16) - 1
_POINTS = 100
_NAMES_AT_ONCE = 1024
_POSITIVE = 0x7FFF_FFFF
_TEXT = "a key of Pulsar is text"


def pulsar_partition(key: Value, n: int, hashing: Hashing = "java_string_hash") -> int:
    """Return the partition, 0..n-1, of a message with this key in a topic of n partitions.

    DataError for the null key, UsageError for what is no string.
    """
    text = _text(key)
    check_workers(n)
    if _check_hashing(hashing) == "murmur3":
        return _murmur(text) % n
    return (string_hash(text) & _POSITIVE) % n


def pulsar_partition_all(keys: Keys, n: int, hashing: Hashing = "java_string_hash") -> NDArray[np.uint16]:
    """Return `pulsar_partition` of all keys: uint16[K]."""
    check_workers(n)
    if _check_hashing(hashing) == "murmur3":
        return (_murmur_all(keys) % n).astype(np.uint16)
    _check_keys(keys)
    return ((hash_codes(keys) & _POSITIVE) % n).astype(np.uint16)


def pulsar_slot(key: Value) -> int:
    """Return the slot of a key among those that split ranges share, 0..65535."""
    return _murmur(_text(key)) % _SLOTS


def pulsar_slot_all(keys: Keys) -> NDArray[np.int64]:
    """Return `pulsar_slot` of all keys: int64[K]."""
    return _murmur_all(keys) % _SLOTS


def ring_slot(data: bytes) -> int:
    """Return the slot of bytes on the ring of 4.x, 1..65535."""
    return (murmur3(data) & _POSITIVE) % _RING_SLOTS + 1


class HashRanges:
    """The ranges of slots that consumers of a Key_Shared subscription have, as they join and leave one by one.

    Consumer ids are whole numbers of the caller's. The first that joins has all slots. Who leaves gives the range to
    the one above, or the highest range to the one below.
    """

    def __init__(self, consumers: Iterable[int] = ()) -> None:
        # The highest slot of each range, ascending, and whose it is; the last boundary is 65,536.
        self.boundaries: list[int] = []
        self.owners: list[int] = []
        self.join(*consumers)

    def join(self, *consumers: int) -> None:
        """Assign each consumer in turn the lower half of the largest range; of equal ranges the first one is split."""
        owner = dict(zip(self.boundaries, self.owners, strict=True))
        largest = [(-size, high) for size, high in zip(self._sizes(), self.boundaries, strict=True)]
        heapq.heapify(largest)
        for consumer in consumers:
            if not owner:
                owner[_SLOTS] = consumer
                largest.append((-_SLOTS, _SLOTS))
                continue
            size, high = -largest[0][0], largest[0][1]
            if size <= 1:
                raise UsageError(f"{len(owner)} consumers have all {_SLOTS} slots of the subscription", "take fewer")
            upper = size // 2
            owner[high - upper] = consumer
            heapq.heapreplace(largest, (-upper, high))
            heapq.heappush(largest, (upper - size, high - upper))
        self.boundaries = sorted(owner)
        self.owners = [owner[boundary] for boundary in self.boundaries]

    def leave(self, consumer: int) -> None:
        """Take a consumer's range away."""
        at = self.owners.index(consumer)
        if at == len(self.owners) - 1 and at > 0:
            self.owners[at] = self.owners[at - 1]
            at -= 1
        del self.owners[at], self.boundaries[at]

    def _sizes(self) -> list[int]:
        return [high - low for low, high in zip([0, *self.boundaries], self.boundaries, strict=False)]

    def sizes(self) -> dict[int, int]:
        """Return how many slots each consumer has."""
        return dict(zip(self.owners, self._sizes(), strict=True))

    def consumer(self, key: Value) -> int:
        """Return the consumer that gets a key."""
        return self.owners[bisect.bisect_left(self.boundaries, pulsar_slot(key))]

    def consumer_all(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the consumers of slots (`pulsar_slot_all`): int64[K]."""
        return np.array(self.owners, dtype=np.int64)[np.searchsorted(self.boundaries, slots)]


def consumer_names(count: int) -> list[str]:
    """Return the names that consumers have here: consumer-0, consumer-1, ..."""
    return [f"consumer-{at}" for at in range(count)]


def hash_ring(names: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the points of consumers on the ring: their slots, ascending, and the place in `names` of who has each.

    Who joined first, in the order of the names, keeps a point that two would have. All names differ.
    """
    owner = np.full(_RING_SLOTS + 1, -1, dtype=np.int64)
    # The middle number tells consumers of one name apart.
    ends = [f"\0{0}\0{point}".encode() for point in range(_POINTS)]
    for first in range(0, len(names), _NAMES_AT_ONCE):
        some = [name.encode() for name in names[first : first + _NAMES_AT_ONCE]]
        keys = make_keys("bytes", *pack(name + end for name in some for end in ends))
        hashes = np.empty(keys.count, dtype=np.int64)
        _hash_all(keys.data, keys.start, hashes)
        slots, points = np.unique(hashes % _RING_SLOTS + 1, return_index=True)
        free = owner[slots] < 0
        owner[slots[free]] = first + points[free] // _POINTS
        if (owner[1:] >= 0).all():
            break
    found = np.flatnonzero(owner >= 0)
    return found, owner[found]


def range_sizes(slots: NDArray[np.int64], owners: NDArray[np.int64], consumers: int) -> NDArray[np.int64]:
    """Return int64[consumers]: how many of the ring's slots each has, of a ring as `hash_ring` gives it."""
    sizes = np.diff(slots, prepend=slots[-1] - _RING_SLOTS)
    return np.bincount(owners, sizes, minlength=consumers).astype(np.int64)


def consistent_consumer(key: Value, names: Sequence[str]) -> int:
    """Return the place in `names` of the consumer that gets a key by consistent hashing, as in 4.x."""
    slots, owners = hash_ring(names)
    return int(owners[bisect.bisect_left(slots.tolist(), ring_slot(key_bytes(_text(key)))) % len(slots)])


def consistent_consumer_all(keys: Keys, names: Sequence[str]) -> NDArray[np.int64]:
    """Return `consistent_consumer` of all keys: int64[K]."""
    slots, owners = hash_ring(names)
    return owners[np.searchsorted(slots, _murmur_all(keys) % _RING_SLOTS + 1) % len(slots)]


def _text(key: Value) -> str:
    key = check_value(key)
    if key is None:
        raise DataError("a null key: Pulsar sends messages without a key round by batches", "leave it out")
    if not isinstance(key, str):
        raise UsageError(f"{key!r}: {_TEXT}", "give a str")
    return key


def _check_hashing(hashing: str) -> str:
    return check_choice("hashing", hashing, get_args(Hashing))


def _check_keys(keys: Keys) -> None:
    keys.refuse_composite("pulsar")
    keys.refuse_null("pulsar")
    keys.refuse_kinds("pulsar", ["int", "long", "bytes"], _TEXT)


def _murmur(text: str) -> int:
    return murmur3(key_bytes(text)) & _POSITIVE


def _murmur_all(keys: Keys) -> NDArray[np.int64]:
    _check_keys(keys)
    found = np.empty(keys.count, dtype=np.int64)
    _hash_all(keys.data, keys.start, found)
    return found


@compiled
def _hash_all(data: Any, start: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        found[key] = np.int64(murmur3_at(data, start[key], start[key + 1], 0, 0)) & _POSITIVE
