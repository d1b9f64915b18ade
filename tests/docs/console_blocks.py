"""The console blocks of a document: `$ ` begins a command, what follows is what it prints.

A block of Python or TOML below a line that ends in "`NAME`:" is a file that the reader is told to save.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from typer.testing import CliRunner

from streamgroup.cli.app import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RAW = "traces/raw"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ANY_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"""'[^']*'|"[^"$`]*\"""")
# Options that need a Spark session of their own.
_OWN_SPARK = {"--master", "--remote", "--driver-memory", "--spark-conf"}
_FILE = re.compile(r"`(\w+\.(?:py|toml))`:\n\n\Z")


class Step(NamedTuple):
    """A command and the lines shown below it, or (with a name) a file that the reader is told to save."""

    command: str
    shown: list[str]
    file: str = ""


def steps(text: str) -> Iterator[Step]:
    """Give the commands and files of a document, in order."""
    for block in _BLOCK.finditer(text):
        kind, body = block.groups()
        if kind in ("python", "toml"):
            if named := _FILE.search(text, 0, block.start()):
                yield Step(body, [], named.group(1))
        elif kind == "console":
            for piece in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, *shown = piece.rstrip("\n").split("\n")
                yield Step(command, shown)


def run_here(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a `streamgroup` command in this process, which is faster; a command that needs a shell runs as in `run`."""
    words = shlex.split(command)
    if words[0] != "streamgroup" or re.search(r"[|;&<>*?$`~]", _QUOTED.sub("", command)) or _OWN_SPARK & {*words}:
        return run(command, directory)
    # Tests that share a session leave it open: an ingest that opens its own would be refused.
    # The active session is one of a thread, of which there may be none; the context is the process's.
    spark = sys.modules.get("pyspark")
    if words[1] == "ingest" and spark and spark.SparkContext._active_spark_context:
        return run(command, directory)
    with contextlib.chdir(directory):
        found = CliRunner().invoke(app, words[1:])
    return subprocess.CompletedProcess(command, found.exit_code, found.stdout, found.stderr)


def run(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a reader would who has the environment activated."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    prepared = f'export PATH="{path}:$PATH"\n{command}'
    # PySpark would use the JVM of this process, if it has a session.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY_")}
    return subprocess.run(
        ["bash", "-c", prepared], cwd=directory, env=environment, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip


def missing(shown: list[str], told: str) -> str | None:
    """Give the first line shown that was not printed, or not in that order; blank lines and `...` stand for any."""
    lines = iter([line.rstrip() for line in told.split("\n")])
    return next((line for line in shown if line.strip() not in ("", "...") and line.rstrip() not in lines), None)


def unmarked(shown: list[str], told: str) -> str | None:
    """Return the first line printed that is not shown, where lines are shown and no `...` marks an omission."""
    if not shown or "..." in shown:
        return None
    lines = {line.rstrip() for line in shown}
    return next((line for line in told.split("\n") if line.strip() and line.rstrip() not in lines), None)


def follow(page: Path, directory: Path) -> int:
    """Save the files of a page, run its commands and compare what they print; tell how many there were."""
    prepare(directory)
    commands = 0
    for step in steps(page.read_text()):
        if step.file:
            (directory / step.file).write_text(step.command)
            continue
        commands += 1
        result = run_here(step.command, directory)
        assert result.returncode == 0, f"{step.command}\n{result.stderr}"
        lacks = missing(step.shown, result.stdout)
        assert lacks is None, f"{step.command}\ndoes not print: {lacks}\nbut:\n{result.stdout}\n{result.stderr}"
        more = unmarked(step.shown, result.stdout)
        assert more is None, f"{step.command}\nalso prints, without a `...` on the page: {more}"
    return commands


def prepare(directory: Path) -> None:
    """Make the shipped samples reachable as they are in a clone."""
    (directory / "traces").symlink_to(ROOT / "traces")


def write(text: str, directory: Path) -> str:
    """Run a document's commands and give it with what they print now; blocks with a `...` stay as they are."""
    prepare(directory)
    told: list[str] = []
    for step in steps(text):
        if step.file:
            (directory / step.file).write_text(step.command)
        else:
            result = run(step.command, directory)
            told.append(result.stdout.rstrip("\n"))
            print(f"{step.command}: exit {result.returncode} {result.stderr if result.returncode else ''}", flush=True)
    outputs = iter(told)

    def renewed(block: re.Match[str]) -> str:
        if block.group(1) != "console":
            return block.group(0)
        lines = []
        for piece in re.split(r"^\$ ", block.group(2), flags=re.MULTILINE)[1:]:
            command, *shown = piece.rstrip("\n").split("\n")
            output = next(outputs)
            kept = shown if "..." in shown or "doctor" in command else output.split("\n")
            lines += [f"$ {command}", *(line.rstrip() for line in kept if line.strip() or line in shown)]
        return "```console\n" + "\n".join(lines) + "\n```"

    return _BLOCK.sub(renewed, text)


def blocks_of(page: Path, kind: str) -> list[str]:
    """Return what the blocks of one kind hold; those without any are of the kind ''."""
    return [body for found, body in _ANY_BLOCK.findall(page.read_text()) if found == kind]


def commands_of(page: Path) -> list[str]:
    """Return the commands of blocks that show no output."""
    lines = "".join(blocks_of(page, "")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("streamgroup ")]


def works(command: str, directory: Path) -> str:
    """Run a command that must succeed, and return what it prints."""
    result = run_here(command, directory)
    # A gate that does not hold is what such a command is for.
    assert result.returncode in ((0, 5) if "--fail-on" in command else (0,)), f"{command}\n{result.stderr}"
    return result.stdout
