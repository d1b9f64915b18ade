"""Spark: DataFrames, RDDs of the JVM, RDDs of Python; every row that they made, and all keys at once."""

import os
import subprocess
import sys
from typing import Any

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Int, Long
from streamgroup.engines.pyspark_rdd import portable_hash, pyspark_rdd_partition, pyspark_rdd_partition_all
from streamgroup.engines.spark_rdd import spark_rdd_hash, spark_rdd_partition, spark_rdd_partition_all
from streamgroup.engines.spark_sql import spark_sql_hash, spark_sql_partition, spark_sql_partition_all
from tests.engines.recorded_vectors import TEXTS, check_all, keys_of, rows, typed

# Characters of one, two and four bytes, and lengths around whole words of each.
WIDTHS = [
    unit * count for unit in ("a", "é", "ÿ\0", "Ā", "\uffffé", "\U00010000", "a\U0010ffff") for count in range(18)
]
BYTES = [b"", b"\xff", b"\x80\x81\x82", b"abcd", b"\0" * 9, bytes(range(256)), b"\xfe" * 255]
NUMBERS = [0, 1, -1, -2, 2**31, 2**61 - 2, 2**61 - 1, 2**61, -(2**61) + 1, -(2**61), 2**63 - 1, -(2**63), -(2**63) + 1]


def key_of(row: dict[str, Any]) -> Any:
    return typed(row["key"], row["key_type"])


def test_sql_hash() -> None:
    for row in rows("spark-df-hash"):
        assert spark_sql_hash(key_of(row)) == row["expected"], row


@pytest.mark.parametrize("name", ["spark-df-repartition", "spark-df-repartition-multi"])
def test_sql(name: str) -> None:
    for row in rows(name):
        assert spark_sql_partition(key_of(row), row["n"]) == row["expected"], row


def test_sql_vectorised() -> None:
    check_all("spark-df-repartition", spark_sql_partition, spark_sql_partition_all, null=True)


def test_sql_null_leaves_the_hash_as_it_is() -> None:
    assert spark_sql_hash(None) == spark_sql_hash((None, None)) == 42
    assert spark_sql_hash(("a", None)) == spark_sql_hash((None, "a")) == spark_sql_hash("a")
    assert spark_sql_hash(Int(7)) != spark_sql_hash(Long(7))


@pytest.mark.parametrize("name", ["spark-rdd-hashpartitioner", "spark-rdd-hashpartitioner-tuple2"])
def test_rdd(name: str) -> None:
    for row in rows(name):
        assert spark_rdd_partition(key_of(row), row["n"]) == row["expected"], row


def test_rdd_vectorised() -> None:
    kinds = ("string", "int", "long")
    check_all("spark-rdd-hashpartitioner", spark_rdd_partition, spark_rdd_partition_all, null=True, kinds=kinds)


def test_rdd_of_what_it_refuses() -> None:
    for key in (b"a", ("a", b"a"), ("a", "b", "c"), ("a",)):
        with pytest.raises(UsageError):
            spark_rdd_partition(key, 3)
    with pytest.raises(UsageError, match="bytes"):
        spark_rdd_partition_all(keys_of("bytes", [b"a"]), 3)
    # A pair with a null is a pair; a long that fits an int is one within a pair, but not alone.
    assert spark_rdd_hash((None, Long(-1))) == spark_rdd_hash((None, Int(-1)))
    assert spark_rdd_hash(Long(-1)) != spark_rdd_hash(Int(-1))


def test_pyspark_hash() -> None:
    versions = {"siphash24": "3.10", "siphash13": "3.11"}
    for row in rows("pyspark-portable-hash"):
        found = portable_hash(key_of(row), versions[row["str_hash"]], row["pythonhashseed"])
        assert found == row["expected_hash"], row


@pytest.mark.parametrize("name", ["pyspark-rdd", "pyspark-rdd-tuple"])
def test_pyspark(name: str) -> None:
    for row in rows(name):
        assert pyspark_rdd_partition(key_of(row), row["n"]) == row["expected"], row


@pytest.mark.parametrize(("python", "seed"), [("3.10", 0), ("3.11", 42)])
def test_pyspark_vectorised(python: Any, seed: int) -> None:
    def one(key: Any, n: int) -> int:
        return pyspark_rdd_partition(key, n, python, seed)

    def many(keys: Keys, n: int) -> Any:
        return pyspark_rdd_partition_all(keys, n, python, seed)

    check_all("pyspark-portable-hash", one, many, null=True)
    for kind, values in (("string", WIDTHS), ("bytes", BYTES), ("long", [Long(number) for number in NUMBERS])):
        assert many(keys_of(kind, values), 65_536).tolist() == [one(value, 65_536) for value in values]


@pytest.mark.parametrize("seed", [0, 1, 42, 2**32 - 1])
def test_hashes_are_those_of_the_python_that_runs_this(seed: int) -> None:
    keys = ["\udc80x", "\ud83d\ude00", *TEXTS, *WIDTHS, *BYTES, *(Long(number) for number in NUMBERS)]
    code = f"print([hash(key) for key in {[int(key) if isinstance(key, int) else key for key in keys]!a}])"
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert eval(told.stdout) == [portable_hash(key, "3.11", seed) for key in keys]


def test_pyspark_arguments() -> None:
    for python, seed in (("3.9", 0), ("3.11", -1), ("3.11", 2**32)):
        with pytest.raises(UsageError):
            portable_hash("a", python, seed)
    assert portable_hash(None) == 0
    assert portable_hash(Long(-1)) == portable_hash(Int(-2)) == -2
