"""Fixtures that several folders share, and the order in which tests run."""

import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.replay import interpreted_or_compiled
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import Session, open_session
from tests.spark.session_on_cluster import Cluster, open_cluster

_ROOT = Path(__file__).parents[1]
_KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_DEFAULT_REGION": "us-east-1",
}

# How long an example takes says more about a busy machine than about the code.
settings.register_profile("busy machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")


class Bucket(NamedTuple):
    """A folder of its own in a bucket of an S3 server; `urls` are made of names in it."""

    port: int
    folder: str

    def url(self, name: str = "", bucket: str = "bucket") -> str:
        return f"s3://{bucket}/{self.folder}/{name}?endpoint_override=127.0.0.1:{self.port}&scheme=http"

    def place(self, name: str = "") -> StoragePath:
        return locate(self.url(name))

    def put(self, name: str, content: bytes) -> str:
        with self.place(name).writing() as file:
            file.write(content)
        return self.url(name)

    def upload(self, folder: Path, name: str) -> str:
        """Copies a local folder."""
        for path in folder.rglob("*"):
            if path.is_file():
                self.put(f"{name}/{path.relative_to(folder)}", path.read_bytes())
        return self.url(name)

    def names(self) -> list[str]:
        """Lists the files by their paths in the folder."""
        whole = self.place()
        return [entry.place.within(whole) for entry in whole.entries(recursive=True) if not entry.is_dir]


@cache
def _uses_spark(file: str) -> bool:
    """Return whether a test file, named from the root of the repository, opens a session or takes that of others."""
    return re.search(r"mark\.spark|\bspark: Session|open_session\(", (_ROOT / file).read_text()) is not None


def _turn(item: pytest.Item) -> int:
    """Return when a test comes, 0 first."""
    file = item.nodeid.split("::")[0]
    if _uses_spark(file):
        return int(item.path.name != "test_class_archive.py")
    if item.get_closest_marker("many_groupings"):
        return 4
    return 2 if file.startswith("tests/groupings/") else 3


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests by what they leave to later ones.

    Those that use Spark come first, and of these the ones that write the class-data archive. Then come those of
    groupings, whose code they compile. Those that replay through many groupings come last.
    """
    items.sort(key=_turn)


class _OneProcessAFile(LoadScopeScheduling):
    """Gives the tests of a file to one process: what one has compiled or loaded the next ones use.

    All that use Spark go to one process, so that only this one opens a session.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        return "spark" if _uses_spark(file) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Distribute tests in the order in which they are sorted."""
    config.option.loadscopereorder = False
    return _OneProcessAFile(config, log)


def pytest_collection_finish() -> None:
    """Keep what was imported and collected out of garbage collections: each would go through a million objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _interpreted_as_in_a_process_of_its_own() -> None:
    """Forget what earlier tests interpreted: a run that continues them would be compiled, which takes seconds."""
    interpreted_or_compiled._SPENT.clear()


@pytest.fixture(scope="session")
def _s3_port() -> Iterator[int]:
    command = [sys.executable, str(Path(__file__).with_name("s3_server.py"))]
    environment = {**os.environ, **_KEYS}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()
            server.wait(120)


@pytest.fixture
def bucket(_s3_port: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name, value in _KEYS.items():
        monkeypatch.setenv(name, value)
    return Bucket(_s3_port, request.node.name.replace("[", "-").replace("]", ""))


@pytest.fixture(scope="session")
def spark() -> Iterator[Session]:
    """Open the session of this process: PySpark has no more than one at a time."""
    with open_session(SparkOptions(master="local[2]", driver_memory="1g")) as session:
        yield session


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Open a session on a cluster of two executors, in a process of its own."""
    with open_cluster(tmp_path_factory.mktemp("cluster")) as opened:
        yield opened
