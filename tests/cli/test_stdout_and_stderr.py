"""Results alone go to stdout, progress and warnings to stderr; help is fast and imports nothing heavy."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAVY = ("numpy", "pyarrow", "polars", "numba", "pyspark", "pandas")


@pytest.mark.parametrize(
    "args",
    [(), ("replay",), ("ingest",), ("ingest", "csv"), ("ingest", "parquet"), ("synth", "zipf"), ("summarize",)],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(args) -> None:
    code = (
        "import sys, typer\n"
        "from streamgroup.cli.app import app\n"
        "try:\n    app()\nexcept SystemExit as stop:\n    assert stop.code == 0\n"
        f"found = [name for name in {HEAVY} if name in sys.modules]\n"
        "assert not found, found\n"
        "ours = [name for name in sys.modules if name.startswith('streamgroup')]\n"
        "assert len(ours) < 70, ours\n"
        "assert len(sys.modules) < 450, sorted(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *args, "--help"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: streamgroup" in done.stdout


@pytest.mark.parametrize("args", [(), ("replay",), ("ingest", "csv"), ("synth", "zipf")], ids=" ".join)
def test_help_is_fast(spawn, args) -> None:
    def seconds() -> float:
        before = os.times()
        assert spawn(*args, "--help").returncode == 0
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    # Processor time: what a busy machine adds is not ours. The best of a few, for the same reason.
    assert min(seconds() for _ in range(4)) < 0.5


def test_results_alone_go_to_stdout_with_warnings_on(spawn, trace) -> None:
    done = spawn("replay", trace, "-g", "pkg", "-n", "100", "--json", "--verbose", "--service", "1s")
    assert done.returncode == 0
    (row,) = json.loads(done.stdout)
    assert row["workers"] == 100
    assert "warning: offered load is" in done.stderr
    assert "tuples/s" in done.stderr
    assert "\r" not in done.stderr


def test_a_replay_says_where_the_results_of_an_application_are(invoke, trace, tmp_path) -> None:
    command = ("replay", trace, "-g", "pkg", "-n", "4", "--app", "count")
    kept = invoke(*command, "-o", tmp_path / "run")
    assert f"wrote {tmp_path / 'run'}, the results of --app in results.parquet\n" in kept.stderr
    assert (tmp_path / "run" / "results.parquet").is_file()
    assert "the results of --app are kept with -o RUN, in RUN/results.parquet\n" in invoke(*command).stderr
    assert "results" not in invoke(*command[:-2]).stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_poor_encoding_ends_nothing(spawn, tmp_path, encoding) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    root = tmp_path / "odd"
    for part in ("tuples", "keys"):
        (root / part).mkdir(parents=True)
    (root / "trace.json").write_text('{"format_version": 1}')
    tuples = {"timestamp": pa.array([0, 1], pa.int64()), "key_id": pa.array([0, 1], pa.uint32())}
    keys = {"key_id": pa.array([0, 1], pa.uint32()), "key": ["\U0001f600 \u4e2d", "\u200bb"], "count": [1, 1]}
    pq.write_table(pa.table(tuples), root / "tuples" / "part-00000.parquet")
    pq.write_table(pa.table(keys), root / "keys" / "part-00000.parquet")
    for form in ("table", "json", "csv"):
        done = spawn("describe", root, "--format", form, PYTHONIOENCODING=encoding)
        assert (done.returncode, done.stderr) == (0, "")
    assert spawn("--help", PYTHONIOENCODING=encoding).returncode == 0


@pytest.mark.parametrize("args", [("export", "TRACE", "--to", "csv"), ("--help",), ("groupings",)], ids=str)
def test_a_reader_that_goes_away_is_no_error(trace, args) -> None:
    command = [sys.executable, "-m", "streamgroup", *(str(trace) if arg == "TRACE" else arg for arg in args)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    told = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=300), told) == (0, b"")


def test_export_goes_to_stdout_whole(spawn, trace) -> None:
    done = spawn("export", trace, "--to", "slb")
    assert len(done.stdout.splitlines()) == 20_000
    assert done.stdout.startswith("0\tk")


def _content(run: Path) -> dict[str, object]:
    found: dict[str, object] = {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name != "run.json"
    }
    told = json.loads((run / "run.json").read_text())
    found["run.json"] = {name: told[name] for name in told if name not in ("timings", "host", "finished_at")}
    return found


def test_neither_hash_seed_nor_clock_nor_zone_changes_a_byte(spawn, trace, tmp_path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import time\n_real, _count = time.time, time.perf_counter\n"
        "time.time = lambda: _real() * 0.5\ntime.perf_counter = lambda: _count() * 3 + 1e6\n"
    )
    command = ("replay", trace, "-g", "pkg", "-n", "7", "--arrivals", "poisson=6000", "--log", "--quiet")
    plain = spawn(*command, "-o", tmp_path / "plain", PYTHONHASHSEED="1", TZ="UTC")
    odd = spawn(*command, "-o", tmp_path / "odd", PYTHONHASHSEED="2", TZ="Asia/Tokyo", PYTHONPATH=str(tmp_path))
    assert (plain.returncode, odd.returncode) == (0, 0), odd.stderr
    assert plain.stdout == odd.stdout
    content = _content(tmp_path / "plain")
    assert content == _content(tmp_path / "odd")
    names = ("summary", "windows", "workers", "loads", "latency", "keys", "lag")
    assert set(content) == {"run.json", *(f"{name}.parquet" for name in names), "assignments/part-00000.parquet"}


def test_progress_shows_on_a_terminal_only_and_not_when_quiet(trace) -> None:
    import pty
    import termios

    def told(*more: str) -> bytes:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        command = [sys.executable, "-m", "streamgroup", "replay", str(trace), "-g", "sg", "-n", "3", *more]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        text = b""
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            text += piece
        os.close(ours)
        assert process.wait(timeout=300) == 0
        return text

    assert b"tuples" in told().split(b"offered")[0]
    assert told("--quiet") == b""
