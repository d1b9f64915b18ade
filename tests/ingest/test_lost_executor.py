"""An executor, or a Python worker, is killed (-9) in each step of an ingest on a cluster: Spark does its work again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamgroup.ingest.options import make_options
from streamgroup.ingest.run import ingest

pytestmark = pytest.mark.spark

STEPS = ("reading", "checking the order", "ranking keys", "writing")
ROOT = Path(__file__).parents[2]
CODE = """
import sys
from streamgroup.ingest.options import make_options
from streamgroup.ingest.run import ingest

class Steps:
    def start(self, total, text):
        print(text, flush=True)
    def advance(self, done):
        pass

if __name__ == "__main__":
    options = make_options(reader="csv", inputs=(sys.argv[1],), output=sys.argv[2], driver_memory="1g",
                           master="local-cluster[2,1,1024]", spark_conf=("spark.task.maxFailures=8",))
    print(ingest(options, Steps()).manifest.fingerprint, flush=True)
"""


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("raw") / "x.csv"
    rows = (f"{1_600_000_000 + n * 7919 % 999_983},key-{n * n % 100_003}" for n in range(1_500_000))
    path.write_text("time,key\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def right(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("right") / "x.trace"
    options = make_options(reader="csv", inputs=(str(raw),), output=out, engine="local")
    return str(ingest(options).manifest.fingerprint)


def processes(temporary: Path, what: str) -> list[int]:
    """Find the processes of an ingest: `executor` or `worker`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
                parent = (
                    Path("/proc") / (entry / "stat").read_text().rsplit(")", 1)[1].split()[1] / "cmdline"
                ).read_bytes()
            except OSError:
                continue
            ours = str(temporary).encode() in environment + command
            is_executor = b"CoarseGrainedExecutorBackend" in command
            # The daemon of an executor starts one process for each task.
            is_worker = b"pyspark.daemon" in command and b"pyspark.daemon" in parent
            if ours and (is_executor if what == "executor" else is_worker):
                found.append(int(entry.name))
    return found


def killed_in(step: str, what: str, raw: Path, folder: Path) -> str:
    temporary = folder / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CODE, str(raw), str(folder / "x.trace")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    killed = 0
    for line in process.stdout:
        last = line.strip()
        if last == step:
            until = time.monotonic() + 20
            while not killed and time.monotonic() < until and process.poll() is None:
                for victim in processes(temporary, what)[:1]:
                    os.kill(victim, signal.SIGKILL)
                    killed += 1
                time.sleep(0.02)
    errors = process.communicate()[1]
    assert (process.returncode, errors) == (0, "")
    assert killed == 1
    assert list(temporary.iterdir()) == []
    return last


def test_an_executor_that_dies_while_parts_are_written(raw: Path, right: str, tmp_path: Path) -> None:
    assert killed_in("writing", "executor", raw, tmp_path) == right
    assert [entry.name for entry in (tmp_path / "x.trace" / "tuples").iterdir()] == ["part-00000.parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["executor", "worker"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_in_each_step(raw: Path, right: str, tmp_path: Path, step: str, what: str) -> None:
    assert killed_in(step, what, raw, tmp_path) == right
