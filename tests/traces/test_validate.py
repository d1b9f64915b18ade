"""Validation finds each planted fault, all of them at once, and nothing in a sound trace."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.traces.checks.validate import validate
from streamgroup.traces.layout import REJECTS_SCHEMA
from streamgroup.traces.write_trace_files import write_rejects

Make = Callable[..., Path]
ROWS = [(1, b"b"), (2, b"a"), (2, b"b"), (9, None), (9, b"\xff")]


def _found(root: Path) -> list[tuple[str, str]]:
    return [(finding.level, finding.check) for finding in validate(root)]


def _say(root: Path, **facts: Any) -> None:
    path = root / "trace.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


def _replace(root: Path, folder: str, **columns: Any) -> None:
    path = root / folder / "part-00000.parquet"
    table = pq.read_table(path)
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array(values, table.schema.field(name).type))
    pq.write_table(table, path, compression="zstd")


@pytest.fixture
def sound(by_writer: Make) -> Path:
    return by_writer(
        ROWS,
        cost=[1, 2, 3, 4, 5.5],
        rows_read=9,
        rows_kept=5,
        rows_rejected=1,
        rejected={"time": 1},
        rows_filtered=3,
        filtered={"blank": 2, "comment": 1},
        in_order=False,
        out_of_order=2,
    )


def _rejects(root: Path, rows: int) -> None:
    (root / "rejects").mkdir()
    row = {"file": "f", "line": 3, "reason": "time", "text": "x"}
    write_rejects(root / "rejects" / "part-00000.parquet", pa.Table.from_pylist([row] * rows, REJECTS_SCHEMA))


def test_a_sound_trace_has_no_finding(sound: Path) -> None:
    _rejects(sound, 1)
    assert validate(sound) == []


def test_an_empty_trace_is_sound(by_writer: Make) -> None:
    assert validate(by_writer([])) == []


def test_a_trace_made_by_hand_gets_notes_only(by_hand: Make) -> None:
    findings = validate(by_hand(keys={"key_id": [1, 0], "key": ["b", "a"], "count": [3, 1]}))
    assert {finding.level for finding in findings} == {"note"}
    assert {finding.check for finding in findings} == {"names", "compression", "id order"}


@pytest.mark.parametrize(
    ("facts", "check"),
    [
        ({"tuples": 6}, "tuples"),
        ({"keys": 3}, "keys"),
        ({"first_timestamp": 0}, "first_timestamp"),
        ({"last_timestamp": 10}, "last_timestamp"),
        ({"p1": 0.5}, "p1"),
        ({"total_cost_ns": 1}, "total_cost_ns"),
        ({"mean_cost_us": 1.0}, "mean_cost_us"),
        ({"fingerprint": "0" * 64}, "fingerprint"),
        ({"rows_read": 10}, "rows"),
        ({"rejected": {"time": 2}}, "rows"),
        ({"filtered": {}}, "rows"),
        ({"in_order": True}, "in_order"),
        ({"format_version": 7}, "manifest"),
    ],
)
def test_an_untrue_manifest(sound: Path, facts: dict[str, Any], check: str) -> None:
    _rejects(sound, 1)
    _say(sound, **facts)
    assert _found(sound) == [("error", check)]


@pytest.mark.parametrize(
    ("folder", "columns", "checks"),
    [
        ("tuples", {"timestamp": [1, 3, 2, 9, 9]}, {"order", "fingerprint"}),
        ("tuples", {"key_id": [0, 2, 0, 1, 7]}, {"key_id", "counts", "fingerprint"}),
        ("tuples", {"key_id": [0, 2, 2, 1, 3]}, {"counts", "fingerprint"}),
        ("tuples", {"key_id": [0, 0, 0, 1, 3]}, {"counts", "fingerprint", "p1"}),
        ("tuples", {"cost": [1, 2, 3, 4, 6]}, {"total_cost_ns", "mean_cost_us", "fingerprint"}),
        ("tuples", {"cost": [1, 2, 3, 4, -5]}, {"cost", "fingerprint"}),
        ("keys", {"hash_lo": [1, 2, 3, 4]}, {"hashes"}),
        ("keys", {"count": [1, 1, 1, 2]}, {"counts"}),
        ("keys", {"key_id": [0, 1, 2, 4]}, {"keys"}),
        ("keys", {"key": ["b", None, "b", "\ufffd"]}, {"keys", "hashes", "fingerprint"}),
        ("keys", {"key": ["b", None, "a", "?"]}, {"key_bytes"}),
        ("keys", {"key_bytes": [b"b", None, None, b"\xff"]}, {"key_bytes"}),
    ],
)
def test_a_planted_fault(sound: Path, folder: str, columns: dict[str, Any], checks: set[str]) -> None:
    _rejects(sound, 1)
    _replace(sound, folder, **columns)
    assert {check for level, check in _found(sound) if level == "error"} == checks


def test_rejects_must_be_there_and_as_many(sound: Path) -> None:
    assert _found(sound) == [("error", "rejects")]
    _rejects(sound, 2)
    assert _found(sound) == [("error", "rejects")]
    _say(sound, rows_rejected=0, rejected={}, rows_read=8)
    assert _found(sound) == [("error", "rejects")]


def test_all_faults_are_found_and_not_only_the_first(sound: Path) -> None:
    _rejects(sound, 1)
    _say(sound, rows_read=100, p1=0.9)
    _replace(sound, "tuples", timestamp=[5, 4, 5, 4, 9])
    (sound / "keys" / "part-00001.parquet").write_bytes(b"PAR1")
    assert {"rows", "keys"} <= {check for _, check in _found(sound)}
    (sound / "keys" / "part-00001.parquet").unlink()
    findings = validate(sound)
    assert {finding.check for finding in findings} == {"rows", "p1", "order", "first_timestamp", "fingerprint"}
    assert any("(2 such tuples)" in finding.message for finding in findings)


def test_files_that_are_missing_or_cut(sound: Path, tmp_path: Path) -> None:
    _rejects(sound, 1)
    path = sound / "tuples" / "part-00000.parquet"
    path.write_bytes(path.read_bytes()[:-3])
    assert _found(sound) == [("error", "tuples")]
    path.unlink()
    (sound / "trace.json").unlink()
    assert _found(sound) == [("error", "manifest"), ("error", "tuples")]
    with pytest.raises(UsageError):
        validate(tmp_path / "nowhere")


def test_borders_are_noted(by_writer: Make) -> None:
    root = by_writer([(i, b"a") for i in range(10)])
    table = pq.read_table(root / "tuples")
    pq.write_table(table, root / "tuples" / "part-00000.parquet", row_group_size=3)
    assert {check for level, check in _found(root) if level == "note"} == {"row groups", "compression"}
    pq.write_table(table.slice(0, 5), root / "tuples" / "part-00000.parquet", compression="zstd")
    pq.write_table(table.slice(5), root / "tuples" / "part-7.parquet", compression="zstd")
    assert _found(root) == [("note", "parts"), ("note", "names")]


def test_a_key_without_tuples(by_hand: Make) -> None:
    root = by_hand(keys={"key_id": [0, 1, 2], "key": ["a", "b", "c"], "count": [1, 3, 0]})
    errors = [finding.message for finding in validate(root) if finding.level == "error"]
    assert errors == ["key_id 2 has count 0: a key without tuples is no key"]


@pytest.mark.parametrize("folder", ["tuples", "keys"])
def test_files_in_sub_directories_are_noted(sound: Path, folder: str) -> None:
    _rejects(sound, 1)
    (sound / folder / "more" / "still").mkdir(parents=True)
    shutil.copy(sound / folder / "part-00000.parquet", sound / folder / "more" / "still" / "part-00001.parquet")
    assert [(finding.level, finding.message) for finding in validate(sound)] == [
        ("note", f"{folder}/more/still/part-00001.parquet is ignored: no sub-directory is part of a trace")
    ]
