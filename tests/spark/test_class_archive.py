"""The class-data archive of the driver's JVM: written once, then used, never in the way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamgroup.base.storage.cache_directory import cache_root
from streamgroup.spark import class_archive
from streamgroup.spark.class_archive import find_archive


def machine(folder: Path) -> tuple[str, Path]:
    """Make a Java and a Spark."""
    (folder / "jars").mkdir()
    (folder / "jars" / "spark.jar").write_bytes(b"1")
    java = folder / "java"
    java.write_bytes(b"")
    return str(java), folder


SESSION = """
import sys
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import open_session
with open_session(SparkOptions(master="local[1]", spark_conf=tuple(sys.argv[2:]))) as session:
    if sys.argv[1] == "fail":
        sys.exit(7)
    assert session.spark.range(3).selectExpr("sum(id)").collect()[0][0] == 3
    print(session.log.read_text())
"""


def opened(cache: Path, what: str, *conf: str, code: int = 0) -> str:
    """Open a session in a process of its own, as there may be one in this; give the log of its JVM."""
    told = subprocess.run(
        [sys.executable, "-c", SESSION, what, *conf],
        env={**os.environ, "STREAMGROUP_CACHE_DIR": str(cache), "TMPDIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == code, told.stderr
    return told.stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache with an archive. Writing one takes longer than a session, so all later tests share it."""
    cache = tmp_path_factory.mktemp("cache") / 'a "place" with blanks'
    cache.mkdir()
    opened(cache, "fail", code=7)
    assert not list((cache / "classes").glob("*.jsa"))
    opened(cache, "work")
    shared = cache_root() / "classes"
    if not list(shared.glob("*.jsa")):
        shutil.copytree(cache / "classes", shared, dirs_exist_ok=True)
    return cache


def test_sessions_write_an_archive_once_and_then_use_it(cache: Path) -> None:
    (archive,) = (cache / "classes").iterdir()
    assert archive.stat().st_size > 10_000_000
    log = opened(cache, "work", "spark.driver.extraJavaOptions=-Xlog:class+load")
    shared = [line for line in log.splitlines() if "shared objects file (top)" in line]
    assert any("org.apache.spark.SparkContext " in line for line in shared)
    assert [archive] == list((cache / "classes").iterdir())
    assert [entry.name for entry in cache.iterdir()] == ["classes"]


def test_one_that_was_cut_off_does_not_stop_spark(cache: Path, tmp_path: Path) -> None:
    shutil.copytree(cache, tmp_path, dirs_exist_ok=True)
    (archive,) = (tmp_path / "classes").iterdir()
    archive.chmod(0o644)
    os.truncate(archive, 5_000_000)
    opened(tmp_path, "work")
    assert not archive.exists()


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
