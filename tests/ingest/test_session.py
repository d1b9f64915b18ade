import time
from pathlib import Path

import pytest

from streamgroup.base.errors import DataError, EnvironmentFault, UsageError
from streamgroup.ingest import faults
from streamgroup.ingest.java import find_java
from streamgroup.ingest.options import make_options
from streamgroup.ingest.run import ingest


def fake_java(folder: Path, version: str) -> None:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_java_that_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, major: int) -> None:
    fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == (str(tmp_path / "bin" / "java"), major)


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "16"])
def test_java_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentFault, match="needs 17 or newer") as caught:
        find_java()
    assert "install Java 17" in (caught.value.hint or "")


def test_no_java_is_told_at_once_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    raw = tmp_path / "x.csv"
    raw.write_text("time,key\n1,a\n")
    begin = time.perf_counter()
    with pytest.raises(EnvironmentFault, match="no Java"):
        ingest(make_options(reader="csv", inputs=(str(raw),), output=tmp_path / "x.trace"))
    assert time.perf_counter() - begin < 2
    assert list(tmp_path.iterdir()) == [raw]


def test_a_java_home_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentFault, match="JAVA_HOME is"):
        find_java()


def test_errors_cross_from_a_task() -> None:
    def carry() -> None:
        with faults.carried():
            raise DataError("file x: 'quoted\nlines' and\ttabs", "mend é it")

    with pytest.raises(RuntimeError) as caught:
        carry()
    told = faults.from_text(f"py4j: ...\n  File\nRuntimeError: {caught.value}\n\n\tat org.apache...\n")
    assert isinstance(told, DataError)
    assert (told.message, told.hint) == ("file x: 'quoted\nlines' and\ttabs", "mend é it")
    assert faults.from_text("java.lang.Whatever") is None
    assert faults.last_line("An error\nValueError: x is y\n") == "ValueError: x is y"


@pytest.mark.parametrize("master", ["nonsense", "local[0]", "spark://", "local[2]x", "local-cluster[2]"])
def test_masters_that_there_are_not(master: str) -> None:
    with pytest.raises(UsageError, match="--master"):
        make_options(reader="csv", inputs=("x",), output="y", master=master)


@pytest.mark.parametrize("master", ["local", "local[*]", "local-cluster[2,1,1024]", "spark://h:1", "yarn"])
def test_masters_that_there_are(master: str) -> None:
    assert make_options(reader="csv", inputs=("x",), output="y", master=master).master == master


def test_memory_that_spark_does_not_start_with() -> None:
    with pytest.raises(UsageError, match="--driver-memory: 511m is too little"):
        make_options(reader="csv", inputs=("x",), output="y", driver_memory="511m")


def test_what_failed_around_spark_is_told() -> None:
    log = "WARN x\nERROR StandaloneSchedulerBackend: All masters are unresponsive! Giving up.\n"
    told = faults.cause_of(log)
    assert told is not None
    assert "the master does not answer" in told.message
    assert faults.cause_of("nothing known") is None
