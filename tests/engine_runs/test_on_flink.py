"""Runs inside Flink's local cluster: the assignments and the state of a replay, in the tables of one."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import streamgroup as sg
from streamgroup.online import Partitioner
from tests.engine_runs.test_on_spark import STATE

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def python() -> str:
    """The Python of the environment with PyFlink, which is made where there is none."""
    made = subprocess.run([ROOT / "scripts" / "flink-environment"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engine") / "z.trace"
    sg.synth("zipf", path, tuples=2000, keys=300, exponent=1.1, seed=3)
    return path


def command(trace: Path, output: Path, python: str, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "streamgroup", "run", str(trace), "-n", "4", "-o", str(output), "--engine", "flink",
        "--flink-python", python, *more,
    ]  # fmt: skip


def test_four_workers_against_a_replay(trace: Path, tmp_path: Path, python: str) -> None:
    asked = command(
        trace, tmp_path / "run", python, "-g", "pkg", "--sources", "2", "--service", "100ms", "--arrivals",
        "utilization=0.9", "--app", "count", "--against-replay", "--json",
    )  # fmt: skip
    ran = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "assignments are equal, in all 2000 tuples" in ran.stderr
    rows = {row["metric"]: row for row in json.loads(ran.stdout)}
    expected = {name: 0.0 for name in STATE if rows[name]["predicted"] is not None}
    assert {name: rows[name]["error"] for name in expected} == expected
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["clock"] == "wall"
    engine = record["engine"]
    assert engine["name"] == "flink 2.3.0"
    assert engine["state"] == {"entries": rows["replicas"]["measured"], "equals_direct": True}
    assert engine["machine"]["service_measured_ms"] >= engine["machine"]["service_asked_ms"] == 100.0
    assert engine["machine"]["wake_ups"] == 4000
    assert 0 <= engine["sources"]["sent_late_mean_ms"] <= engine["sources"]["sent_late_max_ms"]
    log = pq.read_table(tmp_path / "run" / "assignments").to_pandas()
    assert len(log) == 2000
    assert (log.start_ns >= log.arrival_ns).all()
    # On a machine that kept up, the times are those of a replay too.
    if engine["machine"]["lateness_share"] < 0.05 and engine["machine"]["lateness_p99_ms"] < 10:
        assert abs(rows["makespan_s"]["calibrated_error"]) < 0.03


def test_hot_keys_delays_and_a_source_without_tuples(trace: Path, tmp_path: Path, python: str) -> None:
    few = tmp_path / "few.trace"
    sg.synth("zipf", few, tuples=300, keys=40, exponent=1.3, seed=1)
    options = {"sources": 3, "service": "10ms", "arrivals": "poisson-utilization=0.5", "slowdown": "one:2",
               "service_distribution": "exponential", "network_delay": "5ms", "source_assignment": "key"}  # fmt: skip
    found = sg.run(few, "d_choices", 2, engine="flink", flink_python=python, output=tmp_path / "run", **options)
    expected = sg.replay(few, "d_choices", 2, output=tmp_path / "replay", log=True, **options)
    assert {name: found.row[name] for name in STATE} == {name: expected.metrics[name] for name in STATE}
    assert "assignments are equal, in all 300 tuples" in sg.compare(tmp_path / "replay", tmp_path / "run").notes
    log = pq.read_table(tmp_path / "run" / "assignments").to_pandas()
    assert (log.start_ns >= log.arrival_ns + 5_000_000).all()


@pytest.mark.parametrize(
    ("mode", "program", "ended"),
    [
        ("sleep", b"java", "its JVM ended: it was killed"),
        ("spin", b"pyflink.fn_execution.beam.beam_boot", "the Python process of a worker or a source ended"),
    ],
)
def test_a_process_that_is_killed(
    trace: Path, tmp_path: Path, python: str, mode: str, program: bytes, ended: str
) -> None:
    """Sleeping workers are within the JVM, spinning ones are processes."""
    asked = command(
        trace, tmp_path / "run", python, "-g", "kg", "--sources", "1", "--service", "100ms", "--arrivals",
        "utilization=0.9", "--service-mode", mode,
    )  # fmt: skip
    scratch = tmp_path / "scratch"
    started, running = _serving(asked, scratch)
    os.kill(
        next(process for process, words in running.items() if program in words or program in words[0]), signal.SIGKILL
    )
    _, errors = started.communicate(timeout=400)
    assert started.returncode == 1, errors
    assert f"error: Flink's job failed: {ended}" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["scratch"]
    assert list(scratch.glob("streamgroup*")) == []
    assert not _left(running)


def test_nothing_runs_on_when_the_command_is_killed(trace: Path, tmp_path: Path, python: str) -> None:
    asked = command(
        trace, tmp_path / "run", python, "-g", "kg", "--sources", "1", "--service", "100ms", "--arrivals",
        "utilization=0.9",
    )  # fmt: skip
    started, running = _serving(asked, tmp_path / "scratch")
    started.kill()
    started.communicate(timeout=60)
    assert not (tmp_path / "run").exists()
    assert not _left(running)


def _serving(asked: list[str], scratch: Path) -> tuple["subprocess.Popen[str]", dict[int, list[bytes]]]:
    """Start a run, and wait until its workers serve; the command, and all that it started."""
    scratch.mkdir()
    started = subprocess.Popen(
        asked, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip
    until = time.monotonic() + 240
    while len(list(scratch.glob("*/*.ready"))) < 5 and time.monotonic() < until and started.poll() is None:
        time.sleep(0.2)
    time.sleep(4)
    running = _descendants(started.pid)
    assert len(running) >= 2
    return started, running


def _left(running: dict[int, list[bytes]]) -> list[int]:
    """Return which of the processes are there after a while."""
    until = time.monotonic() + 20
    while any(map(_runs, running)) and time.monotonic() < until:
        time.sleep(0.2)
    return list(filter(_runs, running))


_PARTITIONED = """
import sys

from pyflink.common import Configuration, Types
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import Partitioner as Base

class Named(FlinkPartitioner, Base):
    pass

class Where(ProcessFunction):
    def __init__(self, folder):
        self.folder = folder

    def open(self, runtime_context):
        subtask = runtime_context.get_index_of_this_subtask()
        self.file = open(f"{self.folder}/subtask-{subtask}", "w", buffering=1)

    def process_element(self, value, ctx):
        self.file.write(f"{value}\\n")
        return []

settings = Configuration()
for name in ("python.executable", "python.client.executable"):
    settings.set_string(name, sys.executable)
environment = StreamExecutionEnvironment.get_execution_environment(settings)
environment.set_parallelism(4)
keys = environment.from_collection([f"k{i % 17}" for i in range(200)], Types.STRING())
keys = keys.map(lambda key: key, Types.STRING()).set_parallelism(1)
keys = keys.partition_custom(Named("pkg", 0, 1), lambda key: key)
keys.process(Where(sys.argv[1]), Types.STRING())
environment.execute()
"""


def test_a_partitioner_in_a_job_of_pyflink(tmp_path: Path, python: str) -> None:
    """The code of the page on production, in a Python process that Flink starts."""
    page = (ROOT / "docs" / "in-production.md").read_text()
    (code,) = re.findall(r"^```python\n(class FlinkPartitioner.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "partitioned").write_text(f"from streamgroup.online import Partitioner\n{code}{_PARTITIONED}")
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [python, "partitioned", str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={
            **os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "FLINK_LOG_DIR": str(tmp_path),
            "_python_worker_execution_mode": "process",
        },
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    alone = Partitioner("pkg", 4, 0, sources=1)
    expected: dict[int, list[str]] = {subtask: [] for subtask in range(4)}
    for key in (f"k{i % 17}" for i in range(200)):
        expected[alone.choose(key.encode())].append(key)
    for subtask, keys in expected.items():
        assert (tmp_path / f"subtask-{subtask}").read_text().split() == keys


def _descendants(program: int) -> dict[int, list[bytes]]:
    """Find the processes that a process started, and those that they did, with their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if program in _ancestors(int(entry.name)):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
    return found


def _runs(process: int) -> bool:
    """Whether a process is there, and not only waited for by its parent."""
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _ancestors(process: int) -> list[int]:
    found = []
    while process > 1:
        process = int((Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()[1])
        found.append(process)
    return found
