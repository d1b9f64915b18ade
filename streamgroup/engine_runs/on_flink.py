"""The job on Flink: a Python of its own runs it on Flink's local cluster, and what it measured is in files then."""

import contextlib
import os
import pickle
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgroup.base.errors import EnvironmentFault, RunError, StreamgroupError
from streamgroup.base.progress import Progress
from streamgroup.engine_runs.flink.find_python import ROOT, FlinkPlace, find_flink
from streamgroup.engine_runs.flink.source_and_worker_without_flink import FlinkJob, source_file, worker_file
from streamgroup.engine_runs.source_task import SourceJob, service_times
from streamgroup.engine_runs.tuple_columns import READ
from streamgroup.engine_runs.worker_task import WorkerJob

__all__ = ["run_job"]

_PROGRAM = "from streamgroup.engine_runs.flink.pyflink_job import main; main()"
# How long each Python process may take to start, on few cores.
_ALLOWED_EACH_S = 10.0
_POLL_S = 0.1
# What Flink says, what it means, and what to do; the first that is found counts.
_CAUSES: dict[str, tuple[type[StreamgroupError], str, str]] = {
    "OutOfMemoryError": (RunError, "Flink ran out of memory", "run it with fewer workers"),
    "Insufficient number of network buffers": (
        RunError, "Flink ran out of network buffers", "run it with fewer workers",
    ),
    "Java gateway process exited": (
        EnvironmentFault, "Flink's JVM did not start", "install Java 17 or newer, or set JAVA_HOME",
    ),
}  # fmt: skip
_AGAIN = "a run cannot go on without it: run it again, with fewer workers if memory is short"
# The same, where no task failed by itself.
_ENDED = {
    "StatusRuntimeException: CANCELLED": "the Python process of a worker or a source ended",
    "ConnectionRefusedError": "its JVM ended",
    "Unable to get the Python watchdog object": "its JVM ended",
    "Py4JNetworkError": "its JVM ended",
}
# How an error in a task is reported, from a process of its own and from within the JVM.
_FAILED = ("Error received from SDK harness", "pemja.core.PythonException")
_PYTHON_ERROR = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*\w*(?:Error|Fault|Exception): (?!An error occurred while).*$", re.MULTILINE
)
_JAVA_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.*\S.*)$", re.MULTILINE)


def run_job(place: FlinkPlace, table: pa.Table, sources: SourceJob, workers: WorkerJob, progress: Progress) -> pa.Table:
    """Send tuples (columns `READ`) through sources and workers; return them with times and reports, in any order.

    EnvironmentFault without PyFlink, RunError when a process is lost or the job takes longer than it can.
    """
    options = sources.options
    python, _ = find_flink(place)
    with tempfile.TemporaryDirectory(prefix="streamgroup-flink-") as scratch:
        directory = Path(scratch)
        _write_sources(directory, table, options.sources)
        last = int(pc.max(table["arrival"]).as_py())
        (directory / "job").write_bytes(pickle.dumps(FlinkJob(scratch, sources, workers, last)))
        progress.start(options.sources + options.workers, "run on Flink")
        _execute(python, directory, _limit(place, table, sources, workers, last), progress)
        files = [worker_file(directory, worker) for worker in range(options.workers)]
        lost = [path.stem for path in files if not path.exists()]
        if lost:
            raise RunError(f"Flink's job ended, and nothing came from {', '.join(lost)}", "please report it")
        return pa.concat_tables(pa.ipc.open_file(pa.BufferReader(path.read_bytes())).read_all() for path in files)


def _write_sources(directory: Path, table: pa.Table, sources: int) -> None:
    for source in range(sources):
        mine = table.filter(pc.equal(table["source"], source)).sort_by("seq").combine_chunks()
        with pa.ipc.new_file(str(source_file(directory, source)), READ) as file:
            file.write_table(mine)


def _limit(place: FlinkPlace, table: pa.Table, sources: SourceJob, workers: WorkerJob, last: int) -> float:
    """Return how long the job may take, in s: as if one worker got all tuples, the slowest of them."""
    n = sources.options.workers
    work = max(
        int(service_times(sources.service, table, np.full(len(table), worker, np.int32)).sum()) for worker in {0, n - 1}
    )
    processes = n + sources.options.sources
    return place.allowed_s + _ALLOWED_EACH_S * processes + (last + work + workers.lead_ns + workers.delay_ns) / 1e9


def _execute(python: Path, directory: Path, limit_s: float, progress: Progress) -> None:
    logs, said = directory / "log", directory / "said"
    logs.mkdir()
    path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "FLINK_LOG_DIR": str(logs),
        # What the JVM leaves when it is killed goes with the directory of the run.
        "JAVA_TOOL_OPTIONS": f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} -Djava.io.tmpdir={directory}".strip(),
    }
    environment.pop("FLINK_HOME", None)
    until, ready = time.monotonic() + limit_s, 0
    with said.open("wb") as output:
        # A group of its own, with the JVM and all Python processes.
        job = subprocess.Popen(
            [python, "-c", _PROGRAM, str(directory)], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            while job.poll() is None:
                if time.monotonic() > until:
                    raise RunError(
                        f"Flink's job did not end within {limit_s:.0f} s, the time of all arrivals and services and "
                        f"what it may take to start: {_state(directory)}",
                        "is the machine too busy to start as many processes? Try fewer workers",
                    )
                time.sleep(_POLL_S)
                now = len(list(directory.glob("*.ready")))
                progress.advance(now - ready)
                ready = now
        finally:
            _end(job)
    if job.returncode:
        raise _explained(said.read_text(errors="replace"), job.returncode)


def _state(directory: Path) -> str:
    ready, written = (len(list(directory.glob(pattern))) for pattern in ("*.ready", "worker-*.arrow"))
    return f"{ready} tasks were ready, {written} workers were done"


def _end(job: "subprocess.Popen[bytes]") -> None:
    """End what is left of a job: Python processes may outlive their JVM."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def _explained(said: str, code: int) -> StreamgroupError:
    for phrase, (kind, message, hint) in _CAUSES.items():
        if phrase in said:
            return kind(f"{message} ({phrase})", hint)
    if not any(phrase in said for phrase in _FAILED):
        for phrase, message in _ENDED.items():
            if phrase in said:
                return RunError(f"Flink's job failed: {message}: it was killed, or there was too little memory", _AGAIN)
    # An error in Python is within those in Java that it caused, of which the last is the cause of the others.
    found = _PYTHON_ERROR.findall(said)[:1] or _JAVA_CAUSE.findall(said) or said.split("\n")
    return RunError(f"Flink's job failed with code {code}: {found[-1][:300] or 'it says nothing'}")
