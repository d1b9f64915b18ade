"""Composite keys, all at once: what real engines did with several fields, and who refuses them."""

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines import (
    flink,
    hazelcast,
    heron,
    kafka,
    librdkafka,
    pulsar,
    pyflink,
    pyspark_rdd,
    spark_rdd,
    spark_sql,
    storm,
)
from streamgroup.engines.keys.typed_key_arrays import Keys, make_keys, pack
from streamgroup.engines.keys.typed_key_values import Int, Long, check_kind, parts_of
from tests.engines.recorded_vectors import rows

VECTORS: dict[str, Callable[[Keys, int], Any]] = {
    "storm-fields-multi": storm.fields_tasks_all,
    "flink-sql-rowkey-multi": flink.sql_subtasks_all,
    "spark-df-repartition-multi": spark_sql.spark_sql_partition_all,
    "spark-rdd-hashpartitioner-tuple2": spark_rdd.spark_rdd_partition_all,
}


def composite_keys(kind: str, keys: list[Any]) -> Keys:
    return make_keys(
        kind, *pack([None if key is None else json.dumps(key, ensure_ascii=False).encode() for key in keys])
    )


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_of_engines(name: str) -> None:
    groups: dict[tuple[str, int, int | None], list[Any]] = defaultdict(list)
    for row in rows(name):
        if isinstance(row["key"], list) and len(row["key"]) > 1 and "null" not in row["key_type"]:
            groups[",".join(row["key_type"]), row["n"], row.get("resolved_max_parallelism")].append(row)
    assert groups
    for (kind, n, most), found in groups.items():
        keys = composite_keys(kind, [row["key"] for row in found])
        places: Any = VECTORS[name]
        answer = places(keys, n) if most is None else places(keys, n, most)
        assert answer.dtype == np.uint16
        assert answer.tolist() == [row["expected"] for row in found], (kind, n)


SCALAR: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "storm": (storm.fields_task, storm.fields_tasks_all),
    "storm pkg": (lambda key, n: list(storm.pkg_tasks(key, n)), storm.pkg_tasks_all),
    "storm pkg 1": (
        lambda key, n: list(storm.pkg_tasks(key, n, "1")),
        lambda keys, n: storm.pkg_tasks_all(keys, n, "1"),
    ),
    "keyBy": (flink.keyby_subtask, flink.keyby_subtasks_all),
    "flink sql": (flink.sql_subtask, flink.sql_subtasks_all),
    "pyflink": (pyflink.pyflink_subtask, pyflink.pyflink_subtasks_all),
    "spark sql": (spark_sql.spark_sql_partition, spark_sql.spark_sql_partition_all),
    "spark rdd": (spark_rdd.spark_rdd_partition, spark_rdd.spark_rdd_partition_all),
    "pyspark rdd": (pyspark_rdd.pyspark_rdd_partition, pyspark_rdd.pyspark_rdd_partition_all),
}


@pytest.mark.parametrize("name", SCALAR)
@pytest.mark.parametrize("n", [1, 7, 64])
def test_rules_of_several_fields_get_the_tuple(name: str, n: int) -> None:
    one, many = SCALAR[name]
    keys = composite_keys("string,long", [["de", 42], ["é", None], None, [None, -1]])
    tuples = [("de", Long(42)), ("é", None), (None, None), (None, Long(-1))]
    assert many(keys, n).tolist() == [one(key, n) for key in tuples]
    keys = composite_keys("string,int", [["de", 42]])
    assert many(keys, n).tolist() == [one(("de", Int(42)), n)]
    assert many(composite_keys("string,int", []), n).tolist() == []


def test_heron() -> None:
    keys = composite_keys("string,int", [["de", 42], ["fr", 7]])
    wanted = [heron.fields_task(key, 9, "kryo5") for key in (("de", Int(42)), ("fr", Int(7)))]
    assert heron.fields_tasks_all(keys, 9, "kryo5").tolist() == wanted
    with pytest.raises(DataError, match="null"):
        heron.fields_tasks_all(composite_keys("string,int", [["de", None]]), 9)


@pytest.mark.parametrize(
    "rule",
    [
        storm.trident_tasks_all, kafka.kafka_partition_all, librdkafka.librdkafka_partition_all,
        hazelcast.hazelcast_partition_all, pulsar.pulsar_partition_all,
        lambda keys, n: pulsar.pulsar_partition_all(keys, n, "murmur3"),
        lambda keys, n: pulsar.pulsar_slot_all(keys), lambda keys, n: pulsar.consistent_consumer_all(keys, ["a"]),
    ],
)  # fmt: skip
def test_rules_of_one_value_refuse_them(rule: Any) -> None:
    with pytest.raises(UsageError, match=r"looks at one value.*string,long"):
        rule(composite_keys("string,long", [["de", 42]]), 3)


def test_booleans_have_no_rule() -> None:
    with pytest.raises(UsageError, match="bool"):
        storm.fields_tasks_all(composite_keys("string,boolean", [["de", True]]), 3)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("string,long", b'"de"'), ("string,long", b"de"), ("string,long", b'["de"]'), ("string,long", b'["de",1,2]'),
        ("string,long", b'["de","42"]'), ("string,long", b'["de",1.5]'), ("string,long", b'["de",true]'),
        ("string,long", b'["de",9223372036854775808]'), ("string,int", b'["de",2147483648]'),
        ("string,long", b"[1,2]"), ("bytes,long", b"[1,2]"), ("boolean,long", b'["x",2]'),
        ("string,long", b'["\xff",1]'),
        ("string,long", b"[" * 100_000),
    ],
)  # fmt: skip
def test_keys_that_are_not_composed_of_that(kind: str, key: bytes) -> None:
    keys = make_keys(kind, *pack([key]), source="trace x")
    with pytest.raises(DataError, match=r"trace x: key .* is not composed of"):
        storm.fields_tasks_all(keys, 3)


def test_bytes_are_parts_too() -> None:
    assert composite_keys("bytes,int", [["é", 1]]).value(0) == ("é".encode(), Int(1))


def test_types_have_names() -> None:
    assert parts_of("string") == ()
    assert parts_of("string,long") == ("string", "long")
    assert check_kind("int,boolean") == "int,boolean"
    for wrong in ("string,", "string,float", "boolean", "string, long"):
        with pytest.raises(UsageError, match="no such type of keys"):
            check_kind(wrong)
