"""Inputs of which no tuple is left, and rows that are lost: the message says where the rows went."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import DataError, RunError
from streamgroup.ingest import make_trace
from streamgroup.ingest.files import inputs_and_splits
from streamgroup.ingest.make_trace import IngestResult, ingest
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing.delimited import DelimitedReader
from streamgroup.ingest.readers.protocol import Parsed
from streamgroup.ingest.sources.table_options import make_source_options


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"time,key\n", "no tuple is left of 1 row: 1 header"),
        (b"\ntime,key\n\n", "no tuple is left of 3 rows: 2 blank, 1 header"),
    ],
)
def test_a_header_alone_is_told_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, told: str
) -> None:
    monkeypatch.delattr(make_trace, "start_session")
    (tmp_path / "in.csv").write_bytes(content)
    options = make_options(reader="csv", inputs=(str(tmp_path / "in.csv"),), output=tmp_path / "out.trace")
    with pytest.raises(DataError) as caught:
        ingest(options)
    assert caught.value.message == told
    assert not (tmp_path / "out.trace").exists()


@pytest.mark.parametrize(
    ("option", "told"), [("limit", "--limit 0 leaves no rows"), ("head", "--head 0 leaves no tuples")]
)
def test_nothing_asked_for_is_refused_at_once(option: str, told: str) -> None:
    for make_any in (
        lambda: make_options(reader="csv", inputs=("none",), output="out.trace", **{option: 0}),
        lambda: make_source_options(table="none", time="at", key=("k",), output="out.trace", **{option: 0}),
    ):
        with pytest.raises(DataError) as caught:
            make_any()
        assert caught.value.message == told


def vanishing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets an input vanish once it is read."""
    check = inputs_and_splits.check_unchanged

    def checked(files: Any) -> None:
        check(files)
        path.unlink()

    monkeypatch.setattr(inputs_and_splits, "check_unchanged", checked)


@pytest.mark.parametrize("reader", ["csv", "jsonl"])
def test_an_input_is_not_opened_again_once_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    source = tmp_path / "in"
    source.write_bytes(b"time,key,b\n1,a,x\n" if reader == "csv" else b'{"time": 1, "key": "a", "b": "x"}\n')
    vanishing(source, monkeypatch)
    made = ingest(
        make_options(reader=reader, inputs=(str(source),), output=tmp_path / "o", key="key,b", engine="local")
    )
    assert [part.name for part in made.manifest.key_parts or ()] == ["key", "b"]


def test_a_hint_does_without_an_input_that_vanished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.csv").write_bytes(b"time,key\n1,a\nx,b\n")
    vanishing(tmp_path / "in.csv", monkeypatch)
    options = make_options(
        reader="csv", inputs=(str(tmp_path / "in.csv"),), output=tmp_path / "o", engine="local", max_rejects="0"
    )
    with pytest.raises(DataError, match="1 of 3 rows cannot be read") as caught:
        ingest(options)
    assert "say how times are written" in str(caught.value.hint)


@pytest.mark.spark
def test_rejected_rows_are_told(make: Callable[..., IngestResult], tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"time,key\nx,a\ny,b\n")
    with pytest.raises(DataError) as caught:
        make("csv", tmp_path / "in.csv", time_format="s", max_rejects="100%")
    assert caught.value.message == "no tuple is left of 3 rows: 1 header, 2 rejected (time cannot be read)"


def test_a_reader_that_loses_a_row_makes_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.csv").write_bytes(b"time,key\n1,a\n2,b\nx,c\n")
    options = make_options(
        reader="csv",
        inputs=(str(tmp_path / "in.csv"),),
        output=tmp_path / "out.trace",
        max_rejects="1",
        head=1,
        engine="local",
    )
    manifest = ingest(options).manifest
    assert (manifest.rows_read, manifest.rows_kept, manifest.rows_rejected, manifest.rows_filtered) == (4, 1, 1, 2)
    plain = DelimitedReader.parse

    def careless(self: Any, *arguments: Any) -> Parsed:
        parsed = plain(self, *arguments)
        return parsed._replace(rows=parsed.rows + 1)

    monkeypatch.setattr(DelimitedReader, "parse", careless)
    with pytest.raises(RunError, match="5 rows read are not 1 kept, 1 rejected and 2 filtered"):
        ingest(
            options.model_copy(update={"overwrite": True}),
        )
