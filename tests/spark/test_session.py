"""Spark sessions: Java that is missing or too old, masters, errors of tasks, interrupts, killed processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from streamgroup.base.errors import DataError, EnvironmentFault, UsageError
from streamgroup.base.storage.process_tag import owner_is_alive
from streamgroup.ingest.make_trace import ingest
from streamgroup.ingest.options import make_options
from streamgroup.spark.count_finished_tasks import finished_tasks
from streamgroup.spark.errors_from_tasks import error_in_text, errors_as_text
from streamgroup.spark.explain_failure import cause_in_text, summary_line
from streamgroup.spark.find_java_and_spark import find_java
from streamgroup.spark.read_driver_log import log_tail, log_text


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
        with errors_as_text():
            raise DataError("file x: 'quoted\nlines' and\ttabs", "mend é it")

    with pytest.raises(RuntimeError) as caught:
        carry()
    told = error_in_text(f"py4j: ...\n  File\nRuntimeError: {caught.value}\n\n\tat org.apache...\n")
    assert isinstance(told, DataError)
    assert (told.message, told.hint) == ("file x: 'quoted\nlines' and\ttabs", "mend é it")
    assert error_in_text("java.lang.Whatever") is None
    assert summary_line("An error\nValueError: x is y\n") == "ValueError: x is y"


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
    told = cause_in_text(log)
    assert told is not None
    assert "the master does not answer" in told.message
    assert cause_in_text("nothing known") is None


@pytest.mark.slow
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


INTERRUPTED = """
import sys
from streamgroup.base.progress import Silent
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import open_session, terminable

def forever(batches):
    import time
    time.sleep(600)
    yield from batches

try:
    with terminable():
        print("starting", flush=True)
        with open_session(SparkOptions(master=sys.argv[1], driver_memory="1g")) as session:
            query = session.spark.range(0, 4, 1, 4).mapInArrow(forever, "id long")
            print("running", flush=True)
            session.run(query.toArrow, Silent(), 4, "")
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(
    ("moment", "delay", "number"),
    [
        pytest.param("starting", 0.0, signal.SIGINT, marks=pytest.mark.slow),
        ("starting", 1.0, signal.SIGTERM),
        pytest.param("running", 0.1, signal.SIGTERM, marks=pytest.mark.slow),
        ("running", 2.0, signal.SIGINT),
    ],
)
def test_an_interrupt_is_silent_and_leaves_nothing(
    tmp_path: Path, moment: str, delay: float, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", INTERRUPTED, "local[2]"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert any(line.strip() == moment for line in process.stdout)
    time.sleep(delay)
    begun = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")
    # Alone on a machine it takes at most 1.2 s.
    assert time.monotonic() - begun < 8
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout


def test_a_killed_process_takes_its_jvm_along(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "local[1]"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert any(line.strip() == "running" for line in process.stdout)
    process.kill()
    process.wait()
    process.stdout.close()
    until = time.monotonic() + 60
    while str(tmp_path) in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout:
        assert time.monotonic() < until
        time.sleep(0.5)
    (left,) = tmp_path.iterdir()
    assert not owner_is_alive(left.name.removeprefix("streamgroup-spark-").partition(".")[0])


def test_a_jvm_that_does_not_start(tmp_path: Path) -> None:
    code = (
        "from streamgroup.spark.options import SparkOptions\n"
        "from streamgroup.spark.session import open_session\n"
        "conf = ('spark.driver.extraJavaOptions=-agentlib:nosuch',)\n"
        "try:\n"
        "    with open_session(SparkOptions(master='local[1]', spark_conf=conf)): pass\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
        "    print(error.hint)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout.startswith("EnvironmentFault Spark does not start: ")
    assert "the end of Spark's log:" in ran.stdout
    assert "nosuch" in ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_progress_is_read_from_what_the_jvm_prints(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("\r[Stage 0:===> (9 + 2) / 45]")
    finished = finished_tasks(cast(Any, None), log, remote=False)
    assert finished.count() == 0
    with log.open("a") as file:
        file.write(
            "\r[Stage 3:>  (0 + 2) / 45]\r[Stage 3:> (2 + 2) / 45][Stage 4:=> (7 + 0) / 9]"
            "\r      \r12:00:00 WARN x: y\n"
        )
    assert finished.count() == 7
    assert finished.count() == 7
    assert log_text(log) == "12:00:00 WARN x: y"


def test_what_spark_says_is_shown_without_passwords(tmp_path: Path) -> None:
    said = "java.io.IOException: s3a://KEY:s3cret@bucket/x?token=s3cret: no such bucket"
    shown = "java.io.IOException: s3a://KEY:***@bucket/x?token=***"
    assert summary_line(said).startswith(shown)
    (tmp_path / "log").write_text(said)
    assert shown in (log_tail(tmp_path / "log") or "")


SENT = """
import types
from pathlib import Path
from streamgroup.spark.session import existing_session

class Conf:
    def get(self, name, default): return "spark://h:1"

for sent in (True, False):
    with existing_session(types.SimpleNamespace(conf=Conf())) as session:
        if sent:
            (session.scratch / "x.zip").write_text("")
    print(session.master, session.scratch.exists())
"""


def test_a_package_that_was_sent_stays_until_the_process_ends(tmp_path: Path) -> None:
    """Executors that start later fetch it, and the caller's session lives on."""
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", SENT],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.stderr, told.stdout.splitlines()) == ("", ["spark://h:1 True", "spark://h:1 False"])
    assert list(tmp_path.iterdir()) == []
