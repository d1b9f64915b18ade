"""An interrupt ends a command silently with exit code 130, also while it is being imported."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Interrupts the process that loads it, `DELAY` seconds after the import of `MODULE` begins.
HOOK = """
import os, signal, sys, threading

def _interrupt(event, args, asked=[]):
    if event == "import" and args[0] == "{module}" and not asked:
        asked.append(1)
        if {delay}:
            threading.Timer({delay}, os.kill, (os.getpid(), signal.SIGINT)).start()
        else:
            os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(_interrupt)
"""


def _run_interrupted(folder: Path, module: str, delay: float, args: list[str]) -> tuple[int, str, str]:
    (folder / "sitecustomize.py").write_text(HOOK.format(module=module, delay=delay))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-m", "streamgroup", *args],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "module",
    ["streamgroup.cli.app", "typer", "streamgroup.cli.error_output", "streamgroup.traces.statistics.describe", "numpy"],
)
def test_an_interrupt_while_importing_is_silent(trace, tmp_path, module) -> None:
    assert _run_interrupted(tmp_path, module, 0, ["describe", str(trace)]) == (130, "", "")


@pytest.mark.parametrize("delay", [0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15])
def test_an_interrupt_at_any_time_is_silent(tmp_path, delay) -> None:
    command = ["synth", "zipf", "--engine", "local", "--tuples", "2000000000", "-o", str(tmp_path / "big")]
    assert _run_interrupted(tmp_path, "streamgroup.cli.app", delay, command) == (130, "", "")
    assert not list(tmp_path.glob("*big*"))


def test_an_interrupt_within_a_callback_of_an_import_is_not_lost(tmp_path) -> None:
    """Python prints what is raised there, and continues; commands import much while they run."""
    (tmp_path / "importing.py").write_text(
        "import os, signal, sys, time, types, weakref\n"
        "code = compile('def cb(ref): os.kill(os.getpid(), signal.SIGINT)', '<frozen importlib._bootstrap>', 'exec')\n"
        "exec(code)\n"
        "class Lock: pass\n"
        "def run():\n"
        "    lock = Lock()\n"
        "    kept = weakref.ref(lock, cb)\n"
        "    del lock\n"
        "    time.sleep(60)\n"
        "fake = types.ModuleType('streamgroup.cli.app')\n"
        "fake.main = run\n"
        "sys.modules['streamgroup.cli.app'] = fake\n"
        "from streamgroup.cli import start\n"
        "start.main()\n"
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "importing.py"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, timeout=50,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_in_code_that_is_run_from_a_string_is_exit_130(tmp_path) -> None:
    (tmp_path / "stringy.py").write_text(
        "import sys, types\n"
        "fake = types.ModuleType('streamgroup.cli.app')\n"
        "fake.main = lambda: exec('raise KeyboardInterrupt')\n"
        "sys.modules['streamgroup.cli.app'] = fake\n"
        "from streamgroup.cli import start\n"
        "start.main()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "stringy"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_console_script_begins_where_the_module_does() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"streamgroup": "streamgroup.cli.start:main"}
    code = "import sys, streamgroup.cli.start; sys.exit('typer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_ignored_interrupt_stays_ignored(trace, tmp_path) -> None:
    command = [sys.executable, "-m", "streamgroup", "describe", str(trace), "--json"]
    (tmp_path / "sitecustomize.py").write_text(HOOK.format(module="typer", delay=0))
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (done.returncode, done.stderr) == (0, "")


# A command that has begun a folder, and is in compiled code that does not come back. It says so when it is there: an
# interrupt that comes earlier ends Python, and one that comes while Python ends is a signal without a handler.
STUCK = """
import sys, threading, time, types
from pathlib import Path

import numpy as np
from numba import njit

from streamgroup.base.storage.atomic_local_directories import staged_directory
from streamgroup.cli import interrupts, start

@njit(nogil=True)
def spin(count, inside):
    inside[0] = 1
    while count[0] >= 0:
        count[0] += 2
        count[0] -= 1
        count[0] -= 1

def run():
    inside = np.zeros(1, np.int64)

    def tell():
        while inside[0] == 0:
            time.sleep(0.01)
        print("begun", flush=True)

    spin(np.full(1, -1), np.zeros(1, np.int64))
    with staged_directory(Path("out"), overwrite=False, marker="m"):
        threading.Thread(target=tell, daemon=True).start()
        spin(np.zeros(1, np.int64), inside)

interrupts._PATIENCE_S, interrupts._REPEATED_S = {patience}, 0.1
fake = types.ModuleType("streamgroup.cli.app")
fake.main = run
sys.modules["streamgroup.cli.app"] = fake
start.main()
"""


@pytest.mark.parametrize(("patience", "interrupts"), [(0.3, 1), (600, 2)])
def test_compiled_code_that_does_not_return_is_ended_and_leaves_nothing(tmp_path, patience, interrupts) -> None:
    (tmp_path / "stuck.py").write_text(STUCK.format(patience=patience))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "stuck.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        assert list(tmp_path.glob(".out.partial-*"))
        for _ in range(interrupts):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        assert process.wait(60) == 130
        assert process.stdout.read() + process.stderr.read() == ""
    assert [path.name for path in tmp_path.iterdir()] == ["stuck.py"]
