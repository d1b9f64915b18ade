"""Inputs by accident: links in circles, packed files of nothing, archives in archives, files in the output."""

import bz2
import gzip
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import DataError, EnvironmentFault, UsageError
from streamgroup.base.storage.atomic_local_directories import staged_directory
from streamgroup.ingest.files.inputs_and_splits import resolve_inputs
from streamgroup.ingest.make_trace import ingest
from streamgroup.ingest.options import make_options
from tests.ingest.files.test_inputs_and_splits import zipped
from tests.ingest.files.test_packed_files import lz4, tarred, zst

CONTENT = b"time,key\n1700000000,a\n1700000001,b\n"


def rows(*inputs: Path, output: Path, **options: Any) -> int | None:
    asked: dict[str, Any] = {
        "reader": "csv",
        "inputs": tuple(map(str, inputs)),
        "output": output,
        "engine": "local",
        **options,
    }
    return ingest(make_options(**asked)).manifest.rows_kept


def test_globs_do_not_follow_links_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x.csv").write_bytes(CONTENT)
    (tmp_path / "a" / ".hidden.csv").write_bytes(CONTENT)
    for name in ("up", "again"):
        (tmp_path / "a" / "b" / name).symlink_to(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    assert [file.given for file in resolve_inputs(("a/**/*.csv",))] == ["a/b/x.csv"]
    assert [file.given for file in resolve_inputs(("**/*.csv",))] == ["a/b/x.csv"]
    assert [file.given for file in resolve_inputs((f"{tmp_path}/**",))] == [f"{tmp_path}/a/b/x.csv"]


@pytest.mark.parametrize("target", ["self", "nothing"])
def test_links_to_nothing(tmp_path: Path, target: str) -> None:
    (tmp_path / "self").symlink_to(target)
    with pytest.raises(UsageError, match="self is a link to nothing"):
        resolve_inputs((str(tmp_path),))


def test_an_empty_input_is_not_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.csv").write_bytes(CONTENT)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="an input is empty"):
        resolve_inputs(("",))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, zst, lzma.compress, lz4])
def test_packed_files_of_nothing_are_empty_files(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    (tmp_path / "x.csv").write_bytes(CONTENT)
    (tmp_path / "empty").write_bytes(compress(b""))
    for inputs in ([tmp_path / "empty", tmp_path / "x.csv"], [tmp_path / "x.csv", tmp_path / "empty"]):
        assert rows(*inputs, output=tmp_path / "o.trace", overwrite=True) == 2
    with pytest.raises(DataError, match="empty: no rows in it"):
        rows(tmp_path / "empty", output=tmp_path / "p.trace")


def test_archives_in_other_files_are_told(tmp_path: Path) -> None:
    archives = {"zip": zipped(("a.csv", CONTENT)), "tar": tarred(("a.csv", CONTENT))}
    for kind, content in archives.items():
        for packed in (zipped(("in", content)), tarred(("in", content)), gzip.compress(tarred(("in", content)))):
            (tmp_path / "x").write_bytes(packed)
            with pytest.raises(DataError, match=f"x/in: a {kind} file in another file"):
                rows(tmp_path / "x", output=tmp_path / "o.trace")
    (tmp_path / "x").write_bytes(gzip.compress(archives["zip"]))
    with pytest.raises(DataError, match="x: a zip file in another file"):
        rows(tmp_path / "x", output=tmp_path / "o.trace")


def test_an_input_in_the_output_is_not_removed_with_it(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(CONTENT)
    out = tmp_path / "o.trace"
    assert rows(tmp_path / "x.csv", output=out) == 2
    (out / "more.csv").write_bytes(CONTENT)
    (tmp_path / "link.csv").symlink_to(out / "more.csv")
    for given in (out / "more.csv", tmp_path / "link.csv"):
        with pytest.raises(UsageError, match=r"lies in the output"):
            rows(given, output=out, overwrite=True)
    assert (out / "more.csv").read_bytes() == CONTENT


def test_an_output_in_an_input_folder_is_refused_the_first_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time its own files would be among the inputs."""
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "x.csv").write_bytes(CONTENT)
    (tmp_path / "link").symlink_to(folder)
    for given in (folder, tmp_path / "link"):
        for output in (folder / "o.trace", folder / "deep" / "o.trace", tmp_path / "link" / "o.trace"):
            with pytest.raises(UsageError, match=r"o\.trace lies in the input .*, and would be read with it the next"):
                rows(given, output=output)
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError, match=r"the output o\.trace lies in the input \., and would be read"):
        rows(Path(), output=Path("o.trace"))
    assert sorted(path.name for path in folder.rglob("*")) == ["deep", "x.csv"]


def test_an_output_that_an_input_folder_does_not_have_the_next_time_may_be_there(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "x.csv").write_bytes(CONTENT)
    for given, output in (
        (folder / "*.csv", folder / "o.trace"),
        (folder / "*", folder / "p.trace"),
        (folder / "x.csv", folder / "q.trace"),
    ):
        for overwrite in (False, True):
            assert rows(given, output=output, overwrite=overwrite) == 2
        shutil.rmtree(output)
    for output in (folder / "_traces" / "o.trace", folder / ".o.trace", tmp_path / "in.trace"):
        for overwrite in (False, True):
            assert rows(folder, output=output, overwrite=overwrite) == 2


def test_a_name_that_is_too_long_leaves_no_parents(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvironmentFault, match="File name too long"),
        staged_directory(tmp_path / "a" / "b" / ("x" * 250), overwrite=False, marker="m"),
    ):
        pytest.fail("nothing can be written")
    assert list(tmp_path.iterdir()) == []
