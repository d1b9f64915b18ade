"""A Python script is run by the environment of the clone, whichever Python starts it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.console_blocks import ROOT

PYTHON = [
    path
    for path in sorted((ROOT / "scripts").iterdir())
    # record-pyflink runs in the environment of PyFlink, which has no such package.
    if path.is_file() and path.name != "record-pyflink" and path.read_text().startswith("#!/usr/bin/env python3")
]


def _clone(directory: Path) -> Path:
    (directory / "scripts").mkdir()
    for name in ("picture", "_environment.py"):
        shutil.copy(ROOT / "scripts" / name, directory / "scripts")
    return directory / "scripts" / "picture"


def _start(script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # Without the module `site` Python finds no installed package.
    command = [sys.executable, "-E", "-S", script, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_continues_in_the_environment_of_the_clone(tmp_path: Path) -> None:
    script = _clone(tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    python.chmod(0o755)
    assert _start(script, "frontier", "-o", "a b").stdout == f"{script}|frontier|-o|a b|"


def test_without_one_it_says_how_to_get_it(tmp_path: Path) -> None:
    found = _start(_clone(tmp_path), "frontier")
    assert (found.returncode, found.stdout) == (3, "")
    assert found.stderr == f"error: streamgroup is not installed in {tmp_path / '.venv'}\n  scripts/demo installs it\n"


def test_a_python_that_has_the_package_is_kept(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, ROOT / "scripts" / "picture", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("script", PYTHON, ids=lambda path: path.name)
def test_every_script_does(script: Path) -> None:
    assert "\nimport _environment  # noqa: F401\n" in script.read_text()
