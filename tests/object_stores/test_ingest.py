"""Inputs and outputs of an ingest in object stores."""

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.files.inputs_and_splits import check_unchanged, resolve_inputs
from streamgroup.ingest.make_trace import IngestResult, ingest
from streamgroup.ingest.options import make_options
from streamgroup.traces.checks.validate import validate
from streamgroup.traces.trace import open_trace
from tests.conftest import Bucket
from tests.object_stores.conftest import TRACE, invoke

CSV = b"time,key\n" + b"".join(b"%d,k%d\n" % (1_700_000_000 + at, at % 7) for at in range(2000))


def _make(options: dict[str, Any]) -> IngestResult:
    return ingest(make_options(**{"reader": "csv", "engine": "local", **options}))


def _packed(name: str) -> bytes:
    target = io.BytesIO()
    if name.endswith("zip"):
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.csv", CSV)
    elif name.endswith("parquet"):
        table = pa_csv.read_csv(io.BytesIO(CSV))
        pq.write_table(table, target, row_group_size=700)
    else:
        return gzip.compress(CSV) if name.endswith("gz") else CSV
    return target.getvalue()


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.zip", "x.parquet"])
def test_an_ingest_from_and_to_a_store(bucket: Bucket, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(_packed(name))
    url = bucket.put(name, _packed(name))
    reader = "parquet" if name.endswith("parquet") else "csv"
    here = _make({"reader": reader, "inputs": (str(tmp_path / name),), "output": tmp_path / "x.trace"})
    there = _make({"reader": reader, "inputs": (url,), "output": bucket.url("x.trace")})
    assert there.manifest.fingerprint == here.manifest.fingerprint
    assert there.manifest.inputs is not None
    assert here.manifest.inputs is not None
    assert there.manifest.inputs[0] == here.manifest.inputs[0].model_copy(update={"path": url})
    assert bucket.names() == sorted([name, *(f"x.trace/{file}" for file in TRACE)])
    assert validate(locate(there.trace)) == []


def test_an_ingest_that_fails_leaves_the_old_trace(bucket: Bucket) -> None:
    url = bucket.put("x.csv", CSV)
    asked = {"inputs": (url,), "output": bucket.url("x.trace")}
    made = _make(asked)
    bucket.put("x.csv", CSV + b"no time,k\n" * 500)
    with pytest.raises(DataError, match="500 of 2501 rows cannot be read"):
        _make({**asked, "overwrite": True})
    assert open_trace(bucket.place("x.trace")).fingerprint() == made.manifest.fingerprint
    assert bucket.names() == ["x.csv", *(f"x.trace/{file}" for file in TRACE)]
    with pytest.raises(UsageError, match="exists already"):
        _make(asked)
    assert _make({**asked, "overwrite": True, "max_rejects": "50%"}).manifest.rows_rejected == 500
    assert bucket.names()[1:] == sorted(f"x.trace/{file}" for file in [*TRACE, "rejects/part-00000.parquet"])


def test_an_ingest_of_the_command_line(bucket: Bucket) -> None:
    bucket.put("in/a.csv", CSV)
    made = invoke("synth", "zipf", "--tuples", "100", "--keys", "5", "-o", bucket.url("z.trace"), "--engine", "local")
    assert made.exit_code == 0, made.stderr
    assert open_trace(bucket.place("z.trace")).tuples == 100
    found = invoke("ingest", "csv", bucket.url("in/*.csv"), "-o", "unused", "--dry-run")
    assert found.exit_code == 0, found.stderr
    assert f"{bucket.url('in/a.csv')}: columns time, key" in found.stderr


NAMES = [
    "a.csv",
    "day=1/b.csv",
    "day=1/_c.csv",
    "day=1/.d.csv",
    "day=1/hour=2/e.csv",
    "_old/f.csv",
    ".g/h.csv",
    "i.log",
]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("t", ["a.csv", "day=1/b.csv", "day=1/hour=2/e.csv", "i.log"]),
        ("t/", ["a.csv", "day=1/b.csv", "day=1/hour=2/e.csv", "i.log"]),
        ("t/*.csv", ["a.csv"]),
        ("t/*", ["a.csv", "i.log"]),
        ("t/day=*", ["day=1/b.csv", "day=1/hour=2/e.csv"]),
        ("t/day=*/*", ["day=1/_c.csv", "day=1/b.csv"]),
        ("t/**/*.csv", ["_old/f.csv", "a.csv", "day=1/_c.csv", "day=1/b.csv", "day=1/hour=2/e.csv"]),
        ("*/day=[0-9]/b.csv", ["day=1/b.csv"]),
        ("t/day=1/.d*", ["day=1/.d.csv"]),
        ("t/a.csv", ["a.csv"]),
    ],
)
def test_directories_and_globs(bucket: Bucket, tmp_path: Path, given: str, expected: list[str]) -> None:
    for name in NAMES:
        bucket.put(f"t/{name}", b"x")
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_bytes(b"x")
    far, near = bucket.place("t"), locate(tmp_path / "t")
    assert [locate(file.path).within(near) for file in resolve_inputs((f"{tmp_path}/{given}",))] == expected
    assert [locate(file.path).within(far) for file in resolve_inputs((bucket.url(given),))] == expected


def test_an_output_in_an_input_folder_of_a_store(bucket: Bucket) -> None:
    bucket.put("t/x.csv", CSV)
    with pytest.raises(UsageError, match=r"lies in the input .*, and would be read with it the next time"):
        _make({"inputs": (bucket.url("t"),), "output": bucket.url("t/x.trace")})
    assert bucket.names() == ["t/x.csv"]
    for given, output in (("t/*.csv", "t/x.trace"), ("t/x.csv", "t/x.trace"), ("t", "t/_traces/x.trace")):
        for overwrite in (False, True):
            made = _make({"inputs": (bucket.url(given),), "output": bucket.url(output), "overwrite": overwrite})
            assert made.manifest.rows_kept == 2000
        bucket.place(output).remove_tree()


def test_inputs_of_a_store_that_are_none(bucket: Bucket) -> None:
    bucket.put("t/_x", b"")
    for given, message in (("t", "is a directory without"), ("u/*", "nothing matches"), ("u", "there is no file")):
        with pytest.raises(UsageError, match=message):
            resolve_inputs((bucket.url(given),))


def test_inputs_of_a_store_that_change(bucket: Bucket) -> None:
    url = bucket.put("x.csv", CSV)
    bucket.put("y.csv", CSV)
    files = resolve_inputs((url, bucket.url("*.csv")))
    check_unchanged(files)
    bucket.put("x.csv", CSV[:-1])
    with pytest.raises(DataError, match=r"x\.csv.* changed while it was read"):
        check_unchanged(files)
    bucket.place("x.csv").remove()
    with pytest.raises(DataError, match=r"x\.csv.* vanished while it was read"):
        check_unchanged(files)


def test_a_directory_with_a_link_to_itself_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(CSV)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert [file.given for file in resolve_inputs((str(tmp_path),))] == [str(tmp_path / "x.csv")]
