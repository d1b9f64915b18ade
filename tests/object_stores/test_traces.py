"""Traces written to object stores: whole or not there, whatever happens on the way."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgroup.base.errors import DataError, EnvironmentFault, UsageError
from streamgroup.base.storage import output_on_disk_or_object_store
from streamgroup.base.storage.output_on_disk_or_object_store import UNFINISHED, staged_output
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.traces.checks.validate import validate
from streamgroup.traces.fingerprint import fingerprint
from streamgroup.traces.hash_and_show_keys import hash_keys
from streamgroup.traces.layout import KEYS, MANIFEST, TUPLES
from streamgroup.traces.manifest import Manifest, measured, write_manifest
from streamgroup.traces.trace import open_trace
from streamgroup.traces.tuple_blocks import Columns, KeyColumns
from streamgroup.traces.write_trace_files import write_keys
from tests.conftest import Bucket
from tests.object_stores.conftest import TRACE, invoke
from tests.traces_by_hand import write_tuples


def _write(out: StoragePath, rows: int, *, manifest: bool = True) -> None:
    """Writes a trace of one key, as an ingest does."""
    stats = write_tuples(out / TUPLES, [Columns(np.arange(rows), np.zeros(rows, np.uint32))])
    key = pa.array([b"k"], pa.large_binary())
    write_keys(out / KEYS, [KeyColumns(key, np.array([rows]), *hash_keys(key))])
    facts = measured(stats, 1, rows, fingerprint(stats.block_digests, [b"k"]))
    if manifest:
        write_manifest(out, Manifest(format_version=1, program_version="test", **facts))


def _write_whole(place: StoragePath, rows: int, *, overwrite: bool = False) -> None:
    with staged_output(place, overwrite=overwrite, marker=MANIFEST) as out:
        _write(out, rows)


def _remote(bucket: Bucket, _: Path) -> StoragePath:
    return bucket.place("x.trace")


def _local(_: Bucket, tmp_path: Path) -> StoragePath:
    return locate(tmp_path / "x.trace")


def _files(place: StoragePath) -> list[str]:
    return [entry.place.within(place) for entry in place.entries(recursive=True) if not entry.is_dir]


@pytest.mark.parametrize("where", [_remote, _local])
def test_a_written_trace_is_whole(bucket: Bucket, tmp_path: Path, where: Callable[..., StoragePath]) -> None:
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
    bucket: Bucket, tmp_path: Path, where: Callable[..., StoragePath], error: type[BaseException]
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
        found = invoke(command, place.where)
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
    remove = output_on_disk_or_object_store.remove_old

    def fail() -> None:
        with staged_output(place, overwrite=False, marker=MANIFEST) as out:
            _write(out, 5, manifest=False)

            def slow(*args: Any, **named: Any) -> None:
                remove(*args, **named)
                bucket.put("x.trace/tuples/part-00001.parquet", b"from a task that is cancelled only now")

            monkeypatch.setattr(output_on_disk_or_object_store, "remove_old", slow)
            raise error

    with pytest.raises(error):
        fail()
    monkeypatch.setattr(output_on_disk_or_object_store, "remove_old", remove)
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

    staged: list[StoragePath] = []
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
