"""The parts of a run on Flink, without Flink."""

import json
import os
import queue
import signal
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import streamgroup as sg
from streamgroup.base.errors import EnvironmentFault, RunError, UsageError
from streamgroup.base.progress import Silent
from streamgroup.cli.app import app
from streamgroup.engine_runs import on_flink
from streamgroup.engine_runs.flink.agreed_start import agreed_start, announce
from streamgroup.engine_runs.flink.find_python import FlinkPlace, find_flink
from streamgroup.engine_runs.flink.source_and_worker_without_flink import (
    END,
    HELLO,
    FlinkJob,
    Source,
    Tuple,
    Worker,
    worker_file,
)
from streamgroup.engine_runs.run_on_engine import _tuples
from streamgroup.engine_runs.source_task import SourceJob
from streamgroup.engine_runs.unsupported_options import FLINK, refuse
from streamgroup.engine_runs.worker_task import WorkerJob
from streamgroup.replay.replay_trace import prepared, replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import make_plan
from streamgroup.traces.trace import Trace, open_trace

TUPLES = 300


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("flink") / "z.trace"
    sg.synth("zipf", path, tuples=TUPLES, keys=30, exponent=1.1, seed=3)
    return open_trace(path)


def ran(trace: Trace, directory: Path, options: ReplayOptions) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Run sources and workers as threads, with a queue to each worker; the tuples in order, and all reports."""
    run = prepared(trace, options)
    table = _tuples(run)
    on_flink._write_sources(directory, table, options.sources)
    job = FlinkJob(
        str(directory), SourceJob(options, run.service), WorkerJob(50_000_000, run.plan.network_delay, spins=False),
        int(table["arrival"].to_numpy().max()),
    )  # fmt: skip
    queues: list[queue.Queue[tuple[Any, ...]]] = [queue.Queue() for _ in range(options.workers)]
    most = max(int((table["source"].to_numpy() == source).sum()) for source in range(options.sources))

    def send(source: int) -> None:
        task = Source(job, source)
        for _ in range(most + 2):
            for message in task.send_next():
                queues[message[0]].put(message)

    def receive(worker: int) -> None:
        task, ends = Worker(job, worker), 0
        while ends < options.sources:
            message = queues[worker].get(timeout=20)
            ends += message[1] == END
            task.receive(message)

    threads = [threading.Thread(target=send, args=(source,)) for source in range(options.sources)]
    threads += [threading.Thread(target=receive, args=(worker,)) for worker in range(options.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    files = [worker_file(directory, worker) for worker in range(options.workers)]
    found = pa.concat_tables(pa.ipc.open_file(pa.BufferReader(path.read_bytes())).read_all() for path in files)
    reports = [json.loads(text) for text in found["report"].to_pylist() if text is not None]
    return found.filter(found["report"].is_null()).sort_by("seq"), reports


@pytest.mark.parametrize("assignment", ["shuffle", "key"])
def test_sources_and_workers_do_what_a_replay_does(trace: Trace, tmp_path: Path, assignment: str) -> None:
    options = ReplayOptions(
        "d_choices", 3, sources=2, service="2ms", arrivals="utilization=0.6", network_delay="1ms", slowdown="one:2",
        source_assignment=assignment,
    )  # fmt: skip
    (tmp_path / "run").mkdir()
    tuples, reports = ran(trace, tmp_path / "run", options)
    replay(trace, options, log_directory=tmp_path / "log")
    logged = pq.read_table(tmp_path / "log")
    assert tuples["seq"].to_pylist() == list(range(TUPLES))
    assert tuples["worker"].to_pylist() == logged["worker"].to_pylist()
    assert tuples["service"].to_numpy().sum() == (logged["finish_ns"].to_numpy() - logged["start_ns"].to_numpy()).sum()
    start, finish, late = (tuples[name].to_numpy() for name in ("start", "finish", "late"))
    # Not before they can have arrived, nor while another is served.
    assert (start >= logged["arrival_ns"].to_numpy() + 1_000_000).all()
    assert (finish - start >= tuples["service"].to_numpy()).all()
    assert (late >= 0).all()
    for worker in range(3):
        mine = np.flatnonzero(tuples["worker"].to_numpy() == worker)
        order = mine[np.argsort(start[mine])]
        assert (start[order[1:]] >= finish[order[:-1]]).all()
    workers = {report["worker"]: report for report in reports if "worker" in report}
    assert sorted(workers) == [0, 1, 2]
    counts = np.zeros(trace.keys, dtype=np.int64)
    for report in workers.values():
        for key, count in report["state"]:
            counts[key] += count
    assert counts.tolist() == trace.dictionary().count.tolist()
    sources = sorted(report["source"] for report in reports if "source" in report)
    assert sources == [0, 1]
    sent = [at for report in reports if "source" in report for at in report["sent_late_ns"]]
    assert len(sent) == TUPLES
    assert min(sent) >= 0


def test_a_worker_refuses_the_tuple_of_another(tmp_path: Path) -> None:
    job = FlinkJob(str(tmp_path), SourceJob(ReplayOptions("kg", 2, sources=1), None), WorkerJob(0, 0, spins=False), 0)
    worker = Worker(job, 1)
    worker.receive((1, HELLO))
    assert [path.name for path in tmp_path.iterdir()] == ["worker-1.ready"]
    with pytest.raises(RuntimeError, match="worker 1 got a tuple of worker 0"):
        worker.receive(tuple(Tuple(0, 0, 0, 0, 0, b"a", None, None)))


def test_lateness_is_from_when_a_worker_could_have_begun(tmp_path: Path) -> None:
    job = FlinkJob(str(tmp_path), SourceJob(ReplayOptions("kg", 1, sources=1), None), WorkerJob(0, 0, spins=False), 0)
    worker = Worker(job, 0)
    worker.receive((0, HELLO))
    announce(tmp_path, "source-0")
    time.sleep(0.03)
    # One that came 30 ms late through the engine, and one that waited for the first: only what is lost in between.
    for seq in (0, 1):
        worker.receive(tuple(Tuple(0, seq, 0, 20_000_000, 0, b"a", None, None)))
    worker.receive((0, END, '{"source": 0, "behind_ns": -5, "ready_spread_ns": 7}'))
    found = pa.ipc.open_file(pa.BufferReader(worker_file(tmp_path, 0).read_bytes())).read_all()
    late = found["late"].to_pylist()
    assert late[0] >= 30_000_000
    assert 0 <= late[1] <= found["start"].to_pylist()[1] - found["finish"].to_pylist()[0]


def test_all_agree_on_a_start_that_none_has_reached(tmp_path: Path) -> None:
    for name in ("a", "b"):
        announce(tmp_path, name)
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        announce(tmp_path, "c")

    found = agreed_start(tmp_path, 3, 5, pause)
    ready = [int(path.read_bytes()) for path in tmp_path.glob("*.ready")]
    assert found == (max(ready) + 5, max(ready) - min(ready))
    assert found == agreed_start(tmp_path, 3, 5)
    assert len(waited) == 1


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_missing_environment_is_said_with_the_command_that_makes_it(trace: Trace, tmp_path: Path) -> None:
    asked = [
        "run", str(trace.path), "-g", "kg", "-n", "2", "--service", "1ms", "--engine", "flink", "--flink-python",
        str(tmp_path / "none"), "-o", str(tmp_path / "run"),
    ]  # fmt: skip
    ran = CliRunner().invoke(app, asked)
    assert ran.exit_code == 3
    assert f"there is no PyFlink: {tmp_path}/none does not exist" in ran.stderr
    assert "scripts/flink-environment makes an environment with it" in ran.stderr
    assert not list(tmp_path.iterdir())


def test_a_python_without_pyflink_is_said(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"cannot run jobs of Flink: .*No module named 'pyflink'"):
        find_flink(FlinkPlace(str(sys.executable)))
    with pytest.raises(EnvironmentFault, match="it says nothing"):
        find_flink(FlinkPlace(str(program(tmp_path / "silent", "exit 1"))))
    (tmp_path / "text").write_text("no program")
    with pytest.raises(EnvironmentFault, match="text does not run"):
        find_flink(FlinkPlace(str(tmp_path / "text")))
    assert find_flink(FlinkPlace(str(program(tmp_path / "good", "echo 2.3.0"))))[1] == "2.3.0"


def test_a_machine_without_java_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentFault, match="there is no Java on this machine, and Flink needs it"):
        find_flink(FlinkPlace(str(program(tmp_path / "good", "echo 2.3.0"))))


def test_a_job_that_hangs_is_ended_with_all_its_processes(tmp_path: Path) -> None:
    python = program(tmp_path / "python", f"sleep 600 & echo $! > {tmp_path}/child; wait")
    (tmp_path / "job").mkdir()
    begun = time.monotonic()
    with pytest.raises(RunError, match=r"did not end within 1 s.*0 tasks were ready, 0 workers were done"):
        on_flink._execute(python, tmp_path / "job", 1.0, Silent())
    assert time.monotonic() - begun < 20
    child = int((tmp_path / "child").read_text())
    until = time.monotonic() + 10
    while _runs(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _runs(child)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize(
    ("said", "kind", "expected"),
    [
        ("Traceback\nValueError: bad\n", RunError, "failed with code 7: ValueError: bad"),
        ("Caused by: java.lang.IllegalStateException: gone\n", RunError, "code 7: gone"),
        ("java.lang.OutOfMemoryError: heap", RunError, "ran out of memory"),
        (
            "Exception: Java gateway process exited before sending its port number",
            EnvironmentFault,
            "JVM did not start",
        ),
        ("ConnectionRefusedError: [Errno 111]", RunError, "its JVM ended: it was killed"),
        ("x.StatusRuntimeException: CANCELLED: client", RunError, "the Python process of a worker or a source ended"),
        (
            "Error received from SDK harness\nValueError: bad\nx.StatusRuntimeException: CANCELLED\nCaused by: x",
            RunError,
            "code 7: ValueError: bad",
        ),
        ("Caused by: pemja.core.PythonException: <class KeyError>: 7\n", RunError, "code 7: <class KeyError>: 7"),
        ("", RunError, "it says nothing"),
    ],
)
def test_what_flink_says_is_explained(said: str, kind: type[Exception], expected: str, tmp_path: Path) -> None:
    python = program(tmp_path / "python", f"printf '%s' '{said}'; exit 7")
    (tmp_path / "job").mkdir()
    with pytest.raises(kind, match=expected):
        on_flink._execute(python, tmp_path / "job", 60.0, Silent())


def test_a_job_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    with pytest.raises(RunError, match=f"code {-signal.SIGKILL}"):
        on_flink._execute(program(tmp_path / "python", "kill -9 $$"), tmp_path / "job", 60.0, Silent())


def test_the_time_limit_is_for_one_worker_with_all_tuples(trace: Trace) -> None:
    options = ReplayOptions("kg", 4, sources=5, service="10ms", arrivals="utilization=0.5", slowdown="one:3")
    run = prepared(trace, options)
    table = _tuples(run)
    last = int(table["arrival"].to_numpy().max())
    limit = on_flink._limit(
        FlinkPlace(allowed_s=20), table, SourceJob(options, run.service), WorkerJob(3 * 10**9, 0, spins=False), last
    )
    assert limit == pytest.approx(20 + 10 * 9 + 3 + last / 1e9 + TUPLES * 0.03)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"arrivals": "saturate"}, "nothing flows back to Flink's sources"),
        ({"join": ("1s",)}, "the subtasks of Flink's job start and end together"),
        ({"queue_capacity": 5}, "those of Flink are network buffers"),
        ({"grouping": "fish"}, "nothing flows back to Flink's sources"),
    ],
)
def test_what_flink_cannot_do_is_refused_with_the_reason(trace: Trace, given: dict[str, Any], reason: str) -> None:
    options = ReplayOptions(**{"grouping": "kg", "workers": 4, "arrivals": "rate=100", "sources": 5} | given)
    with pytest.raises(UsageError, match=reason):
        refuse(make_plan(trace, options), "sleep", FLINK)


def test_options_of_the_other_engine_are_refused(trace: Trace) -> None:
    with pytest.raises(UsageError, match="master: these are options of Spark"):
        sg.run(trace.path, "kg", 2, engine="flink", master="local[2]", arrivals="rate=100")
    with pytest.raises(UsageError, match="--flink-python is an option of Flink"):
        sg.run(trace.path, "kg", 2, flink_python="python3", arrivals="rate=100")
    dry = ["run", str(trace.path), "-g", "pkg", "-n", "2", "--service", "1ms", "--engine", "flink", "--dry-run"]
    assert CliRunner().invoke(app, dry).exit_code == 0
    refused = CliRunner().invoke(app, [*dry, "--queue-capacity", "3"])
    assert (refused.exit_code, "network buffers" in refused.stderr) == (2, True)
