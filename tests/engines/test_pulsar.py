"""Pulsar: every row of the vectors, all keys at once, and what consumers that come and go do to the ranges."""

from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.keys.typed_key_values import Int
from streamgroup.engines.pulsar import (
    HashRanges,
    consistent_consumer,
    consistent_consumer_all,
    consumer_names,
    hash_ring,
    pulsar_partition,
    pulsar_partition_all,
    pulsar_slot,
    pulsar_slot_all,
    ring_slot,
)
from tests.engines.recorded_vectors import check_all, keys_of, rows

HASHES = ("java_string_hash", "murmur3")


def test_partitions() -> None:
    for row in rows("pulsar-partition-route"):
        found = [pulsar_partition(row["key"], row["n"], hashing) for hashing in HASHES]
        assert found == [row["javastringhash"], row["murmur3_32"]], row


@pytest.mark.parametrize("hashing", HASHES)
def test_partitions_vectorised(hashing: Any) -> None:
    check_all(
        "pulsar-partition-route",
        lambda key, n: pulsar_partition(key, n, hashing),
        lambda keys, n: pulsar_partition_all(keys, n, hashing),
        null=False,
        kinds=["string"],
    )


def test_ranges_that_split() -> None:
    crews: dict[int, HashRanges] = {}
    for row in rows("pulsar-keyshared-autosplit"):
        ranges = crews.setdefault(row["n"], HashRanges(range(row["n"])))
        assert (pulsar_slot(row["key"]), ranges.consumer(row["key"])) == (row["slot"], row["expected"]), row


def test_consumers_vectorised() -> None:
    check_all(
        "pulsar-keyshared-autosplit",
        lambda key, n: HashRanges(range(n)).consumer(key),
        lambda keys, n: HashRanges(range(n)).consumer_all(pulsar_slot_all(keys)).astype(np.uint16),
        null=False,
        kinds=["string"],
        sizes=[1, 5, 128],
    )
    check_all(
        "pulsar-keyshared-consistent4",
        lambda key, n: consistent_consumer(key, consumer_names(n)),
        lambda keys, n: consistent_consumer_all(keys, consumer_names(n)).astype(np.uint16),
        null=False,
        kinds=["string"],
        sizes=[1, 3],
    )


def test_who_leaves_gives_the_range_away() -> None:
    ranges = HashRanges([0, 1, 2, 3])
    assert (ranges.boundaries, ranges.owners) == ([16384, 32768, 49152, 65536], [2, 1, 3, 0])
    ranges.leave(1)
    assert (ranges.boundaries, ranges.owners) == ([16384, 49152, 65536], [2, 3, 0])
    # The highest range has none above it.
    ranges.leave(0)
    assert (ranges.boundaries, ranges.owners) == ([16384, 65536], [2, 3])
    ranges.join(4)
    assert (ranges.boundaries, ranges.owners) == ([16384, 40960, 65536], [2, 4, 3])
    for consumer in (2, 4, 3):
        ranges.leave(consumer)
    assert (ranges.boundaries, ranges.owners) == ([], [])


def test_as_many_consumers_as_slots() -> None:
    ranges = HashRanges(range(65_536))
    assert set(ranges.sizes().values()) == {1}
    # Joining at once is joining one by one.
    one_by_one = HashRanges()
    for consumer in range(300):
        one_by_one.join(consumer)
    assert vars(HashRanges(range(300))) == vars(one_by_one)
    slots, owners = hash_ring(consumer_names(65_536))
    assert len(slots) == 65_535
    # The points of the first are wanted by nobody before.
    found = {ring_slot(f"consumer-0\0{0}\0{point}".encode()) for point in range(100)}
    assert set(slots[owners == 0].tolist()) == found
    assert owners.max() > 1024


def test_the_slots_may_run_out() -> None:
    ranges = HashRanges()
    ranges.boundaries, ranges.owners = list(range(1, 65_537)), list(range(65_536))
    with pytest.raises(UsageError, match="65536"):
        ranges.join(65_536)


def test_consistent_hashing() -> None:
    by_size: dict[int, list[dict[str, Any]]] = {}
    for row in rows("pulsar-keyshared-consistent4"):
        assert ring_slot(row["key"].encode()) == row["slot"], row
        by_size.setdefault(row["n"], []).append(row)
    for n, those in by_size.items():
        names, keys = consumer_names(n), [row["key"] for row in those]
        assert consistent_consumer_all(keys_of("string", keys), names).tolist() == [row["expected"] for row in those]
        # The scalar rule makes the ring anew for every key.
        for row in those[:20]:
            assert consistent_consumer(row["key"], names) == row["expected"], row


def test_a_shared_point_is_of_who_joined_first() -> None:
    slots, owners = hash_ring(consumer_names(400))
    # 40,000 points in 65,535 slots: some are wanted twice.
    assert len(slots) < 40_000
    assert np.all(np.diff(slots) > 0)
    assert np.bincount(owners)[:2].tolist() == [100, 100]


def test_what_is_no_key() -> None:
    for key, error in ((None, DataError), (Int(1), UsageError), (b"a", UsageError)):
        with pytest.raises(error):
            pulsar_partition(key, 3)
    for kind, keys in (("string", ["a", None]), ("int", [Int(1)]), ("bytes", [b"a"])):
        for route in (lambda k: pulsar_partition_all(k, 3), lambda k: pulsar_partition_all(k, 3, "murmur3")):
            with pytest.raises((DataError, UsageError)):
                route(keys_of(kind, keys))
    with pytest.raises(UsageError, match="known"):
        pulsar_partition("a", 3, "md5")
