"""What a read task gives, bounded in memory, and what its options need on other machines."""

import gzip
from pathlib import Path

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.ingest import lines, read
from streamgroup.ingest.options import make_options
from streamgroup.ingest.pipeline import read as pipeline_read
from streamgroup.ingest.pipeline.blocks import rows_of
from streamgroup.ingest.readers.protocol import Split


def test_rejects_leave_while_the_split_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task holds no more rejects than a block has, however many the split has."""
    monkeypatch.setattr(pipeline_read, "_REJECTS", 100)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 500)
    source = tmp_path / "x.csv.gz"
    source.write_bytes(gzip.compress(b"time,key\n" + b"".join(b"x%d,%s\n" % (n, b"k" * 2000) for n in range(1050))))
    options = make_options(reader="csv", inputs=(str(source),), output="unused")
    rows = list(rows_of(pipeline_read.read_task(options, [[Split(3, 0, str(source), 0, None)]], 0)))
    assert [row.kind for row in rows] == ["rejects"] * 11 + ["split"]
    assert [(row.segment, row.place) for row in rows[:-1]] == [(3, start) for start in range(0, 1050, 100)]
    stats = pipeline_read.split_of(rows[-1])
    assert (stats.split, stats.rejected, stats.filtered) == (3, {"time cannot be read": 1050}, {"header": 1})
    found = [row.columns() for row in rows[:-1]]
    assert [number for block in found for number in block.column("line").to_pylist()] == list(range(2, 1052))
    assert {len(text) for block in found for text in block.column("text").to_pylist()} == {read.TEXT_BYTES}
    assert stats.examples["time cannot be read"][0] == 2


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
