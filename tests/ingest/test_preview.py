"""The dry run of an ingest: the tuples that it would make."""

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgroup.ingest import preview as preview_module
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing import lines
from streamgroup.ingest.parsing.delimited import DelimitedReader
from streamgroup.ingest.preview import Preview, iso, preview
from streamgroup.ingest.readers.protocol import Parsed


def seen(*paths: Path, reader: str = "csv", **options: Any) -> Preview:
    return preview(make_options(reader=reader, inputs=tuple(map(str, paths)), output="unused", **options))


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_709_294_400_500_000, "2024-03-01T12:00:00.5Z"),
        (1_709_294_400_000_000, "2024-03-01T12:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (10**18, "33658-09-27T01:46:40Z"),
    ],
)
def test_times_as_text(stamp: int, text: str) -> None:
    assert iso(stamp) == text


def test_what_was_found(tmp_path: Path) -> None:
    content = b"\ntime;key;p;w\n1;a;2;3\nx;b;1;1\n\n"
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(content))
    found = seen(tmp_path / "x.csv.gz", delimiter=";", value="p", weight="4")
    assert (found.compression, found.delimiter, found.header, found.time_format) == ("gzip", ";", 2, "s")
    assert (found.time, found.key, found.cost, found.value, found.weight) == ("time", "key", None, "p", "w")
    assert found.tuples == [(1_000_000, "a", None, 2.0, 3.0)]
    assert found.rejects == [(str(tmp_path / "x.csv.gz"), 4, "time cannot be read", "x;b;1;1")]
    assert (found.rows_read, found.rows_rejected, found.filtered) == (5, 1, {"blank": 2, "header": 1})
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("x", b"1 a\n")
    (tmp_path / "x.zip").write_bytes(target.getvalue())
    blanks = seen(tmp_path / "x.zip", reader="text")
    assert (blanks.compression, blanks.delimiter, blanks.header) == ("zip", "runs of blanks", 0)


def test_splits_and_inputs_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SPLIT_BYTES", 40)
    for name in "ab":
        (tmp_path / name).write_text("time,key\n" + "1,k\nx,y\n" * 8)
    found = seen(tmp_path / "a", tmp_path / "b")
    assert len(found.tuples) == 10
    assert [(Path(file).name, line) for file, line, _, _ in found.rejects[-4:]] == [
        ("a", 15), ("a", 17), ("b", 3), ("b", 5)
    ]  # fmt: skip
    few = seen(tmp_path / "a", tmp_path / "b", limit=5)
    assert (few.rows_read, len(few.tuples), few.rows_rejected) == (5, 2, 2)


def test_rejects_behind_the_tuples_are_found_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 100)
    (tmp_path / "a").write_text("time,key\n" + "1,k\n" * 100)
    (tmp_path / "b").write_text("time,key\n" + "1,k\n" * 100 + "x,y\n" * 100)
    both = (tmp_path / "a", tmp_path / "b")
    found = seen(*both)
    assert len(found.tuples) == 10
    assert [(Path(file).name, line) for file, line, _, _ in found.rejects] == [("b", line) for line in range(102, 112)]
    assert found.rows_read < 302
    monkeypatch.setattr(preview_module, "_BYTES", 200)
    three_blocks = seen(*both)
    assert (three_blocks.rows_read, three_blocks.rejects) == (73, [])
    monkeypatch.setattr(preview_module, "_BYTES", 1 << 20)
    monkeypatch.setattr(preview_module, "_SECONDS", 0)
    one_block = seen(*both)
    assert (one_block.rows_read, len(one_block.tuples)) == (23, 10)


def test_rows_of_several_tuples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text("time,key,n\n1,a,0\n2,b,7\n3,c,1000000000\n4,d,-1\n")
    plain = DelimitedReader.parse

    def repeated(self: Any, *arguments: Any) -> Parsed:
        parsed = plain(self, *arguments)
        return parsed._replace(value=None, repeat=np.array([int(text) for text in parsed.value.to_pylist()]))

    with monkeypatch.context() as patch:
        patch.setattr(DelimitedReader, "parse", repeated)
        found = seen(path, value="n")
    assert [row.key for row in found.tuples] == ["b"] * 7 + ["c"] * 3
    assert (found.rows_read, found.filtered) == (5, {"header": 1, "count is 0": 1})
    assert [reject.reason for reject in found.rejects] == ["count is negative"]

    def listed(self: Any, *arguments: Any) -> Parsed:
        parsed = plain(self, *arguments)
        return parsed._replace(key=pa.array([[key, b"x"] for key in parsed.key.to_pylist()], pa.list_(pa.binary())))

    monkeypatch.setattr(DelimitedReader, "parse", listed)
    assert [row.key for row in seen(path).tuples] == ["a", "x", "b", "x", "c", "x", "d", "x"]
