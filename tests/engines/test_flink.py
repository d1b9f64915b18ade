"""Flink's rules against what Flink did, and vectorised against themselves."""

from typing import Any

import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines import flink
from streamgroup.engines.hashes.java_hash_and_random import hash_code
from streamgroup.engines.keys.typed_key_values import Int, Long
from tests.engines.recorded_vectors import check_all, keys_of, rows, typed


def test_default_max_parallelism() -> None:
    for row in rows("flink-default-maxparallelism"):
        assert flink.default_max_parallelism(row["parallelism"]) == row["expected"], row


def test_keyby() -> None:
    for row in rows("flink-keyby"):
        key, n, most = typed(row["key"], row["key_type"]), row["n"], row["max_parallelism"]
        assert flink.resolved_max_parallelism(n, most) == row["resolved_max_parallelism"]
        assert flink.key_group(hash_code(key), row["resolved_max_parallelism"]) == row["key_group"], row
        assert flink.keyby_subtask(key, n, most) == row["expected"], row


def test_keyby_in_a_job() -> None:
    for row in rows("flink-keyby-cluster"):
        found = flink.keyby_subtask(typed(row["key"], row["key_type"]), row["n"], row["max_parallelism"])
        assert found == row["expected"], row


@pytest.mark.parametrize("name", ["flink-sql-rowkey", "flink-sql-rowkey-multi"])
def test_sql(name: str) -> None:
    for row in rows(name):
        key = typed(row["key"], row["key_type"])
        assert flink.row_hash(key) == row.get("row_hash", flink.row_hash(key)), row
        assert flink.sql_subtask(key, row["n"]) == row["expected"], row


SIZES = (1, 2, 3, 8, 50, 100, 128)
TYPED = ("string", "int", "long")


@pytest.mark.parametrize("most", [None, 128, 720, 32768])
def test_keyby_vectorised(most: int | None) -> None:
    check_all(
        "flink-keyby",
        lambda key, n: flink.keyby_subtask(key, n, most),
        lambda keys, n: flink.keyby_subtasks_all(keys, n, most),
        null=False, kinds=TYPED, sizes=SIZES,
    )  # fmt: skip


def test_sql_vectorised() -> None:
    check_all("flink-sql-rowkey", flink.sql_subtask, flink.sql_subtasks_all, null=True, kinds=TYPED, sizes=SIZES)


@pytest.mark.parametrize(
    ("n", "most", "groups", "fewest", "largest", "ratio"),
    [(170, None, 256, 1, 2, 1.328), (127, None, 256, 2, 3, 1.488), (128, None, 256, 2, 2, 1.0),
     (85, None, 128, 1, 2, 1.328), (300, None, 512, 1, 2, 1.172), (100, 128, 128, 1, 2, 1.5625)],
)  # fmt: skip
def test_key_groups_of_subtasks(n: int, most: Any, groups: int, fewest: int, largest: int, ratio: float) -> None:
    found = flink.groups_of_subtasks(n, most)
    assert (found.sum(), found.min(), found.max(), len(found)) == (groups, fewest, largest, n)
    assert found.max() / found.mean() == pytest.approx(ratio, abs=0.001)


def test_few_keys_leave_subtasks_idle() -> None:
    assert [flink.keyby_subtask(key, 4) for key in "abcd"] == [2, 0, 1, 2]
    assert len({flink.keyby_subtask(Int(key), 128) for key in range(128)}) == 79


def test_a_tuple_of_one_is_its_element() -> None:
    assert flink.keyby_subtask(("a",), 100) == flink.keyby_subtask("a", 100)
    assert flink.sql_subtask(("a",), 100) == flink.sql_subtask("a", 100)


def test_int_and_bigint_agree_from_zero_on() -> None:
    assert flink.row_hash(Int(42)) == flink.row_hash(Long(42))
    assert flink.row_hash(Int(-1)) != flink.row_hash(Long(-1))


def test_what_flink_refuses() -> None:
    with pytest.raises(DataError, match="null"):
        flink.keyby_subtask(None, 4)
    with pytest.raises(DataError, match="null"):
        flink.keyby_subtasks_all(keys_of("string", ["a", None]), 4)
    for refused in (flink.keyby_subtask, flink.sql_subtask):
        with pytest.raises(UsageError, match="bytes"):
            refused(b"a", 4)
    for refused_all in (flink.keyby_subtasks_all, flink.sql_subtasks_all):
        with pytest.raises(UsageError, match="bytes"):
            refused_all(keys_of("bytes", [b"a"]), 4)
    with pytest.raises(UsageError, match="less than the parallelism"):
        flink.keyby_subtask("a", 129, 128)
    with pytest.raises(UsageError, match="less than the parallelism"):
        flink.sql_subtask("a", 40_000)
    with pytest.raises(UsageError, match="32768"):
        flink.keyby_subtask("a", 4, 32769)
