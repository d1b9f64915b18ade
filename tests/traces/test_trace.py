"""Opening: traces of our writer, traces made by hand in every permitted form, all ways to be unsound."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.traces.hash_and_show_keys import hash_key
from streamgroup.traces.trace import open_trace

Make = Callable[..., Path]


def _all(root: Path, *columns: str, start: int = 0) -> dict[str, list[Any]]:
    batches = list(open_trace(root).batches(columns or ("timestamp", "key_id"), start))
    names = columns or ("timestamp", "key_id")
    return {name: np.concatenate([getattr(b, name) for b in batches]).tolist() for name in names}


def test_a_minimal_trace_made_by_hand(by_hand: Make) -> None:
    trace = open_trace(by_hand())
    assert (trace.name, trace.tuples, trace.keys) == ("hand", 4, 2)
    assert (trace.first_timestamp, trace.last_timestamp, trace.p1) == (-5, 7, 0.75)
    assert not trace.has_cost
    assert trace.total_cost_ns is None
    dictionary = trace.dictionary()
    assert dictionary.count.tolist() == [1, 3]
    assert [(int(lo), int(hi)) for lo, hi in zip(dictionary.hash_lo, dictionary.hash_hi, strict=True)] == [
        hash_key(b"a"),
        hash_key(b"b"),
    ]
    assert trace.key_texts([1, 0]) == ["b", "a"]
    assert len(trace.fingerprint()) == 64


def test_what_is_handed_out_has_one_form(by_hand: Make, by_writer: Make) -> None:
    hand = by_hand(
        {"timestamp": [1, 2], "key_id": pa.array([0, 1], pa.int64()), "cost": [1.0, 2.0]},
        {"key_id": [0, 1], "key": ["a", "b"], "count": [1, 1]},
    )
    ours = by_writer([(1, b"a"), (2, b"b")], cost=[1.0, 2.0])
    for root in (hand, ours):
        trace = open_trace(root)
        for batch in trace.batches(("timestamp", "key_id", "cost"), start=1):
            assert batch.offset == 1
            for array, kind in ((batch.timestamp, "i8"), (batch.key_id, "u4"), (batch.cost, "f4")):
                assert array is not None
                assert array.dtype == kind
                assert array.flags.c_contiguous
                assert array.flags.aligned
                assert not array.flags.writeable
        assert not any(array.flags.writeable for array in trace.dictionary())
        (only,) = trace.batches(("cost",))
        assert only.timestamp is None
        assert only.key_id is None
    with pytest.raises(ValueError, match="no columns price"):
        open_trace(hand).batches(("price",))


@pytest.mark.parametrize("kind", ["uint32", "int32", "int64", "uint64", "uint8"])
def test_key_ids_of_any_integer_type(by_hand: Make, kind: str) -> None:
    root = by_hand({"timestamp": [-5, 0, 0, 7], "key_id": np.array([1, 0, 1, 1], kind)})
    assert _all(root)["key_id"] == [1, 0, 1, 1]


@pytest.mark.parametrize(("unit", "factor"), [("ns", 1000), ("us", 1), ("ms", None), ("s", None)])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_timestamps_of_any_unit_are_instants(by_hand: Make, unit: str, factor: int | None, zone: str | None) -> None:
    stamps = [-1_500_000, 0, 0, 7_000_000] if factor else [-2_000_000, 0, 0, 7_000_000]
    per_unit = {"ns": 1000, "us": 1, "ms": 1 / 1000, "s": 1 / 1_000_000}[unit]
    values = pa.array([int(stamp * per_unit) for stamp in stamps], pa.int64()).cast(pa.timestamp(unit, zone))
    root = by_hand({"timestamp": values, "key_id": [1, 0, 1, 1]})
    assert _all(root)["timestamp"] == stamps


def test_nanoseconds_are_floored(by_hand: Make) -> None:
    values = pa.array([-1, 0, 999, 1000]).cast(pa.timestamp("ns"))
    assert _all(by_hand({"timestamp": values, "key_id": [1, 0, 1, 1]}))["timestamp"] == [-1, 0, 0, 1]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_keys_of_any_text_type_in_any_row_order(by_hand: Make, kind: pa.DataType) -> None:
    keys = {"key_id": [1, 0], "key": pa.array([b"b", None], pa.binary()).cast(kind), "count": [3, 1]}
    trace = open_trace(by_hand(keys=keys))
    assert trace.key_bytes([0, 1]) == [None, b"b"]
    assert trace.key_bytes([1, 0, 1]) == [b"b", None, b"b"]
    with pytest.raises(KeyError, match="1 of 2 ids"):
        trace.key_bytes([0, trace.keys])
    assert trace.dictionary().count.tolist() == [1, 3]
    assert int(trace.dictionary().hash_lo[0]) == hash_key(None)[0]
    assert list(trace.all_keys()) == [None, b"b"]


def test_dictionary_encoded_columns_are_plain_ones(by_hand: Make) -> None:
    keys = {"key_id": [0, 1], "key": pa.array(["a", "b"]).dictionary_encode(), "count": [1, 3]}
    tuples = {"timestamp": [-5, 0, 0, 7], "key_id": pa.array([1, 0, 1, 1]).dictionary_encode()}
    root = by_hand(tuples, keys)
    assert open_trace(root).key_texts([0, 1]) == ["a", "b"]
    assert _all(root)["key_id"] == [1, 0, 1, 1]


def test_parts_go_by_name_and_start_is_any_place(by_hand: Make) -> None:
    root = by_hand({"timestamp": [5, 6], "key_id": [0, 1]}, {"key_id": [0, 1], "key": ["a", "b"], "count": [3, 2]})
    pq.write_table(
        pa.table({"timestamp": [7, 8, 9], "key_id": [0, 1, 0]}),
        root / "tuples" / "x2.parquet",
        row_group_size=1,
    )
    for start in range(6):
        got = [int(x) for batch in open_trace(root).batches(start=start) for x in batch.timestamp]
        assert got == [5, 6, 7, 8, 9][start:]


def test_large_row_groups_are_cut_and_small_ones_joined(by_hand: Make) -> None:
    rows = 2_200_000
    stamps = np.arange(rows)
    root = by_hand(
        {"timestamp": stamps, "key_id": np.zeros(rows, np.uint32)},
        {"key_id": [0], "key": ["a"], "count": [rows]},
    )
    pq.write_table(pq.read_table(root / "tuples"), root / "tuples" / "x.parquet", row_group_size=rows)
    sizes = [len(batch.timestamp) for batch in open_trace(root).batches()]
    assert sizes == [1 << 20, 1 << 20, rows - (2 << 20)]
    pq.write_table(pq.read_table(root / "tuples"), root / "tuples" / "x.parquet", row_group_size=100_000)
    batches = list(open_trace(root).batches(start=1_234_567))
    assert max(len(batch.timestamp) for batch in batches) <= 1 << 20
    assert len(batches) == 2
    assert np.array_equal(np.concatenate([batch.timestamp for batch in batches]), stamps[1_234_567:])


def test_an_empty_trace_opens(by_hand: Make, by_writer: Make) -> None:
    none = pa.table({"timestamp": pa.array([], pa.int64()), "key_id": pa.array([], pa.uint32())})
    keys = pa.table(
        {
            "key_id": pa.array([], pa.uint32()),
            "key": pa.array([], pa.string()),
            "count": pa.array([], pa.uint64()),
        }
    )
    for root in (by_hand(none, keys), by_writer([])):
        trace = open_trace(root)
        assert (trace.tuples, trace.keys, trace.first_timestamp, trace.p1) == (0, 0, None, None)
        assert list(trace.batches()) == []
        assert trace.fingerprint() == open_trace(by_writer([], name=f"{root.name}2")).manifest.fingerprint


def test_costs_are_summed_on_opening(by_hand: Make) -> None:
    root = by_hand({"timestamp": [-5, 0, 0, 7], "key_id": [1, 0, 1, 1], "cost": [0.5, 1.0, 2.0, 0.0625]})
    trace = open_trace(root)
    assert trace.has_cost
    assert trace.total_cost_ns == 3562
    assert trace.manifest.total_cost_ns is None


@pytest.mark.parametrize(
    ("tuples", "words"),
    [
        ({"timestamp": [1, 3, 2, 4], "key_id": [1, 0, 1, 1]}, "tuple 2: timestamp 2 is earlier"),
        ({"timestamp": [1, 2, 3, 4], "key_id": [1, 0, 1, 2]}, "tuple 3: key_id 2 is not in the dictionary"),
        ({"timestamp": [1, 2, 3, 4], "key_id": [1, 0, 1, -1]}, "tuple 3: key_id -1 is not between"),
        ({"timestamp": [1, 2, 3, 4], "key_id": [1, 0, 1, 1 << 32]}, "tuple 3: key_id 4294967296"),
        ({"timestamp": [1, 2, 3, 4], "key_id": [1, 0, 0, 1]}, "key_id 0 has count 1, but 2 tuples"),
        ({"timestamp": [1, None, 3, 4], "key_id": [1, 0, 1, 1]}, "tuple 1 has no timestamp"),
        ({"timestamp": [1, 2, 3, 4], "key_id": [1, 0, None, 1]}, "tuple 2 has no key_id"),
        ({"timestamp": [1.0, 2.0, 3.0, 4.0], "key_id": [1, 0, 1, 1]}, "column timestamp is double"),
        ({"timestamp": [1, 2, 3, 4], "key_id": ["1", "0", "1", "1"]}, "column key_id is string"),
        ({"timestamp": [1, 2, 3, 4], "key": [1, 0, 1, 1]}, "no column key_id"),
        ({"time": [1, 2, 3, 4], "key_id": [1, 0, 1, 1]}, "no column timestamp"),
        ({"timestamp": [1, 2, 3, 4], "key_id": [1, 0, 1, 1], "cost": ["1"] * 4}, "column cost is string"),
        (
            {"timestamp": [1, 2, 3, 4], "key_id": [1, 0, 1, 1], "cost": [1.0, -1, 1, -2]},
            r"tuple 1: cost -1.0.*2 such",
        ),
        (
            {"timestamp": [1, 2, 3, 4], "key_id": [1, 0, 1, 1], "cost": [1, 1, float("nan"), 1]},
            "tuple 2: cost nan",
        ),
        ({"timestamp": [1, 2, 3, 4], "key_id": [1, 0, 1, 1], "cost": [1, 1, 1, 1e300]}, "tuple 3: cost inf"),
        (
            {"timestamp": [1, 2, 3, 4], "key_id": [1, 0, 1, 1], "cost": [1.0, None, 1, 1]},
            "tuple 1 has no cost",
        ),
    ],
)
def test_unsound_tuples_are_refused_by_row(by_hand: Make, tuples: dict[str, Any], words: str) -> None:
    root = by_hand(tuples)
    with pytest.raises(DataError, match=words) as caught:
        open_trace(root)
    assert str(root) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"key_id": [0, 2], "key": ["a", "b"], "count": [1, 3]}, "no key_id 1"),
        ({"key_id": [1, 1], "key": ["a", "b"], "count": [1, 3]}, "no key_id 0"),
        ({"key_id": [0, 0], "key": ["a", "b"], "count": [1, 3]}, "key_id 0 twice"),
        ({"key_id": [0, 1], "key": ["b", "b"], "count": [1, 3]}, "'b' stands there twice"),
        ({"key_id": [0, 1], "key": ["a", "b"], "count": [1, -3]}, "count -3 is negative"),
        ({"key_id": [0, 1], "key": ["a", "b"], "count": [1, None]}, "no count"),
        ({"key_id": [0, 1], "key": ["a", "b"]}, "no column count"),
        ({"key_id": [0, 1], "key": [7, 8], "count": [1, 3]}, "column key is int64"),
        ({"key_id": [0, 1], "key": ["a", "b"], "count": [1, 3], "hash_lo": [1, 2]}, "without the other"),
    ],
)
def test_an_unsound_dictionary_is_refused(by_hand: Make, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        open_trace(by_hand(keys=keys))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[1]", "no format_version"),
        ("{}", "no format_version"),
        ('{"format_version": 2}', "format_version 2 is not known"),
        ('{"format_version": true}', "format_version True is not known"),
        ('{"format_version": 1, "tuples": -1}', "tuples: "),
        ('{"format_version": 1, "tuples": 5}', "says tuples 5, the files hold 4"),
        ('{"format_version": 1, "first_timestamp": 5}', "says first_timestamp 5, the files hold -5"),
        ('{"format_version": 1, "total_cost_ns": 5}', "says total_cost_ns 5"),
    ],
)
def test_a_manifest_that_is_broken_or_untrue(by_hand: Make, text: str, words: str) -> None:
    root = by_hand()
    (root / "trace.json").write_text(text)
    with pytest.raises(DataError, match=words):
        open_trace(root)


def test_what_is_not_a_trace(by_hand: Make, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        open_trace(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a directory"):
        open_trace(tmp_path / "file")
    root = by_hand()
    (root / "trace.json").unlink()
    with pytest.raises(DataError, match=r"no trace\.json"):
        open_trace(root)
    (root / "trace.json").write_text('{"format_version": 1}')
    (root / "keys" / "y.parquet").rename(root / "keys" / "_y.parquet")
    with pytest.raises(DataError, match="no keys/"):
        open_trace(root)


def test_a_cut_or_damaged_file_is_named(by_writer: Make) -> None:
    root = by_writer([(i, b"k%d" % (i % 9)) for i in range(5000)])
    path = root / "tuples" / "part-00000.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"tuples/part-00000\.parquet: not a whole Parquet file"):
        open_trace(root)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="part-00000"):
        open_trace(root)
    path.write_bytes(whole[:4] + bytes(60) + whole[64:])
    trace = open_trace(root)
    with pytest.raises(DataError, match="part-00000"):
        list(trace.batches())


def test_a_manifest_of_ours_is_believed_only_if_the_footers_agree(by_writer: Make) -> None:
    root = by_writer([(1, b"a"), (2, b"b"), (3, b"a")])
    assert open_trace(root).tuples == 3
    said = json.loads((root / "trace.json").read_text())
    for name, value in (("tuples", 4), ("keys", 1)):
        (root / "trace.json").write_text(json.dumps(said | {name: value}))
        with pytest.raises(DataError, match=f"says {name} {value}") as caught:
            open_trace(root)
        assert "streamgroup validate" in str(caught.value.hint)
    (root / "trace.json").write_text(json.dumps(said | {"total_cost_ns": 5}))
    with pytest.raises(DataError, match="total_cost_ns"):
        open_trace(root)


def test_parts_must_have_the_same_columns(by_hand: Make) -> None:
    root = by_hand()
    pq.write_table(pa.table({"timestamp": [8], "key_id": [0], "cost": [1.0]}), root / "tuples" / "z.parquet")
    with pytest.raises(DataError, match=r"z\.parquet has timestamp, key_id, cost"):
        open_trace(root)
