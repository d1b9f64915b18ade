"""An executor, or a Python worker, is killed (-9) in each step of an ingest on a cluster: Spark does its work again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from streamgroup.ingest.options import make_options
from streamgroup.ingest.run import ingest

pytestmark = pytest.mark.spark

STEPS = ("reading", "checking the order", "cutting to the head", "ranking keys", "writing")
# Those that an input of several parts takes besides.
MORE_STEPS = ("sorting", "counting", "writing")
ROOT = Path(__file__).parents[2]
CODE = """
import json, sys
from streamgroup.ingest.options import make_options
from streamgroup.ingest.run import ingest

class Steps:
    def start(self, total, text):
        print(text, flush=True)
    def advance(self, done):
        pass

if __name__ == "__main__":
    options = make_options(inputs=(sys.argv[1],), output=sys.argv[2], driver_memory="1g", **json.loads(sys.argv[3]),
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
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Page views of an hour: few lines, and more tuples than a part has, in no order."""
    path = tmp_path_factory.mktemp("views") / "pageviews-20240803-060000"
    path.write_text("".join(f"en Page_{n} {4000 + n} 0\n" for n in range(2000)))
    return path


@pytest.fixture(scope="module")
def fingerprints() -> dict[str, str]:
    return {}


def right(path: Path, folder: Path, known: dict[str, str], **options: Any) -> str:
    """Make the trace in this process, once."""
    name = f"{path} {options}"
    if name not in known:
        asked = make_options(inputs=(str(path),), output=folder / "right.trace", engine="local", **options)
        known[name] = str(ingest(asked).manifest.fingerprint)
    return known[name]


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


def killed_in(step: str, what: str, raw: Path, folder: Path, **options: Any) -> str:
    temporary = folder / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CODE, str(raw), str(folder / "x.trace"), json.dumps(options)],
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


def test_an_executor_that_dies_while_parts_are_written(raw: Path, fingerprints: dict[str, str], tmp_path: Path) -> None:
    expected = right(raw, tmp_path, fingerprints, reader="csv")
    assert killed_in("writing", "executor", raw, tmp_path, reader="csv") == expected
    assert [entry.name for entry in (tmp_path / "x.trace" / "tuples").iterdir()] == ["part-00000.parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["executor", "worker"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_in_each_step(raw: Path, fingerprints: dict[str, str], tmp_path: Path, step: str, what: str) -> None:
    of_head = step in ("checking the order", "cutting to the head")
    options = {"reader": "csv", **({"head": 1_000_000} if of_head else {})}
    assert killed_in(step, what, raw, tmp_path, **options) == right(raw, tmp_path, fingerprints, **options)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["executor", "worker"])
@pytest.mark.parametrize("step", MORE_STEPS)
def test_killed_in_each_step_of_several_parts(
    views: Path, fingerprints: dict[str, str], tmp_path: Path, step: str, what: str
) -> None:
    options = {"reader": "wikipedia-pageviews", "reader_options": {"spread": "draw"}}
    assert killed_in(step, what, views, tmp_path, **options) == right(views, tmp_path, fingerprints, **options)
    assert len(list((tmp_path / "x.trace" / "tuples").iterdir())) == 2
