"""Inputs of which no tuple is left, and rows that are lost: the message says where the rows went."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import DataError, RunError
from streamgroup.ingest import run as run_module
from streamgroup.ingest.delimited import DelimitedReader
from streamgroup.ingest.options import make_options
from streamgroup.ingest.readers.protocol import Parsed
from streamgroup.ingest.run import IngestResult, ingest


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
    monkeypatch.delattr(run_module, "open_session")
    (tmp_path / "in.csv").write_bytes(content)
    options = make_options(reader="csv", inputs=(str(tmp_path / "in.csv"),), output=tmp_path / "out.trace")
    with pytest.raises(DataError) as caught:
        ingest(options)
    assert caught.value.message == told
    assert not (tmp_path / "out.trace").exists()


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
