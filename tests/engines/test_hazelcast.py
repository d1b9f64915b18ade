"""Hazelcast: every row that its client made, and all keys at once."""

import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.hazelcast import hazelcast_partition, hazelcast_partition_all, hazelcast_processor
from tests.engines.recorded_vectors import check_all, keys_of, rows, typed


def test_partitions() -> None:
    for row in rows("hazelcast-partition"):
        key = typed(row["key"], row["key_type"])
        assert hazelcast_partition(key, row["partition_count"]) == row["expected"], row


def test_vectorised() -> None:
    kinds = ("string", "int", "long")
    check_all("hazelcast-partition", hazelcast_partition, hazelcast_partition_all, null=False, kinds=kinds)


def test_processors_are_dealt_the_partitions() -> None:
    assert [hazelcast_processor(key, 4) for key in "abc"] == [hazelcast_partition(key) % 4 for key in "abc"]


def test_what_it_refuses() -> None:
    with pytest.raises(DataError, match="null"):
        hazelcast_partition(None)
    with pytest.raises(DataError, match="null"):
        hazelcast_partition_all(keys_of("string", ["a", None]))
    with pytest.raises(UsageError, match="serialisation"):
        hazelcast_partition(b"a")
    with pytest.raises(UsageError, match="bytes"):
        hazelcast_partition_all(keys_of("bytes", [b"a"]))
    with pytest.raises(UsageError, match="partition_count"):
        hazelcast_partition("a", 0)
