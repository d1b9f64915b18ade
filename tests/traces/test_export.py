"""Exports with keys that break naive writers, read back by parsers that are not ours."""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, EnvironmentFault, UsageError
from streamgroup.traces import export as export_module
from streamgroup.traces.export import export
from streamgroup.traces.trace import Trace, open_trace

Make = Callable[..., Path]

NASTY = [
    b"a,b",
    b'say "hi"',
    b"two\nlines",
    b"c\rr",
    b"\r\n",
    "emoji \U0001f600".encode(),
    b"nul\0nul",
    b"",
    None,
    b"\xff\xfe",
    b" spaced ",
    b"x" * 1_000_000,
    b"007",
    b"7",
    b'"',
    b"tab\there",
]
ROWS = [(i * 1_500_000 - 3_000_000, NASTY[i % len(NASTY)]) for i in range(3 * len(NASTY))]
COST = [i / 7 for i in range(len(ROWS))]


@pytest.fixture
def nasty(by_writer: Make) -> Trace:
    return open_trace(by_writer(ROWS, cost=COST))


def _export(trace: Trace, to: str) -> bytes:
    file = io.BytesIO()
    assert export(trace, to, file) == trace.tuples
    return file.getvalue()


@pytest.fixture
def nasty_text(by_writer: Make) -> Trace:
    rows = [(stamp, key) for stamp, key in ROWS if key != b"\xff\xfe"]
    return open_trace(by_writer(rows, cost=COST[: len(rows)]))


def _texts() -> list[tuple[int, str | None]]:
    return [(stamp, None if key is None else key.decode()) for stamp, key in ROWS if key != b"\xff\xfe"]


@pytest.mark.parametrize("piece", [1, 1_500_000, 32 << 20])
def test_csv(nasty: Trace, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_module, "_PIECE_BYTES", piece)
    csv.field_size_limit(1 << 21)
    text = _export(nasty, "csv").decode("latin-1")  # one character a byte
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0] == ["timestamp", "key", "cost"]
    assert [int(row[0]) for row in rows[1:]] == [stamp for stamp, _ in ROWS]
    assert [row[1].encode("latin-1") for row in rows[1:]] == [key or b"" for _, key in ROWS]
    assert [float(row[2]) for row in rows[1:]] == pytest.approx(COST)
    # The null key is a field without quotes, the empty key one with them.
    null, empty = (next(stamp for stamp, key in ROWS if key == wanted) for wanted in (None, b""))
    assert f"\n{null},,".encode() in text.encode()
    assert f'\n{empty},"",'.encode() in text.encode()


def test_jsonl(nasty_text: Trace) -> None:
    rows = [json.loads(line) for line in _export(nasty_text, "jsonl").decode().split("\n")[:-1]]
    assert [(row["timestamp"], row["key"]) for row in rows] == _texts()
    assert [row["cost"] for row in rows] == pytest.approx(COST[: len(rows)])


def test_parquet(nasty_text: Trace) -> None:
    table = pq.read_table(io.BytesIO(_export(nasty_text, "parquet")))
    assert str(table.schema.field("timestamp").type) == "timestamp[us, tz=UTC]"
    assert table.column_names == ["timestamp", "key", "cost"]
    stamps = table.column("timestamp").cast("int64").to_pylist()
    assert list(zip(stamps, table.column("key").to_pylist(), strict=True)) == _texts()
    assert table.column("cost").to_pylist() == pytest.approx(COST[: len(stamps)])


@pytest.mark.parametrize("to", ["jsonl", "parquet"])
def test_keys_that_are_not_utf8_are_refused(by_writer: Make, tmp_path: Path, to: str) -> None:
    # With replacement characters the two would become one.
    trace = open_trace(by_writer([(1, b"\xff"), (2, b"\xfe"), (3, b"a"), (4, None)]))
    with pytest.raises(DataError, match=f"^2 keys are not UTF-8, which {to} cannot hold") as caught:
        export(trace, to, tmp_path / "out")
    assert caught.value.hint == "export to csv keeps the bytes"
    assert not (tmp_path / "out").exists()


def test_slb_floors_seconds_and_keeps_bytes(by_writer: Make) -> None:
    rows = [(-1, b"a b"), (0, b""), (1_999_999, b"\xff"), (2_000_000, "中".encode())]
    got = _export(open_trace(by_writer(rows)), "slb")
    assert got == b"-1\ta b\n0\t\n1\t\xff\n2\t" + "中".encode() + b"\n"


@pytest.mark.parametrize("key", [None, b"two\nlines", b"c\rr", b"tab\there"])
def test_slb_refuses_what_it_cannot_hold(by_writer: Make, tmp_path: Path, key: bytes | None) -> None:
    trace = open_trace(by_writer([(1, b"a"), (2, key)]))
    with pytest.raises(DataError, match="slb cannot hold the"):
        export(trace, "slb", tmp_path / "out.slb")
    assert [path.name for path in tmp_path.iterdir()] == ["ours.trace"]


def test_a_file_appears_whole_or_not_at_all(by_writer: Make, tmp_path: Path) -> None:
    trace = open_trace(by_writer([(1, b"a"), (2, b"b")]))
    out = tmp_path / "new" / "out.csv"
    assert export(trace, "csv", out) == 2
    assert out.read_bytes() == b"timestamp,key\n1,a\n2,b\n"
    with pytest.raises(UsageError, match="exists already"):
        export(trace, "csv", out)
    export(trace, "jsonl", out, overwrite=True)
    assert out.read_bytes() == b'{"timestamp":1,"key":"a"}\n{"timestamp":2,"key":"b"}\n'
    assert [path.name for path in out.parent.iterdir()] == ["out.csv"]
    with pytest.raises(UsageError, match="is a directory"):
        export(trace, "csv", tmp_path, overwrite=True)
    with pytest.raises(EnvironmentFault, match="cannot write"):
        export(trace, "csv", out / "below")
    with pytest.raises(UsageError) as caught:
        export(trace, "cvs", tmp_path / "x")
    assert caught.value.hint == "did you mean 'csv'?"


def test_the_trace_itself_is_never_written_to(by_writer: Make, tmp_path: Path) -> None:
    root = by_writer([(1, b"a")])
    (tmp_path / "alias").symlink_to(root)
    (tmp_path / "link.csv").symlink_to(root / "tuples" / "part-00000.parquet")
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    for out in ("ours.trace/tuples/part-00000.parquet", "alias/trace.json", "ours.trace/new.csv", "link.csv"):
        with pytest.raises(UsageError, match="inside the trace itself"):
            export(open_trace(root), "parquet", tmp_path / out, overwrite=True)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_came_to_be_meanwhile_stays(
    by_writer: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    trace = open_trace(by_writer([(1, b"a")]))
    out = tmp_path / "new" / "out.csv"

    def refuse(*_: object) -> None:
        raise PermissionError(1, "no links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    assert export(trace, "csv", out) == 1
    assert [path.name for path in out.parent.iterdir()] == ["out.csv"]
    write = export_module.FORMATS["csv"]

    def slow(source: Trace, file: BinaryIO) -> int:
        rows = write(source, file)
        (tmp_path / "other.csv").write_text("theirs")
        return rows

    monkeypatch.setitem(export_module.FORMATS, "csv", slow)
    with pytest.raises(UsageError, match="exists already"):
        export(trace, "csv", tmp_path / "other.csv")
    assert (tmp_path / "other.csv").read_text() == "theirs"
    assert export(trace, "csv", tmp_path / "other.csv", overwrite=True) == 1
    assert (tmp_path / "other.csv").read_bytes() == out.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "other.csv", "ours.trace"]


def test_a_failed_export_leaves_no_directory_it_made(by_writer: Make, tmp_path: Path) -> None:
    trace = open_trace(by_writer([(1, None)]))
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "deep" / "er", tmp_path / "there" / "deeper"):
        with pytest.raises(DataError):
            export(trace, "slb", folder / "out.slb")
    assert sorted(path.name for path in tmp_path.rglob("*") if "ours.trace" not in str(path)) == ["there"]


def test_what_is_no_file_is_never_replaced(by_writer: Make, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="is not a file"):
        export(open_trace(by_writer([(1, b"a")])), "csv", pipe, overwrite=True)
    assert pipe.is_fifo()


@pytest.mark.parametrize(("to", "expected"), [("csv", b"timestamp,key\n"), ("jsonl", b""), ("slb", b"")])
def test_an_empty_trace(by_writer: Make, to: str, expected: bytes) -> None:
    assert _export(open_trace(by_writer([])), to) == expected


def test_values_that_json_cannot_hold(by_hand: Make) -> None:
    tuples = {"timestamp": [1, 2, 3, 4], "key_id": [0, 1, 1, 1], "value": [1.5, float("nan"), float("inf"), 0.1]}
    trace = open_trace(by_hand(tuples))
    rows = [json.loads(line)["value"] for line in _export(trace, "jsonl").splitlines()]
    assert rows == [1.5, None, None, 0.1]
    assert _export(trace, "csv") == b"timestamp,key,value\n1,a,1.5\n2,b,\n3,b,\n4,b,0.1\n"
