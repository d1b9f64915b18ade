import os
import tempfile
from pathlib import Path

import pytest

from streamgroup.ingest import class_archive
from streamgroup.ingest.class_archive import find_archive
from streamgroup.ingest.session import open_session


def machine(folder: Path) -> tuple[str, Path]:
    """Make a Java and a Spark."""
    (folder / "jars").mkdir()
    (folder / "jars" / "spark.jar").write_bytes(b"1")
    java = folder / "java"
    java.write_bytes(b"")
    return str(java), folder


def test_sessions_write_an_archive_once_and_then_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path = tmp_path / 'a "place" with blanks'
    tmp_path.mkdir()
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyError), open_session("local[1]"):
        raise KeyError
    assert not list((tmp_path / "classes").glob("*.jsa"))
    with open_session("local[1]") as session:
        assert session.context.parallelize([1, 2], 1).sum() == 3
    (archive,) = (tmp_path / "classes").iterdir()
    assert archive.stat().st_size > 10_000_000
    with open_session("local[1]", conf=("spark.driver.extraJavaOptions=-Xlog:class+load",)) as session:
        assert session.context.parallelize([1, 2], 1).sum() == 3
        log = session.log.read_text()
    shared = [line for line in log.splitlines() if "shared objects file (top)" in line]
    assert any("org.apache.spark.SparkContext " in line for line in shared)
    assert [archive] == list((tmp_path / "classes").iterdir())
    assert [entry.name for entry in tmp_path.iterdir()] == ["classes"]


def test_one_that_was_cut_off_does_not_stop_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path))
    with open_session("local[1]"):
        pass
    (archive,) = (tmp_path / "classes").iterdir()
    archive.chmod(0o644)
    os.truncate(archive, 5_000_000)
    with open_session("local[1]") as session:
        assert session.context.parallelize([1, 2], 1).sum() == 3


def test_other_jars_have_another_archive_and_few_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path / "cache"))
    java, home = machine(tmp_path)
    names: list[Path] = []
    for size in range(4):
        (home / "jars" / "spark.jar").write_bytes(b"1" * size)
        archive = find_archive(java, home)
        assert archive is not None
        assert archive.unfinished is not None
        archive.keep()
        assert not archive.path.exists()
        archive.unfinished.write_bytes(b"classes")
        archive.keep()
        names.append(archive.path)
        again = find_archive(java, home)
        assert again is not None
        assert again.unfinished is None
    assert len(set(names)) == 4
    kept = set((tmp_path / "cache" / "classes").iterdir())
    assert len(kept) == 2
    assert names[-1] in kept


def test_what_the_dead_left_is_removed_and_no_place_means_no_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java, home = machine(tmp_path)
    (tmp_path / "cache" / "classes").mkdir(parents=True)
    left = tmp_path / "cache" / "classes" / "0123.jsa.unfinished-1-99"
    left.write_bytes(b"")
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path / "cache"))
    assert find_archive(java, home) is not None
    assert not left.exists()
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path / "java" / "inside"))
    assert find_archive(java, home) is None

    def homeless() -> Path:
        raise RuntimeError

    monkeypatch.setattr(class_archive, "cache_root", homeless)
    assert find_archive(java, home) is None
