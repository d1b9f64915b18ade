"""What looks for Python's own `print` finds it, wherever PyFlink has put another."""

import builtins
import subprocess
import sys

import pytest

from streamgroup.base.compiling.restore_builtin_print import builtin_print

# As pyflink.fn_execution.beam.beam_sdk_worker_main has it.
_REPLACED = """
import builtins
class CustomPrint:
    def __init__(self, own):
        self._print = own
    def print(self, *args, sep=" ", end="\\n", file=None):
        self._print("logged", *args)
builtins.print = CustomPrint(print).print
"""


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_a_partitioner_decides_where_print_is_another() -> None:
    program = "from streamgroup.online import Partitioner\nprint(Partitioner('kg', 4, interpreted=True).choose(b'a'))"
    own, replaced = run(program), run(_REPLACED + program)
    assert replaced.returncode == 0, replaced.stderr
    assert replaced.stdout == f"logged {own.stdout}"
    # That numba alone cannot be imported is why.
    assert "has no attribute 'print'" in run(f"{_REPLACED}CustomPrint.print.__module__ = 'json'\nimport numba").stderr


def test_it_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    own = builtins.print

    def other(*_: object) -> None:
        raise AssertionError

    with builtin_print():
        assert builtins.print is own
    monkeypatch.setattr(builtins, "print", other)
    with builtin_print():
        # Of a function nothing is known.
        assert builtins.print is other
    assert builtins.print is other
