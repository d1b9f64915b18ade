"""How a driver ends, without a JVM."""

import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streamgroup.spark import classic
from streamgroup.spark.driver_settings import restored_environment
from streamgroup.spark.options import SparkOptions


class Ending:
    """A session and a process that note what they are asked; the session's end hangs until the process is killed."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._killed = threading.Event()

    def stop(self) -> None:
        self.asked.append("stop")
        self._killed.wait(60)

    def kill(self) -> None:
        self.asked.append("kill")
        self._killed.set()


@pytest.mark.parametrize(
    ("master", "asked"), [("spark://h:1", ["stop", "kill", "stop"]), ("local[2]", ["kill", "stop"])]
)
def test_a_cluster_that_does_not_answer_holds_up_an_interrupted_run_only_shortly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str, asked: list[str]
) -> None:
    monkeypatch.setattr(classic, "_QUICK_END", 0.2)
    ending: Any = Ending()
    with restored_environment(tmp_path):
        driver = classic._Driver(SparkOptions(master=master), tmp_path, tmp_path / "log", None)
    driver._spark = driver.process = ending
    begun = time.monotonic()
    driver.stop_quickly()
    assert time.monotonic() - begun < 10
    assert ending.asked == asked


@pytest.mark.parametrize(
    ("master", "settings", "expected"),
    [
        ("local[2]", {}, False),
        ("local[2]", {"spark.eventLog.enabled": "false"}, False),
        ("local[2]", {"spark.eventLog.enabled": "true"}, True),
        ("local[2]", {"spark.extraListeners": "x.Y"}, True),
        ("spark://h:1", {}, True),
    ],
)
def test_whether_a_driver_has_to_end_in_order(
    tmp_path: Path, master: str, settings: dict[str, str], expected: bool
) -> None:
    with restored_environment(tmp_path):
        driver = classic._Driver(SparkOptions(master=master), tmp_path, tmp_path / "log", None)
    spark: Any = SimpleNamespace(conf=SimpleNamespace(getAll=settings))
    driver._spark = spark
    assert driver.has_more_to_write is expected


def test_a_driver_that_is_gone_is_ended_all_the_same(tmp_path: Path) -> None:
    class Gone(Ending):
        @property
        def conf(self) -> Any:
            raise ConnectionRefusedError

    with restored_environment(tmp_path):
        driver = classic._Driver(SparkOptions(master="local[2]"), tmp_path, tmp_path / "log", None)
    gone: Any = Gone()
    driver._spark = driver.process = gone
    driver.stop()
    assert gone.asked == ["kill", "stop"]


@pytest.mark.spark
def test_an_event_log_is_complete(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from streamgroup.spark.options import SparkOptions\n"
        "from streamgroup.spark.session import open_session\n"
        "conf = ('spark.eventLog.enabled=true', f'spark.eventLog.dir={sys.argv[1]}')\n"
        "with open_session(SparkOptions(master='local[1]', spark_conf=conf)) as session:\n"
        "    assert session.spark.range(3).count() == 3\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=120)
    names = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert any(name.startswith("events_1_") for name in names)
    assert not [name for name in names if name.endswith(".inprogress")]


def test_servers_of_pyspark_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from pyspark import accumulators

    classic._silence_servers()
    kinds = [kind for kind in vars(accumulators).values() if isinstance(kind, type)]
    servers = [kind for kind in kinds if issubclass(kind, socketserver.BaseServer)]
    assert any(kind.__module__ == "pyspark.accumulators" for kind in servers)
    for kind in servers:
        server = kind.__new__(kind)
        server.handle_error(cast(Any, None), ("h", 1))
    assert not capsys.readouterr().err
