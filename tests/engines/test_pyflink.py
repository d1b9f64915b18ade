"""PyFlink's rule against what jobs on Flink did, and vectorised against itself."""

import pickle
from typing import Any

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.engines.flink import key_group, keyby_subtask
from streamgroup.engines.hashes.java_hash_and_random import list_hash
from streamgroup.engines.keys.typed_key_arrays import make_keys, pack
from streamgroup.engines.keys.typed_key_values import Int, Long
from streamgroup.engines.pyflink import pyflink_hash, pyflink_subtask, pyflink_subtasks_all
from tests.engines.recorded_vectors import check_all, keys_of, rows, typed

BYTES = [b"", b"\xff", b"\x80\x81\x82", b"abcd", b"\0" * 9, bytes(range(256)), b"\xfe" * 255, b"a" * 70_000]
# Where a pickle takes another form: by the bytes of a number, by those of a text, and by those of a frame.
EDGES = [2**bits + more for bits in (7, 8, 15, 16, 23, 31, 32, 39, 40, 47, 48, 55, 56, 62) for more in (-2, -1, 0, 1)]
SIZES = (1, 2, 3, 8, 50, 100, 128)


def key_of(row: dict[str, Any]) -> Any:
    return bytes.fromhex(row["key"]) if row["key_type"] == "bytes" else typed(row["key"], row["key_type"])


def test_it_was_recorded_in_jobs_of_many_sizes_with_keys_of_all_types() -> None:
    found = rows("pyflink-keyby")
    assert len(found) > 5000
    assert {row["n"] for row in found} == {1, 2, 3, 4, 5, 7, 16, 33, 64}
    assert {(row["n"], row["mode"]) for row in found} >= {(4, "process"), (4, "thread"), (64, "thread")}
    assert {row["max_parallelism"] for row in found} == {None, 3, 100, 720, 1000, 32768}
    assert {(str(row["key_type"]), row["declared"]) for row in found} == {
        *((kind, declared) for kind in ("string", "long", "['string', 'long']") for declared in (False, True)),
        ("int", True), ("bytes", False),
    }  # fmt: skip


def test_a_key_goes_where_jobs_sent_it() -> None:
    for row in rows("pyflink-keyby"):
        how: dict[str, Any] = {"declared": row["declared"], "mode": row["mode"]}
        assert pyflink_subtask(key_of(row), row["n"], row["max_parallelism"], **how) == row["expected"], row


@pytest.mark.parametrize("mode", ["process", "thread"])
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("kind", ["string", "int", "long", "bytes", "string,long"])
def test_all_keys_at_once_go_there_too(kind: str, declared: bool, mode: Any) -> None:
    jobs: dict[tuple[int, int | None], list[tuple[Any, int]]] = {}
    for row in (row for row in rows("pyflink-keyby") if row["mode"] == mode):
        # A pickle does not know of ints.
        recorded = "long" if kind == "int" and not declared else kind
        if row["key_type"] == (kind.split(",") if "," in kind else recorded) and row["declared"] == declared:
            key = key_of(row)
            if kind != "int" or -(2**31) <= key < 2**31:
                jobs.setdefault((row["n"], row["max_parallelism"]), []).append((key, row["expected"]))
    assert bool(jobs) is not (kind == "bytes" and declared)
    for (n, most), expected in jobs.items():
        keys = keys_of(kind, [key for key, _ in expected]) if "," not in kind else _composite(expected)
        found = pyflink_subtasks_all(keys, n, most, declared=declared, mode=mode)
        assert found.tolist() == [subtask for _, subtask in expected]


def _composite(expected: list[tuple[Any, int]]) -> Any:
    import json

    return make_keys("string,long", *pack(json.dumps(key).encode() for key, _ in expected))


@pytest.mark.parametrize("most", [None, 32768])
@pytest.mark.parametrize(("declared", "mode"), [(False, "process"), (False, "thread"), (True, "process")])
def test_vectorised(declared: bool, mode: Any, most: int | None) -> None:
    check_all(
        "flink-keyby",
        lambda key, n: pyflink_subtask(key, n, most, declared=declared, mode=mode),
        lambda keys, n: pyflink_subtasks_all(keys, n, most, declared=declared, mode=mode),
        null=True, kinds=("string", "int", "long") if declared else ("string", "int", "long", "bytes"), sizes=SIZES,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bytes", BYTES),
        ("string", ["x" * length for length in (254, 255, 256, 65_534, 65_535, 65_536, 65_537)]),
        ("string", ["é" * length for length in (127, 128, 32_767, 32_768)]),
        ("long", [Long(sign * edge) for edge in EDGES for sign in (1, -1)]),
        ("int", [Int(sign * edge) for edge in EDGES if edge < 2**31 for sign in (1, -1)]),
    ],
)
@pytest.mark.parametrize(("mode", "protocol"), [("process", 5), ("thread", 4)])
def test_where_a_pickle_changes_its_form(kind: str, values: list[Any], mode: Any, protocol: int) -> None:
    found = pyflink_subtasks_all(keys_of(kind, values), 32768, mode=mode)
    assert found.tolist() == [pyflink_subtask(value, 32768, mode=mode) for value in values]
    # As Python makes it, with the key hashed as Java hashes an array in a list in a row.
    for value, subtask in zip(values, found.tolist(), strict=True):
        data = pickle.dumps(int(value) if isinstance(value, int) else value, protocol)
        signed = list_hash(byte - 256 if byte > 127 else byte for byte in data)
        assert key_group(list_hash([list_hash([signed])]), 32768) == subtask


def test_it_is_not_where_java_sends_keys() -> None:
    assert [pyflink_subtask(key, 4, declared=True) for key in ("w3", "w10", "w1", "w0")] == [0, 2, 3, 3]
    texts = [f"w{number}" for number in range(500)]
    for declared in (False, True):
        same = sum(pyflink_subtask(text, 4, declared=declared) == keyby_subtask(text, 4) for text in texts)
        assert 80 < same < 170


def test_null_and_tuples() -> None:
    # Null is a field without a value, so that it is not pickled.
    assert pyflink_hash(None) == pyflink_hash(None, declared=True) == 31
    assert pyflink_hash(("a", Long(1)), declared=True) == 62 + 31 * 97 + 1
    assert pyflink_hash(("a",)) != pyflink_hash("a")
    assert pyflink_hash(Int(7)) == pyflink_hash(Long(7))


def test_what_flink_refuses() -> None:
    with pytest.raises(UsageError, match="key_by has no rule for bytes with a type"):
        pyflink_subtask(b"a", 4, declared=True)
    with pytest.raises(UsageError, match="with a type, has no rule for keys of type bytes"):
        pyflink_subtasks_all(keys_of("bytes", [b"a"]), 4, declared=True)
    with pytest.raises(UsageError, match="less than the parallelism"):
        pyflink_subtask("a", 129, 128)
    with pytest.raises(UsageError, match="mode=loopback: unknown"):
        pyflink_subtask("a", 4, mode="loopback")  # type: ignore[arg-type]
