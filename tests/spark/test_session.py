import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamgroup.base.errors import DataError, EnvironmentFault, UsageError
from streamgroup.ingest.options import make_options
from streamgroup.ingest.run import ingest
from streamgroup.spark import errors as spark_errors
from streamgroup.spark.java import find_java


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
        with spark_errors.errors_as_text():
            raise DataError("file x: 'quoted\nlines' and\ttabs", "mend é it")

    with pytest.raises(RuntimeError) as caught:
        carry()
    told = spark_errors.error_in_text(f"py4j: ...\n  File\nRuntimeError: {caught.value}\n\n\tat org.apache...\n")
    assert isinstance(told, DataError)
    assert (told.message, told.hint) == ("file x: 'quoted\nlines' and\ttabs", "mend é it")
    assert spark_errors.error_in_text("java.lang.Whatever") is None
    assert spark_errors.summary_line("An error\nValueError: x is y\n") == "ValueError: x is y"


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
    told = spark_errors.cause_in_text(log)
    assert told is not None
    assert "the master does not answer" in told.message
    assert spark_errors.cause_in_text("nothing known") is None


def test_sessions_one_after_the_other_in_one_process(tmp_path: Path) -> None:
    """Each has the memory and the settings that it was given; the process and its files are as before."""
    code = (
        "import os, sys\n"
        "from streamgroup.spark.options import SparkOptions\n"
        "from streamgroup.spark.session import open_session\n"
        "before = dict(os.environ), list(sys.path)\n"
        "for memory in ('512m', '640m'):\n"
        "    options = SparkOptions(master='local[1]', driver_memory=memory, spark_conf=('spark.test.x=1',))\n"
        "    with open_session(options) as session:\n"
        "        conf = session.spark.conf\n"
        "        print(conf.get('spark.driver.memory'), conf.get('spark.test.x'), session.parallelism)\n"
        "        heap = session.spark._jvm.java.lang.Runtime.getRuntime().maxMemory() >> 20\n"
        "        assert 400 < heap <= int(memory[:-1]), heap\n"
        "        try:\n"
        "            with open_session(options):\n"
        "                pass\n"
        "        except Exception as error:\n"
        "            print(error)\n"
        "        assert len(session.spark.range(3).collect()) == 3\n"
        "    assert (dict(os.environ), sys.path) == before\n"
    )
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")
    second = "a Spark session is open in this process already"
    assert told.stdout.splitlines() == ["512m 1 1", second, "640m 1 1", second]
    assert list(tmp_path.iterdir()) == []
