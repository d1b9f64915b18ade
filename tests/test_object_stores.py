"""Inputs, outputs and traces of an object store: an S3 server, and fsspec's file system in memory."""

import dataclasses
import gzip
import io
import json
import pickle
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from streamgroup.base.errors import DataError, EnvironmentFault, UsageError
from streamgroup.base.storage import atomic_directories
from streamgroup.base.storage.atomic_directories import UNFINISHED, staged_output
from streamgroup.base.storage.places import Place, locate
from streamgroup.cli.app import app
from streamgroup.ingest.files.inputs import check_unchanged, resolve_inputs
from streamgroup.ingest.options import make_options
from streamgroup.ingest.run import IngestResult, ingest
from streamgroup.traces.checks.validate import validate
from streamgroup.traces.key_bytes import hash_keys
from streamgroup.traces.manifest import Manifest, measured, write_manifest
from streamgroup.traces.schema import KEYS, MANIFEST, TUPLES
from streamgroup.traces.trace import open_trace
from streamgroup.traces.writer import Columns, KeyColumns, fingerprint, write_keys
from tests.conftest import Bucket
from tests.traces_by_hand import write_trace, write_tuples

ROWS = [(at * 1000, b"k%d" % (at % 7), float(at % 3)) for at in range(300)]
TRACE = ["keys/part-00000.parquet", "trace.json", "tuples/part-00000.parquet"]


def _run(*args: object) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "x.trace", ROWS, parts=3)


def test_a_place_is_text_that_finds_its_filesystem_again(bucket: Bucket) -> None:
    url = bucket.put("a b/ä=1.gz", b"content")
    place = locate(url)
    assert place.name == "ä=1.gz"
    assert place.parent / place.name == place
    assert " " not in place.text
    again = pickle.loads(pickle.dumps(place))
    assert again == place
    assert again.read_bytes() == b"content"
    assert again.size() == 7
    assert again.stat().changed > 1_600_000_000 * 10**9
    with again.open_input() as file:
        file.seek(3)
        assert file.read() == b"tent"
    assert (bucket.place().is_dir(), place.is_file(), place.is_dir()) == (True, True, False)
    assert [entry.place for entry in bucket.place().entries(recursive=True)] == [place.parent, place]
    place.remove()
    assert not place.exists()
    place.remove()
    with pytest.raises(FileNotFoundError):
        place.read_bytes()


def test_entries_are_in_the_order_of_bytes(bucket: Bucket) -> None:
    names = ["b", "a/z", "a-b", "ä", "Z"]
    for name in names:
        bucket.put(name, b"")
    assert bucket.names() == sorted(names, key=str.encode)


def test_memory_of_fsspec() -> None:
    pytest.importorskip("fsspec")
    place = locate("memory://store/some folder/x")
    with (place / "ä%20").writing() as file:
        file.write(b"1")
    assert [entry.place.name for entry in place.entries()] == ["ä%20"]
    assert (place / "ä%20").read_bytes() == b"1"
    place.remove_tree()
    assert not place.exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nosuch://a/b", "no filesystem is called nosuch://"),
        ("s3://bucket/x?colour=red", "s3://bucket?colour=***: Unexpected query parameter in S3 URI: 'colour'"),
        ("file://elsewhere/x", "a file of another machine"),
    ],
)
def test_urls_that_nothing_opens(url: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        locate(url).exists()
    assert message in caught.value.message
    assert caught.value.hint


def test_passwords_are_not_shown() -> None:
    place = locate("s3://me:secret@bucket/x?region=r") / "y"
    assert str(place) == "s3://me:***@bucket/x/y?region=r"
    assert locate(place.reference) == place


def test_tokens_in_a_query_are_not_shown() -> None:
    url = "https://h/x?X-Amz-Signature=abc&sig=d%2Be&region=r&scheme=http&endpoint_override=h:1&token="
    place = locate(url)
    assert str(place) == (
        "https://h/x?X-Amz-Signature=***&sig=***&region=r&scheme=http&endpoint_override=h:1&token=***"
    )
    assert (place.where, locate(place.reference)) == (url, place)
    assert str(locate("s3://bucket/part-?/day=1")) == "s3://bucket/part-?/day=1"


def test_what_is_written_is_there_only_when_it_is_whole(bucket: Bucket) -> None:
    bucket.put("x", b"old")

    def fail() -> None:
        with bucket.place("x").writing() as file:
            file.write(b"new" * 1000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert bucket.place("x").read_bytes() == b"old"


def test_large_files_are_sent_from_disk(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgroup.base.storage.places._MEMORY_BYTES", 1 << 10)
    content = bytes(range(256)) * (1 << 16)
    bucket.put("large", content)
    assert bucket.place("large").read_bytes() == content


def test_a_store_that_cannot_be_reached_is_told_soon(bucket: Bucket) -> None:
    url = "s3://bucket/x.trace?endpoint_override=127.0.0.1:1&scheme=http"
    begun = time.monotonic()
    found = _run("describe", url)
    assert time.monotonic() - begun < 60
    assert found.exit_code == 3
    assert found.stderr.startswith("error: cannot look at s3://bucket/x.trace?endpoint_override=127.0.0.1:1")
    assert "Could not connect to server" in found.stderr
    assert "Traceback" not in found.stderr


def test_no_such_bucket(bucket: Bucket) -> None:
    found = _run("describe", bucket.url("x.trace", bucket="nosuch"))
    assert found.exit_code == 2
    assert "does not exist" in found.stderr
    with (
        pytest.raises(EnvironmentFault, match="NO_SUCH_BUCKET"),
        staged_output(locate(bucket.url("x", bucket="nosuch")), overwrite=False, marker=MANIFEST),
    ):
        pass
    with (
        pytest.raises(EnvironmentFault, match=r"cannot write s3://nosuch/.*NO_SUCH_BUCKET"),
        locate(bucket.url("x", bucket="nosuch")).writing() as file,
    ):
        file.write(b"1")


def _facts(target: object) -> dict[str, Any]:
    found = _run("describe", target, "--json")
    assert found.exit_code == 0, found.stderr
    return json.loads(found.stdout)


def test_a_trace_is_read_from_its_url(bucket: Bucket, trace: Path, tmp_path: Path) -> None:
    url = bucket.upload(trace, "x.trace")
    assert _facts(url) == _facts(trace)
    assert _run("validate", url).stdout == _run("validate", trace).stdout.replace(str(trace), url)
    for to in ("csv", "parquet"):
        for name, source in (("far", url), ("near", trace)):
            assert _run("export", source, "--to", to, "-o", tmp_path / f"{name}.{to}").exit_code == 0
        assert (tmp_path / f"far.{to}").read_bytes() == (tmp_path / f"near.{to}").read_bytes()
    runs = [_run("replay", source, "-g", "kg", "-n", "4", "--json") for source in (url, trace)]
    assert [run.exit_code for run in runs] == [0, 0]
    assert json.loads(runs[0].stdout) == json.loads(runs[1].stdout)


def test_a_sweep_reads_a_trace_from_its_url(bucket: Bucket, trace: Path, tmp_path: Path) -> None:
    url = bucket.upload(trace, "x.trace")
    spec = tmp_path / "spec.toml"
    spec.write_text(f'traces = ["{url}"]\ngroupings = ["kg"]\nworkers = 4\n')
    found = [
        _run("sweep", *given, "-o", tmp_path / f"out{place}", "--json")
        for place, given in enumerate([(url, "-g", "kg", "-n", "4"), (trace, "-g", "kg", "-n", "4"), (spec,)])
    ]
    rows = [json.loads(run.stdout) for run in found]
    assert [run.exit_code for run in found] == [0, 0, 0]
    assert rows[0] == rows[1] == rows[2]


def test_export_to_a_url(bucket: Bucket, trace: Path, tmp_path: Path) -> None:
    out = bucket.url("out.csv")
    assert _run("export", trace, "--to", "csv", "-o", out).exit_code == 0
    assert _run("export", trace, "--to", "csv", "-o", tmp_path / "out.csv").exit_code == 0
    assert bucket.place("out.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
    again = _run("export", trace, "--to", "csv", "-o", out)
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
    assert _run("export", trace, "--to", "slb", "-o", out, "--overwrite").exit_code == 0
    assert bucket.place("out.csv").read_bytes().startswith(b"0\tk0\n")
    inside = bucket.upload(trace, "x.trace").replace("x.trace?", "x.trace/out.csv?")
    assert "inside the trace" in _run("export", bucket.url("x.trace"), "--to", "csv", "-o", inside).stderr


def test_outputs_that_take_paths_refuse_urls(bucket: Bucket, trace: Path) -> None:
    found = _run("replay", trace, "-g", "kg", "-n", "2", "-o", bucket.url("run"))
    assert found.exit_code == 2
    assert "is a URL" in found.stderr


def _write(out: Place, rows: int, *, manifest: bool = True) -> None:
    """Writes a trace of one key, as an ingest does."""
    stats = write_tuples(out / TUPLES, [Columns(np.arange(rows), np.zeros(rows, np.uint32))])
    key = pa.array([b"k"], pa.large_binary())
    write_keys(out / KEYS, [KeyColumns(key, np.array([rows]), *hash_keys(key))])
    facts = measured(stats, 1, rows, fingerprint(stats.block_digests, [b"k"]))
    if manifest:
        write_manifest(out, Manifest(format_version=1, program_version="test", **facts))


def _write_whole(place: Place, rows: int, *, overwrite: bool = False) -> None:
    with staged_output(place, overwrite=overwrite, marker=MANIFEST) as out:
        _write(out, rows)


def _remote(bucket: Bucket, _: Path) -> Place:
    return bucket.place("x.trace")


def _local(_: Bucket, tmp_path: Path) -> Place:
    return locate(tmp_path / "x.trace")


def _files(place: Place) -> list[str]:
    return [entry.place.within(place) for entry in place.entries(recursive=True) if not entry.is_dir]


@pytest.mark.parametrize("where", [_remote, _local])
def test_a_written_trace_is_whole(bucket: Bucket, tmp_path: Path, where: Callable[..., Place]) -> None:
    place = where(bucket, tmp_path)
    _write_whole(place, 5)
    assert _files(place) == TRACE
    assert validate(place) == []
    assert open_trace(place).tuples == 5
    with pytest.raises(UsageError, match="exists already"):
        _write_whole(place, 6)
    _write_whole(place, 7, overwrite=True)
    assert _files(place) == TRACE
    assert open_trace(place).tuples == 7


@pytest.mark.parametrize("where", [_remote, _local])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(
    bucket: Bucket, tmp_path: Path, where: Callable[..., Place], error: type[BaseException]
) -> None:
    place = where(bucket, tmp_path)

    def fail() -> None:
        with staged_output(place, overwrite=True, marker=MANIFEST) as out:
            _write(out, 5, manifest=False)
            raise error

    with pytest.raises(error):
        fail()
    assert not place.exists()
    assert bucket.names() == []


def test_the_manifest_is_first_to_go_and_last_to_come(bucket: Bucket) -> None:
    place = bucket.place("x.trace")
    _write_whole(place, 5)
    bucket.put("x.trace/tuples/part-00009.parquet", b"a part that the new trace does not have")
    with staged_output(place, overwrite=True, marker=MANIFEST) as out:
        assert _files(place) == [UNFINISHED]
        _write(out, 6, manifest=False)
        assert _files(place) == [UNFINISHED, *(name for name in TRACE if name != MANIFEST)]
        with pytest.raises(DataError, match=r"is not a trace: what wrote it was interrupted, or still writes"):
            open_trace(place)
        write_manifest(out, Manifest(format_version=1))
    assert _files(place) == TRACE
    assert open_trace(place).tuples == 6


def test_what_a_killed_run_left(bucket: Bucket) -> None:
    place = bucket.place("x.trace")
    entered = staged_output(place, overwrite=False, marker=MANIFEST)
    _write(entered.__enter__(), 5, manifest=False)
    left = _files(place)
    assert UNFINISHED in left
    for command in ("describe", "validate"):
        found = _run(command, place.where)
        assert found.exit_code == 4
        assert "what wrote it was interrupted" in found.stdout + found.stderr
    with pytest.raises(UsageError, match="what an interrupted run left") as caught:
        _write_whole(place, 6)
    assert "--overwrite" in str(caught.value.hint)
    assert _files(place) == left
    _write_whole(place, 6, overwrite=True)
    assert _files(place) == TRACE


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_part_that_comes_late_does_not_lock_the_output(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    place = bucket.place("x.trace")
    remove = atomic_directories.remove_old

    def fail() -> None:
        with staged_output(place, overwrite=False, marker=MANIFEST) as out:
            _write(out, 5, manifest=False)

            def slow(*args: Any, **named: Any) -> None:
                remove(*args, **named)
                bucket.put("x.trace/tuples/part-00001.parquet", b"from a task that is cancelled only now")

            monkeypatch.setattr(atomic_directories, "remove_old", slow)
            raise error

    with pytest.raises(error):
        fail()
    monkeypatch.setattr(atomic_directories, "remove_old", remove)
    assert _files(place) == [UNFINISHED, "tuples/part-00001.parquet"]
    with pytest.raises(UsageError, match="what an interrupted run left"):
        _write_whole(place, 6)
    _write_whole(place, 6, overwrite=True)
    assert _files(place) == TRACE


def test_a_task_that_nobody_waits_for_does_not_make_a_removed_output_again(tmp_path: Path) -> None:
    def fail() -> None:
        with staged_output(locate(tmp_path / "x.trace"), overwrite=False, marker=MANIFEST) as out:
            staged.append(out)
            raise ZeroDivisionError

    staged: list[Place] = []
    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(EnvironmentFault, match="the output's folder is not there"):
        _write(staged[0], 5)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_ours_stays(bucket: Bucket) -> None:
    bucket.put("x.trace/tuples/part-00000.parquet", b"of someone else")
    bucket.put("file", b"")
    place = bucket.place("x.trace")
    for overwrite in (True, False):
        with pytest.raises(UsageError, match=r"holds no trace\.json, so it is not ours"):
            _write_whole(place, 5, overwrite=overwrite)
        with pytest.raises(UsageError, match=r"/file\?.* is a file"):
            _write_whole(bucket.place("file"), 5, overwrite=overwrite)
    assert bucket.names() == ["file", "x.trace/tuples/part-00000.parquet"]


def test_a_damaged_part_is_told_from_a_store_that_is_gone(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    place = bucket.place("x.trace")
    _write_whole(place, 5)
    trace = open_trace(place)
    content = (place / TUPLES / "part-00000.parquet").read_bytes()
    bucket.put("x.trace/tuples/part-00000.parquet", content[:40])
    with pytest.raises(DataError, match=r"tuples/part-00000\.parquet: not a whole Parquet file"):
        open_trace(place)
    with pytest.raises(DataError, match=r"tuples/part-00000\.parquet: cannot be read"):
        list(trace.batches())
    part = trace._tuple_parts[0]
    gone = locate(part.path.where.replace(f":{bucket.port}", ":1"))
    with pytest.raises(EnvironmentFault, match="Could not connect"):
        list(dataclasses.replace(trace, _tuple_parts=[part._replace(path=gone)]).batches())


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
    made = _run("synth", "zipf", "--tuples", "100", "--keys", "5", "-o", bucket.url("z.trace"), "--engine", "local")
    assert made.exit_code == 0, made.stderr
    assert open_trace(bucket.place("z.trace")).tuples == 100
    found = _run("ingest", "csv", bucket.url("in/*.csv"), "-o", "unused", "--dry-run")
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
