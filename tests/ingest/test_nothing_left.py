"""Inputs of which no tuple is left: the message says where the rows went."""

from collections.abc import Callable
from pathlib import Path

import pytest

from streamgroup.base.errors import DataError
from streamgroup.ingest import run as run_module
from streamgroup.ingest.options import make_options
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
