"""What `export` writes as csv comes back through `ingest` as the same trace."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgroup.ingest.make_trace import IngestResult
from streamgroup.traces.export import export
from streamgroup.traces.fingerprint import fingerprint
from streamgroup.traces.hash_and_show_keys import hash_keys, not_utf8
from streamgroup.traces.trace import open_trace
from streamgroup.traces.tuple_blocks import Columns, KeyColumns
from streamgroup.traces.write_trace_files import write_keys
from tests.traces_by_hand import write_tuples

KEYS: list[bytes | None] = [
    None, b"", b"\x00nul", b"\r", b"\r\n", b" blank ", b'"', b'""', b"7", b"a,b", b"c\rr", b"emoji \xf0\x9f\x98\x80",
    b'say "hi"', b"two\nlines", b"\xff\xfe",
]  # fmt: skip
BACK: dict[str, Any] = {
    "time": "timestamp",
    "key": "key",
    "time_format": "us",
    "multiline": True,
    "null_keys": "keep",
    "reader_options": {"empty_is_null": True},
}


def test_empty_is_null_unless_quoted(parse: Callable[..., Any]) -> None:
    content = b'time,key,x\n1,,\n2,"",\n3,a,\n4,,"6"" x"\n5,"","6"" x"\n6,,""\n'
    expected = [None, b"", b"a", None, b"", None]
    options = {"null_keys": "keep", "reader_options": {"empty_is_null": True}}
    assert [key for _, key in parse(content, "csv", **options).tuples] == expected
    assert [key for _, key in parse(content, "csv").tuples] == [key or b"" for key in expected]
    assert parse(content, "csv", reader_options={"empty_is_null": True}).filtered == {"header": 1, "null key": 3}


@pytest.mark.spark
def test_csv_comes_back_with_the_same_fingerprint(make: Callable[..., IngestResult], tmp_path: Path) -> None:
    rows = 3 * len(KEYS)
    keys = pa.array(KEYS, pa.large_binary())
    chunk = Columns(
        (pa.array(range(rows)).to_numpy() - 7) * 1_500_000,
        (pa.array(range(rows)).to_numpy() % len(KEYS)).astype("uint32"),
        (pa.array(range(rows)).to_numpy() / 7).astype("float32"),
        pa.array(range(rows)).to_numpy() / -3,
        pa.array(range(rows)).to_numpy() * 1e200,
    )
    root = tmp_path / "first.trace"
    root.mkdir()
    stats = write_tuples(root / "tuples", [chunk])
    columns = KeyColumns(keys, pa.array([3] * len(KEYS)).to_numpy(), *hash_keys(keys))
    write_keys(root / "keys", [columns], key_bytes=bool(not_utf8(keys)))
    (root / "trace.json").write_text('{"format_version": 1}')
    export(open_trace(root), "csv", tmp_path / "out.csv")
    again = make("csv", tmp_path / "out.csv", cost="cost", value="value", weight="weight", **BACK)
    assert again.manifest.fingerprint == fingerprint(stats.block_digests, KEYS)
    assert (again.manifest.keys, again.manifest.rows_rejected) == (len(KEYS), 0)
