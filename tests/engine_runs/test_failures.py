"""What goes wrong in an engine is said in one line, and leaves nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import streamgroup as sg

pytestmark = [pytest.mark.slow, pytest.mark.spark]

_WITHOUT_PYTHON = """
import sys, types
from streamgroup.spark import driver_settings
driver_settings.sys = types.SimpleNamespace(executable="/no/such/python", path=sys.path)
from streamgroup.cli.app import app
app()
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    sg.synth("zipf", tmp_path / "z.trace", tuples=2000, keys=300, exponent=1.1, seed=3)
    return ["run", str(tmp_path / "z.trace"), "-g", "kg", "-n", "4", "--service", "10ms", "--arrivals",
            "utilization=0.9", "-o", str(tmp_path / "run")]  # fmt: skip


def test_executors_without_python(command: list[str], tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", _WITHOUT_PYTHON, *command], capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert "error: executors cannot start Python (Cannot run program)" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["z.trace"]


def test_a_worker_that_is_killed(command: list[str], tmp_path: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "streamgroup", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    killed = False
    until = time.monotonic() + 120
    while not killed and time.monotonic() < until and started.poll() is None:
        time.sleep(0.5)
        if len(_workers(started.pid)) >= 4:
            # By then they serve, or wait for the common start.
            time.sleep(4)
            os.kill(_workers(started.pid)[0], signal.SIGKILL)
            killed = True
    _, errors = started.communicate(timeout=120)
    assert killed
    assert started.returncode == 1
    assert "error: the Python process of a worker ended: it was killed" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["z.trace"]


def _workers(program: int) -> list[int]:
    """Find the Python workers of a program: forked by the daemon of its JVM."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                one = int(entry.name)
                if _is_daemon(one) and _is_daemon(_parent(one)) and _parent(_parent(_parent(one))) == program:
                    found.append(one)
            except (OSError, IndexError):
                continue
    return found


def _is_daemon(process: int) -> bool:
    return b"pyspark.daemon" in (Path("/proc") / str(process) / "cmdline").read_bytes()


def _parent(process: int) -> int:
    return int((Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()[1])
