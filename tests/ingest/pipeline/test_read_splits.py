"""What a read task gives, bounded in memory, and what its options need on other machines."""

import gzip
import os
import pickle
from pathlib import Path

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.ingest.explain_rejected_rows import TEXT_BYTES
from streamgroup.ingest.make_reader import make_reader, with_option_files
from streamgroup.ingest.make_trace import ingest
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing import lines
from streamgroup.ingest.pipeline import read_splits
from streamgroup.ingest.pipeline.arrow_blocks import rows_of
from streamgroup.ingest.readers.protocol import Split


def test_rejects_leave_while_the_split_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task holds no more rejects than a block has, however many the split has."""
    monkeypatch.setattr(read_splits, "_REJECTS", 100)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 500)
    source = tmp_path / "x.csv.gz"
    source.write_bytes(gzip.compress(b"time,key\n" + b"".join(b"x%d,%s\n" % (n, b"k" * 2000) for n in range(1050))))
    options = make_options(reader="csv", inputs=(str(source),), output="unused")
    rows = list(rows_of(read_splits.read_task(options, [[Split(3, 0, str(source), 0, None)]], 0)))
    assert [row.kind for row in rows] == ["rejects"] * 11 + ["split"]
    assert [(row.segment, row.place) for row in rows[:-1]] == [(3, start) for start in range(0, 1050, 100)]
    stats = read_splits.read_split_stats(rows[-1])
    assert (stats.split, stats.rejected, stats.filtered) == (3, {"time cannot be read": 1050}, {"header": 1})
    found = [row.columns() for row in rows[:-1]]
    assert [number for block in found for number in block.column("line").to_pylist()] == list(range(2, 1052))
    assert {len(text) for block in found for text in block.column("text").to_pylist()} == {TEXT_BYTES}
    assert stats.examples["time cannot be read"][0] == 2


def test_tasks_need_no_file_that_options_name(tmp_path: Path) -> None:
    stop, classes = tmp_path / "stop", tmp_path / "classes"
    stop.write_text("the\n")
    classes.write_text("Carla\tmedia\n")
    options = make_options(
        reader="posg-tweets", inputs=("x",), output="y", stopwords=stop, reader_options={"classes": str(classes)}
    )
    found = with_option_files(options)
    stop.unlink()
    classes.unlink()
    task = pickle.loads(pickle.dumps(found))
    assert task.read_stopwords() == {b"the"}
    make_reader(task)
    # What the manifest tells of them is how they were given.
    assert task.model_dump() == options.model_dump()
    with pytest.raises(UsageError, match=r"--classes .*classes: No such file"):
        make_reader(options)
    with pytest.raises(UsageError, match=r"--stopwords .*stop: No such file"):
        with_option_files(options).read_stopwords()


def test_stopwords_of_a_pipe(tmp_path: Path) -> None:
    """As a shell has it: `--stopwords <(...)` can be read once."""
    (tmp_path / "x.csv").write_bytes(b"time,key\n1700000000,a\n1700000001,b\n")
    out, into = os.pipe()
    os.write(into, b"a\n")
    os.close(into)
    try:
        made = ingest(
            make_options(
                reader="csv",
                inputs=(str(tmp_path / "x.csv"),),
                output=tmp_path / "x.trace",
                engine="local",
                stopwords=f"/dev/fd/{out}",
            )
        )
    finally:
        os.close(out)
    assert made.manifest.filtered == {"header": 1, "stopwords only": 1}
