"""Fixtures of the command line: a small trace, commands in this process, and commands in one of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streamgroup.cli.app import app

Invoke = Callable[..., Any]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("STREAMGROUP_") and name != "STREAMGROUP_CACHE_DIR":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from streamgroup.synth.generate_trace import synthesise

    path = tmp_path_factory.mktemp("traces") / "zipf"
    synthesise("zipf", {"tuples": 20_000, "keys": 500, "rate": 5000}, path)
    return path


@pytest.fixture
def invoke() -> Invoke:
    """Run a command line in this process; everything is turned into text."""

    def run(*args: object, **environment: str) -> Any:
        return CliRunner().invoke(app, [str(arg) for arg in args], env=environment)

    return run


@pytest.fixture
def spawn() -> Invoke:
    """Run a command line as a process of its own."""

    def run(*args: object, **environment: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "streamgroup", *map(str, args)]
        return subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **environment}, check=False, timeout=600
        )

    return run
