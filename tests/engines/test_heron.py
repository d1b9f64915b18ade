"""Heron's rule against what its stream manager did, and vectorised against itself."""

from typing import Any

import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines import heron
from streamgroup.engines.keys.typed_key_values import Int, Long
from tests.engines.recorded_vectors import check_all, keys_of, rows, typed

SERIALIZERS = ["java", "kryo3-4", "kryo5"]


def test_fields() -> None:
    for row in rows("heron-fields"):
        found = heron.fields_task(typed(row["key"], row["key_type"]), row["n"], row["serializer"])
        assert found == row["expected"], row


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_vectorised(serializer: Any) -> None:
    check_all(
        "heron-fields",
        lambda key, n: heron.fields_task(key, n, serializer),
        lambda keys, n: heron.fields_tasks_all(keys, n, serializer),
        null=False, kinds=("string", "int", "long"),
    )  # fmt: skip


@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 62, 63, 64, 65, 8190, 8191, 8192, 65_535, 65_536, 1_048_575])
def test_lengths_where_the_form_changes(length: int, serializer: Any) -> None:
    for text in ("x" * length, "é" * length, "\0" * length, "x" * (length - 1) + "😀"):
        found = heron.fields_tasks_all(keys_of("string", [text]), 65_536, serializer)
        assert found.tolist() == [heron.fields_task(text, 65_536, serializer)]


def test_the_order_of_fields_does_not_matter_and_many_overflow() -> None:
    fields = (Int(1), Long(2), *"abcdefghijklmnop")
    assert heron.fields_task(fields, 1000) == heron.fields_task(fields[::-1], 1000)
    total = sum(heron._std_hash(heron.serialized(field)) % 633910111 for field in fields)
    assert total >= 2**31
    wrapped = (total + 2**31) % 2**32 - 2**31
    assert heron.fields_task(fields, 1000) == wrapped % 2**64 % 1000


def test_kryo_5_differs_for_ascii_of_33_to_63_characters_alone() -> None:
    differing = [n for n in range(80) if heron.serialized("x" * n, "kryo5") != heron.serialized("x" * n, "kryo3-4")]
    assert differing == list(range(33, 64))


def test_what_is_not_covered() -> None:
    with pytest.raises(DataError, match="null"):
        heron.fields_task(None, 4)
    with pytest.raises(DataError, match="null"):
        heron.fields_tasks_all(keys_of("string", [None]), 4)
    with pytest.raises(UsageError, match="bytes"):
        heron.fields_task(b"a", 4)
    with pytest.raises(UsageError, match="bytes"):
        heron.fields_tasks_all(keys_of("bytes", [b"a"]), 4)
    for wrong in (
        lambda: heron.fields_task("a", 4, "avro"),
        lambda: heron.fields_tasks_all(keys_of("string", []), 4, "x"),
    ):  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="kryo5"):
            wrong()
