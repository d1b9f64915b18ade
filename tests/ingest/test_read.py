"""What a read task leaves behind: bounded in memory, whole or not at all."""

import gzip
import os
import socket
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.ingest import assemble, lines, read, segments
from streamgroup.ingest.options import make_options
from streamgroup.ingest.readers.protocol import Split
from streamgroup.traces import schema


def test_rejects_are_written_while_the_split_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A split holds no more rejects than `_FLUSH`, however many it has, and a part reads what it takes."""
    monkeypatch.setattr(read, "_FLUSH", 100)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 500)
    source = tmp_path / "x.csv.gz"
    source.write_bytes(gzip.compress(b"time,key\n" + b"".join(b"x%d,%s\n" % (n, b"k" * 2000) for n in range(1050))))
    scratch = segments.Scratch(str(tmp_path / "scratch"))
    sizes: list[int] = []
    write_table = pq.ParquetWriter.write_table

    def watched(writer: Any, table: Any) -> None:
        sizes.append(len(table))
        assert not scratch.rejects(3).exists()
        write_table(writer, table)

    options = make_options(reader="csv", inputs=(str(source),), output="unused")
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", watched)
        stats = read.read_split(options, scratch, Split(3, 0, str(source), 0, None))
    assert sizes == [100] * 10 + [50]
    assert stats.rejected == {"time cannot be read": 1050}
    assert [path.name for path in scratch.rejects(3).parent.iterdir()] == ["00000003.parquet"]
    found = pq.read_table(scratch.rejects(3)).to_pylist()
    assert [row["line"] for row in found] == list(range(2, 1052))
    assert {len(row["text"]) for row in found} == {read.TEXT_BYTES}
    files = [assemble.RejectFile(str(scratch.rejects(3)), "x", 10, 1050)]
    for number, (start, stop) in enumerate([(0, 1050), (150, 151), (99, 101), (1049, 1050)]):
        rows = assemble._write_rejects(str(tmp_path), files, assemble.Cut(number, [(0, start, stop)]))
        table = pq.read_table(tmp_path / schema.part_name(number))
        assert (rows, table.column("line").to_pylist()) == (stop - start, list(range(12 + start, 12 + stop)))


def test_two_machines_do_not_write_to_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 17)
    path = tmp_path / "x"
    assert len({segments.temporary_name(path) for _ in range(100)}) == 100
    monkeypatch.setattr(socket, "gethostname", lambda: "worker-3")
    name = segments.temporary_name(path)
    assert name.parent == tmp_path
    assert name.name.startswith(".x.worker-3.17.")


def test_a_file_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        segments.whole_file(tmp_path / "x", fail)
    assert list(tmp_path.iterdir()) == []


def test_files_that_options_name_are_found_from_other_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stop").write_text("the\n")
    (tmp_path / "classes").write_text("Carla\tmedia\n")
    options = make_options(
        reader="posg-tweets", inputs=("x",), output="y", stopwords="stop", reader_options={"classes": "classes"}
    )
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        found = read.located(options)
        ours = read.located(options.model_copy(update={"stopwords": "english", "reader_options": {}}))
    assert found.words_to_skip() == {b"the"}
    read.make_reader(found)
    with pytest.raises(UsageError, match="--classes classes: No such file"):
        read.make_reader(options)
    assert (ours.stopwords, ours.reader_options) == ("english", {})
