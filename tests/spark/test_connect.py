"""Sessions on a Spark Connect server that runs beside the tests."""

import importlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgroup.base.errors import DataError, EnvironmentFault, RunError, UsageError
from streamgroup.base.progress import Silent
from streamgroup.ingest import from_dataframe
from streamgroup.ingest.make_trace import ingest
from streamgroup.ingest.options import make_options
from streamgroup.spark import connect
from streamgroup.spark.errors_from_tasks import errors_as_text
from streamgroup.spark.executor_package import ensure_package
from streamgroup.spark.options import SparkOptions, checked
from streamgroup.spark.session import existing_session, open_session
from streamgroup.spark.task_pool import run_each
from streamgroup.synth.generate_trace import synthesise
from streamgroup.traces.manifest import Manifest
from tests.spark.connect_server import connect_server, free_port

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose Python finds another streamgroup than ours, and our tests."""
    pytest.importorskip("grpc_status")
    folder = tmp_path_factory.mktemp("server")
    other = folder / "other" / "streamgroup"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("__version__ = 'other'\n")
    (folder / "other" / "tests").symlink_to(ROOT / "tests")
    with connect_server(folder, python_path=str(other.parent)) as url:
        yield url


class Steps:
    """Progress that is kept."""

    def __init__(self) -> None:
        self.finished = 0

    def start(self, total: int | None, text: str) -> None:
        """Begin a step."""

    def advance(self, done: int) -> None:
        self.finished += done


def failing(kind: str) -> Any:
    """Make a function for tasks that raises; it is pickled whole."""

    def fail(batches: Any) -> Any:
        with errors_as_text():
            for _ in batches:
                raise DataError("the data", "mend them") if kind == "ours" else ValueError("two\nlines")
        yield from ()

    return fail


def same(batches: Any) -> Any:
    """Give back what comes."""
    yield from batches


def where(batches: Any) -> Any:
    """Report which package a task imports."""
    import streamgroup
    from streamgroup.groupings import kg

    for _ in batches:
        yield pa.record_batch([pa.array([f"{streamgroup.__version__} {kg.__file__}"])], names=["x"])


@pytest.mark.spark
def test_a_session_on_a_server(server: str) -> None:
    before = dict(os.environ), list(sys.path)
    settings = ("spark.sql.shuffle.partitions=3",)
    with open_session(SparkOptions(remote=f"{server}/;user_id=me", spark_conf=settings)) as session:
        assert (session.master, session.log, session.remote) == (server, None, True)
        assert session.parallelism == 2
        assert session.spark.conf.get("spark.sql.shuffle.partitions") == "3"
        # Its Python finds another package of our name, so ours is sent.
        ensure_package(session)
        rows = session.spark.range(0, 4, 1, 4).mapInArrow(where, "x string").collect()
        assert {row.x.split()[0] for row in rows} == {sys.modules["streamgroup"].__version__}
        assert all("unpacked" in row.x for row in rows)
        steps = Steps()
        count = session.run(lambda: session.spark.range(0, 10, 1, 4).mapInArrow(same, "id long").count(), steps, 4, "")
        assert (count, steps.finished) == (10, 4)
        for kind, expected in (("ours", DataError), ("other", RunError)):
            broken = session.spark.range(1).mapInArrow(failing(kind), "id long")
            with pytest.raises(expected) as caught:
                session.run(broken.collect, Silent(), 1, "")
            assert caught.value.message == ("the data" if kind == "ours" else "Spark failed: ValueError: two")
        assert sorted(run_each(session, len, ["a", 1])) == [
            (0, 1, None),
            (1, None, "TypeError: object of type 'int' has no len()"),
        ]
    assert (dict(os.environ), sys.path) == before


def ingested(frame: Any, folder: Path) -> Manifest:
    made = from_dataframe(frame, time="1700000000 + id", key="id", output=folder / "x.trace")
    return made.manifest


def read(frame: Any, folder: Path) -> Manifest:
    (folder / "x.csv").write_text("time,key\n1,a\n2,b\n3,a\n")
    options = make_options(reader="csv", inputs=(str(folder / "x.csv"),), output=folder / "x.trace")
    with existing_session(frame.sparkSession) as session:
        return ingest(options, session=session).manifest


def synthetic(frame: Any, folder: Path) -> Manifest:
    with existing_session(frame.sparkSession) as session:
        return synthesise("uniform", {"tuples": 3, "keys": 2}, folder / "x.trace", session=session)


@pytest.mark.spark
@pytest.mark.parametrize("make", [ingested, read, synthetic])
def test_the_package_is_sent_in_a_session_of_the_callers(
    server: str, tmp_path: Path, make: Callable[[Any, Path], Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers `local[2]` when it is asked for its master, and its Python finds another package."""
    from pyspark.sql import SparkSession

    # PySpark leaves it set, and would take the classic session of other tests for one of Connect.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    spark: Any = SparkSession.builder.remote(server).create()  # type: ignore[attr-defined]
    try:
        assert make(spark.range(3), tmp_path).tuples == 3
        assert [row.id for row in spark.range(2).collect()] == [0, 1]
    finally:
        spark.stop()


@pytest.mark.spark
@pytest.mark.parametrize("name", ["spark.executor.memory", "spark.sql.warehouse.dir"])
def test_settings_that_belong_to_the_server(server: str, name: str) -> None:
    options = SparkOptions(remote=server, spark_conf=(f"{name}=1g",))
    with pytest.raises(UsageError, match=f"--spark-conf {name}: .* cannot change it") as caught, open_session(options):
        pass
    assert "whoever starts the server" in (caught.value.hint or "")


def test_no_server() -> None:
    port = free_port()
    opening = open_session(SparkOptions(remote=f"sc://127.0.0.1:{port}"))
    with pytest.raises(EnvironmentFault, match=f"cannot connect to sc://127.0.0.1:{port}: "), opening:
        pass


def test_a_server_of_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "_ANSWER", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        remote = f"sc://127.0.0.1:{silent.getsockname()[1]}/;token=secret"
        opening = open_session(SparkOptions(remote=remote))
        with pytest.raises(EnvironmentFault, match=r"^sc://127\.0\.0\.1:\d+ does not answer"), opening:
            pass


def test_a_process_ends_soon_whose_server_never_answered() -> None:
    """Left to itself, PySpark's client tries for minutes to reach its server when the process ends."""
    program = (
        "import sys\n"
        "from streamgroup.spark import connect\n"
        "from streamgroup.spark.options import SparkOptions\n"
        "from streamgroup.spark.session import open_session\n"
        "connect._ANSWER = 0.5\n"
        "with open_session(SparkOptions(remote=sys.argv[1])):\n"
        "    pass\n"
    )
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        command = [sys.executable, "-c", program, f"sc://127.0.0.1:{silent.getsockname()[1]}"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "does not answer" in ended.stderr


def test_packages_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name="grpc")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(EnvironmentFault, match=r"not installed \(grpc\)") as caught:
        connect.check_packages()
    assert caught.value.hint == "pip install 'streamgroup[connect]'"


@pytest.mark.parametrize(
    "remote", ["http://h:1", "sc://", "sc://h:1/path", "local[2]", "sc://h:1/;token", "sc://h:99999", "sc://h:0"]
)
def test_addresses_that_are_none(remote: str) -> None:
    with pytest.raises(UsageError, match=r"--remote: .* is not a Spark Connect server"):
        checked(SparkOptions, {"remote": remote})


@pytest.mark.parametrize(
    "remote", ["sc://h", "sc://h:1", "sc://h:65535", "sc://h:1/", "sc://[::1]:1/;token=a;use_ssl=true"]
)
def test_addresses(remote: str) -> None:
    assert checked(SparkOptions, {"remote": remote}).place == remote.partition("/;")[0].rstrip("/")


@pytest.mark.parametrize("flag", ["master", "driver_memory"])
def test_a_server_has_a_driver_already(flag: str) -> None:
    with pytest.raises(UsageError, match=f"--{flag.replace('_', '-')} starts a driver"):
        checked(SparkOptions, {"remote": "sc://h", flag: {"master": "local[*]", "driver_memory": "2g"}[flag]})
