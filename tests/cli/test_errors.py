"""Errors on the command line: one line, a hint and an exit code, and outputs that cannot be made."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base import errors
from streamgroup.cli.error_output import report_error
from streamgroup.traces.trace import open_trace


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["replay", "TRACE"], 2, "Missing option '--grouping'"),
        (["replay", "TRACE", "-g", "pgk", "-n", "3"], 2, "did you mean 'pkg'?"),
        (["replay", "TRACE", "-g", "pkg:e=3", "-n", "3"], 2, "no parameter 'e'"),
        (["replay", "TRACE", "-g", "pkg", "-g", "sg", "-n", "3"], 2, "takes one -g"),
        (["replay", "TRACE", "-g", "pkg:d=2,3", "-n", "3"], 2, "several values"),
        (["replay", "TRACE", "-g", "pkg", "-n", "x"], 2, "'--workers'"),
        (["replay", "TRACE", "-g", "pkg", "-n", "0"], 2, "-n 0 is not between"),
        (["replay", "TRACE", "-g", "pkg", "-n", "3", "--log"], 2, "-o RUN"),
        (["replay", "TRACE", "-g", "pkg", "-n", "3", "--json", "--format", "csv"], 2, "--json"),
        (["replay", "TRACE", "-g", "pkg", "-n", "3", "--window", "1 lightyear"], 2, "--window"),
        (["replay", "TRACE", "-g", "pkg", "-n", "3", "--nosuch"], 2, "--nosuch"),
        (["replay", "NOSUCH", "-g", "pkg", "-n", "3"], 2, "does not exist"),
        (["replay", "HOLLOW", "-g", "pkg", "-n", "3"], 4, "not a trace"),
        (["rplay"], 2, "did you mean 'replay'?"),
        (["synth", "zpf", "-o", "x"], 2, "did you mean 'zipf'?"),
        (["synth", "zipf", "-o", "TRACE"], 2, "exists already"),
        (["synth", "zipf", "-o", "x", "--exponent", "9"], 2, "exponent"),
        (["synth", "zipf", "-o", "x", "--engine", "flink"], 2, "'flink' is not one of 'auto', 'local', 'spark'"),
        (["synth", "zipf", "-o", "x", "--engine", "local", "--master", "local[1]"], 2, "--master is for Spark"),
        (
            ["synth", "zipf", "-o", "x", "--engine", "local", "--spark-conf", "spark.a=1"],
            2,
            "--spark-conf is for Spark",
        ),
        (["synth", "zipf", "-o", "x", "--driver-memory", "lots"], 2, "--driver-memory: "),
        (["synth", "zipf", "-o", "FILE/x"], 3, "cannot write"),
        (["ingest", "cvs", "x", "-o", "y"], 2, "did you mean 'csv'?"),
        (["ingest", "csv", "NOSUCH", "-o", "y"], 2, "there is no file"),
        (["ingest", "csv", "FILE", "-o", "y", "--max-rejects", "lots"], 2, "--max-rejects"),
        (["groupings", "nosuch"], 2, "no grouping 'nosuch'"),
        (["describe", "HOLLOW"], 4, "not a trace"),
        (["validate", "HOLLOW"], 4, "breaks"),
        (["export", "TRACE", "--to", "parquet"], 2, "stdout"),
        (["summarize", "HOLLOW"], 2, "no run"),
    ],
)
def test_an_error_is_one_line_a_hint_and_a_code(invoke, trace, tmp_path, args, code, said) -> None:
    (tmp_path / "hollow").mkdir()
    (tmp_path / "file").write_text("timestamp,key\n1,a\n")
    places = {
        "TRACE": trace,
        "HOLLOW": tmp_path / "hollow",
        "NOSUCH": tmp_path / "nosuch",
        "FILE": tmp_path / "file",
        "FILE/x": tmp_path / "file" / "x",
    }
    found = invoke(*(places.get(arg, arg) for arg in args))
    assert found.exit_code == code
    assert said in found.stderr
    lines = found.stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert len(lines) <= 2
    assert all(line.startswith("hint: ") for line in lines[1:])
    assert "Traceback" not in found.stderr
    if args[0] != "validate":
        assert found.stdout == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.RunError("x"), 1),
        (errors.UsageError("x"), 2),
        (errors.EnvironmentFault("x"), 3),
        (errors.DataError("x"), 4),
        (errors.GateError("x"), 5),
        (ZeroDivisionError("x"), 1),
        (MemoryError(), 3),
        (OSError(28, "No space left on device", "/disk/x"), 3),
        (OSError(27, "File too large", "/disk/x"), 3),
        (PermissionError(13, "Permission denied", "/disk/x"), 3),
        (FileNotFoundError(2, "No such file", "/disk/x"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_class_of_error_has_its_code(capsys, error, code) -> None:
    assert report_error(error, debug=False) == code
    told = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in told] in ([], ["error"], ["error", "hint"])
    assert bool(told) == (code != 130)


def test_what_nobody_expected_names_debug_which_shows_where(invoke, trace, monkeypatch) -> None:
    from streamgroup.traces.statistics import describe

    def broken(*_: object) -> None:
        raise ZeroDivisionError("by design")

    monkeypatch.setattr(describe, "describe", broken)
    plain = invoke("describe", trace)
    assert plain.exit_code == 1
    assert plain.stderr.splitlines()[0] == "error: ZeroDivisionError: by design"
    assert "--debug" in plain.stderr.splitlines()[1]
    shown = invoke("describe", trace, "--debug")
    assert shown.exit_code == 1
    assert "Traceback" in shown.stderr
    assert "in broken" in shown.stderr
    assert "Traceback" in invoke("--debug", "describe", trace).stderr


def test_a_hint_of_many_lines_becomes_one(capsys) -> None:
    report_error(errors.RunError("Spark failed", "the end of Spark's log:\na\n  b"), debug=False)
    assert capsys.readouterr().err == "error: Spark failed\nhint: the end of Spark's log: b\n"


def test_outputs_are_checked_before_the_replay(invoke, trace, tmp_path, monkeypatch) -> None:
    from streamgroup.study import replay_run

    monkeypatch.setattr(replay_run, "replay", lambda *_, **__: pytest.fail("replayed all the same"))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("keep")
    (tmp_path / "file").write_text("keep")
    command = ("replay", trace, "-g", "pkg", "-n", "3")
    assert invoke(*command, "-o", tmp_path / "taken").exit_code == 2
    assert invoke(*command, "-o", tmp_path / "taken", "--overwrite").exit_code == 2
    assert invoke(*command, "-o", tmp_path / "file" / "run").exit_code == 3
    assert (tmp_path / "taken" / "mine.txt").read_text() == "keep"


def test_a_second_run_does_not_mix_with_the_first(invoke, trace, tmp_path) -> None:
    command = ("replay", trace, "-n", "3", "-o", tmp_path / "run", "--quiet")
    assert invoke(*command, "-g", "sg", "--log").exit_code == 0
    assert (tmp_path / "run" / "assignments").is_dir()
    assert invoke(*command, "-g", "kg").exit_code == 2
    assert invoke(*command, "-g", "kg", "--overwrite").exit_code == 0
    assert not (tmp_path / "run" / "assignments").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_an_interrupt_is_silent_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streamgroup", "synth", "zipf", "--tuples", "2000000000", "-o", "big"]
    command += ["--engine", "local"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    while not list(tmp_path.glob(".big.partial-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=300) == (b"", b"")
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def odd(trace: Path, tmp_path: Path) -> Path:
    """Give a copy of the trace in a directory whose name is not UTF-8."""
    folder = tmp_path / os.fsdecode(b"a\xff")
    folder.mkdir()
    return Path(shutil.copytree(trace, folder / os.fsdecode(b"b\xff.trace")))


@pytest.mark.parametrize(
    "args",
    [
        ("describe", "TRACE"),
        ("describe", "TRACE", "--json"),
        ("validate", "TRACE"),
        ("export", "TRACE", "--to", "csv"),
        ("export", "TRACE", "--to", "parquet", "-o", "out"),
        ("replay", "TRACE", "-g", "sg", "-n", "3", "--json"),
        ("replay", "TRACE", "-g", "sg", "-n", "3", "--log", "-o", "out"),
    ],
    ids=" ".join,
)
def test_a_trace_whose_path_is_not_utf8_is_as_good(spawn, odd, tmp_path, args) -> None:
    places = {"TRACE": odd, "out": tmp_path / "out"}
    done = spawn(*(places.get(arg, arg) for arg in args))
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr


def test_a_trace_without_a_name_is_called_after_its_directory(odd) -> None:
    manifest = json.loads((odd / "trace.json").read_text())
    del manifest["name"]
    (odd / "trace.json").write_text(json.dumps(manifest))
    assert open_trace(odd).name == "b\ufffd"


@pytest.mark.parametrize(
    "args",
    [
        ("replay", "TRACE", "-g", "sg", "-n", "3", "-o", "ODD"),
        ("synth", "zipf", "-o", "ODD"),
        ("ingest", "csv", "FILE", "-o", "ODD"),
        ("summarize", "ODD"),
    ],
    ids=" ".join,
)
def test_a_path_that_parquet_cannot_open_is_refused_before_the_work(spawn, trace, odd, tmp_path, args) -> None:
    (tmp_path / "file").write_text("timestamp,key\n1,a\n")
    places = {"TRACE": trace, "ODD": odd.parent / "new", "FILE": tmp_path / "file"}
    done = spawn(*(places.get(arg, arg) for arg in args))
    assert done.returncode == 2
    assert done.stderr.startswith("error: the path ")
    assert "is not UTF-8\nhint: rename" in done.stderr
    assert [entry.name for entry in odd.parent.iterdir()] == [odd.name]


def test_another_name_that_is_not_utf8_is_no_fault_of_the_program(capsys) -> None:
    with pytest.raises(UnicodeEncodeError) as caught:
        os.fsdecode(b"a\xff").encode()
    assert report_error(caught.value, debug=False) == 2
    assert "is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    "args",
    [
        ("replay", "TRACE", "-g", "sg", "-n", "3"),
        ("synth", "zipf", "--tuples", "10"),
        ("export", "TRACE", "--to", "csv"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("place", ["forbidden", "below a file", "/proc"])
def test_an_output_that_cannot_be_made_is_the_environments_fault(
    invoke, trace, tmp_path, monkeypatch, args, place
) -> None:
    output = {"forbidden": tmp_path / "no", "below a file": tmp_path / "file", "/proc": Path("/proc/no")}[place] / "out"
    if place == "/proc" and not output.parent.parent.is_dir():
        pytest.skip("there is no /proc")
    (tmp_path / "file").write_text("keep")
    make = os.mkdir

    def mkdir(path: object, *more: Any, **named: Any) -> None:
        if place == "forbidden" and Path(str(path)).is_relative_to(output.parent):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        make(str(path), *more, **named)

    monkeypatch.setattr(os, "mkdir", mkdir)
    found = invoke(*(trace if arg == "TRACE" else arg for arg in args), "-o", output)
    assert found.exit_code == 3
    assert found.stdout == ""
    first, hint = found.stderr.splitlines()
    assert first.startswith("error: cannot write ")
    assert str(output.parent) in first
    assert hint == "hint: choose another output"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        # The keys are in a buffer until their file is closed; the log is written by Arrow, which names no file.
        (("synth", "zipf", "--tuples", "2000", "--keys", "1000", "-o", "OUT"), "/keys/part-00000.parquet: File too"),
        (("replay", "TRACE", "-g", "sg", "-n", "3", "--log", "-o", "OUT"), "OUT: File too"),
    ],
    ids=["synth", "replay"],
)
def test_a_limit_on_the_size_of_files_is_the_environments_fault(trace, tmp_path, args, said) -> None:
    output = tmp_path / "out"
    places = {"TRACE": str(trace), "OUT": str(output)}
    # Python would write truncated byte code under the limit, without an error.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "streamgroup", *(places.get(arg, arg) for arg in args)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 3, done.stderr
    first, hint = done.stderr.splitlines()
    assert first.startswith("error: cannot write")
    assert said.replace("OUT", str(output)) in first
    assert "space" in hint
    assert list(tmp_path.iterdir()) == []
