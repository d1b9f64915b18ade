"""Kafka's Java producer and the clients on librdkafka: every row that they made, and the same over all keys at once."""

from typing import Any, get_args

import numpy as np
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.kafka import StickyPartitioner, kafka_hash, kafka_partition, kafka_partition_all
from streamgroup.engines.keys.typed_key_values import Int, Long
from streamgroup.engines.librdkafka import Partitioner, librdkafka_partition, librdkafka_partition_all
from tests.engines.recorded_vectors import check_all, keys_of, rows, typed

PLAIN = [name for name in get_args(Partitioner) if not name.endswith("_random")]


def test_java_producer() -> None:
    for row in rows("kafka-default"):
        key = typed(row["key"], row["key_type"])
        assert kafka_hash(key) == row["murmur2"], row
        assert kafka_partition(key, row["n"]) == row["expected"], row


def test_java_producer_vectorised() -> None:
    check_all("kafka-default", kafka_partition, kafka_partition_all, null=False)


def test_types_go_to_unrelated_partitions() -> None:
    assert [kafka_partition(key, 100) for key in ("42", Int(42), Long(42), b"42")] == [72, 4, 52, 72]


def test_a_record_without_a_key_has_no_partition() -> None:
    for route in (lambda: kafka_partition(None, 3), lambda: kafka_partition_all(keys_of("int", [Int(1), None]), 3)):
        with pytest.raises(DataError, match="null key"):
            route()
    assert kafka_partition("", 3) == kafka_partition(b"", 3)


def test_sticky_partitions_of_records_without_a_key() -> None:
    for row in rows("kafka-null-sticky"):
        sticky = StickyPartitioner(row["n"], row["random"], row["sticky_batch_size"])
        placed = [sticky.append(*what) for what in zip(row["appended_bytes"], row["enable_switch"], strict=True)]
        assert placed == row["expected"], row["case"]


def test_a_switch_waits_for_the_batch_but_not_for_ever() -> None:
    sticky = StickyPartitioner([4, 7, 9], [0, 1, 2, -1, 5, 0], batch_size=100)
    # The limit is crossed while the batch has room; then the batch is closed before the next record.
    assert [sticky.append(60), sticky.append(60, False), sticky.append(10, False)] == [4, 4, 4]
    assert sticky.append(0) == 4
    # At twice the limit it moves in any case, and the count begins anew.
    assert [sticky.append(99), sticky.append(101, False), sticky.append(100)] == [7, 7, 9]
    # -1 & 0x7fffffff is 1 mod 3; the draw after it gives 9 again.
    assert [sticky.append(200, False), sticky.append(99), sticky.append(1)] == [7, 9, 9]
    with pytest.raises(UsageError, match="random"):
        StickyPartitioner(3, [])


@pytest.mark.parametrize(("available", "batch"), [([], 1), (0, 1), (1, 0)])
def test_sticky_arguments(available: Any, batch: int) -> None:
    with pytest.raises(UsageError):
        StickyPartitioner(available, [1], batch)


def test_librdkafka() -> None:
    columns = {"consistent": "consistent_crc32", "murmur2": "murmur2", "fnv1a": "fnv1a"}
    for row in rows("kafka-librdkafka"):
        key = typed(row["key"], row["key_type"])
        for partitioner, column in columns.items():
            assert librdkafka_partition(key, row["n"], partitioner) == row[column], row
            if key != "" or partitioner != "consistent":
                assert librdkafka_partition(key, row["n"], f"{partitioner}_random") == row[column], row


@pytest.mark.parametrize("partitioner", PLAIN)
def test_librdkafka_vectorised(partitioner: Any) -> None:
    check_all(
        "kafka-librdkafka",
        lambda key, n: librdkafka_partition(key, n, partitioner),
        lambda keys, n: librdkafka_partition_all(keys, n, partitioner),
        null=True,
    )


@pytest.mark.parametrize("partitioner", PLAIN)
def test_random_partitions_are_refused_and_the_others_are_the_same(partitioner: str) -> None:
    random = f"{partitioner}_random"
    keys = keys_of("string", ["a", "b\0", "😀"])
    assert np.array_equal(librdkafka_partition_all(keys, 7, random), librdkafka_partition_all(keys, 7, partitioner))
    refused = [None, ""] if partitioner == "consistent" else [None]
    for key in refused:
        for route in (
            lambda key=key: librdkafka_partition(key, 7, random),
            lambda key=key: librdkafka_partition_all(keys_of("string", ["a", key]), 7, random),
        ):
            with pytest.raises(DataError, match="random partition"):
                route()
    if partitioner != "consistent":
        assert librdkafka_partition_all(keys_of("string", [""]), 7, random)[0] == librdkafka_partition("", 7, random)


def test_an_unknown_partitioner() -> None:
    with pytest.raises(UsageError, match="known"):
        librdkafka_partition("a", 3, "crc32")
