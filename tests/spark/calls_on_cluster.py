"""What tests call in the process that has a session on a cluster, see `tests.spark.session_on_cluster`."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streamgroup.cli.app import app
from streamgroup.ingest import make_trace as ingest_run
from streamgroup.ingest.make_trace import ingest
from streamgroup.ingest.options import make_options
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import Session
from streamgroup.spark.task_pool import run_each
from streamgroup.study.sweep import cells_on_spark
from streamgroup.synth.generate_trace import synthesise
from tests.spark.task_pool_work import work

_PATIENCE_S = 20


def run_jobs(session: Session, jobs: list[str]) -> list[Any]:
    """Run jobs in tasks, return what ended in the order in which it did."""
    return [list(found) for found in run_each(session, work, jobs)]


def ingest_files(session: Session, output: str, inputs: list[str]) -> None:
    """Ingest CSV files."""
    ingest(make_options(reader="csv", inputs=tuple(inputs), output=output), session=session)


def make_synthetic(session: Session, generator: str, given: dict[str, Any], output: str) -> None:
    """Make a synthetic trace."""
    synthesise(generator, given, Path(output), session=session)


def run_command(session: Session, *words: str) -> tuple[int, str, str]:
    """Run a command of `streamgroup` that asks for this cluster; return its exit code, stdout and stderr."""
    with shared(session):
        found = CliRunner().invoke(app, words)
    return found.exit_code, found.stdout, found.stderr


@contextlib.contextmanager
def shared(session: Session) -> Any:
    """Let commands have the session that is open, when they ask for its master."""

    def opened(options: SparkOptions, _: object = None) -> Any:
        assert options.master == session.master
        return contextlib.nullcontext(session)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_on_spark, "open_session", opened)
        patch.setattr(ingest_run, "start_session", opened)
        yield


class _Killer:
    """Progress that kills an executor or a Python worker as soon as a step begins (at each step of that name)."""

    def __init__(self, step: str, what: str) -> None:
        self._step, self._what = step, what
        self._thread: threading.Thread | None = None
        self.killed = 0

    def start(self, total: int | None, text: str) -> None:
        if text == self._step and self._thread is None:
            self._thread = threading.Thread(target=self._kill)
            self._thread.start()

    def advance(self, done: int) -> None:
        """Nothing."""

    def _kill(self) -> None:
        until = time.monotonic() + _PATIENCE_S
        while not self.killed and time.monotonic() < until:
            for victim in _processes(self._what)[:1]:
                os.kill(victim, signal.SIGKILL)
                self.killed += 1
            time.sleep(0.02)

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()


def ingest_killed(session: Session, step: str, what: str, path: str, output: str, options: dict[str, Any]) -> Any:
    """Kill an `executor` or a `worker` (-9) in a step of an ingest; return the fingerprint and how many were killed."""
    killer = _Killer(step, what)
    try:
        made = ingest(make_options(inputs=(path,), output=output, **options), killer, session)
    finally:
        killer.join()
    return made.manifest.fingerprint, killer.killed


def _processes(what: str) -> list[int]:
    """Find the executors of this cluster, or the Python workers in them."""
    found = []
    ours = os.environ["TMPDIR"].encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
                parent = (
                    Path("/proc") / (entry / "stat").read_text().rsplit(")", 1)[1].split()[1] / "cmdline"
                ).read_bytes()
            except OSError:
                continue
            is_executor = b"CoarseGrainedExecutorBackend" in command
            # The daemon of an executor starts one process for each task.
            is_worker = b"pyspark.daemon" in command and b"pyspark.daemon" in parent
            if ours in environment + command and (is_executor if what == "executor" else is_worker):
                found.append(int(entry.name))
    return found
