"""What only a careless or a malicious user does: still an error in a line, its exit code, and nothing half-written."""

import subprocess
import sys
from pathlib import Path

import pytest

from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.groupings import kg

MOST = 2**63


@pytest.mark.parametrize("command", ["sweep", "replay"])
def test_more_top_keys_than_a_table_can_hold_are_refused(invoke, trace, tmp_path, command) -> None:
    output = tmp_path / "output"
    done = invoke(command, trace, "-g", "kg", "-n", 4, "--top-keys", MOST, "-o", output)
    assert done.exit_code == 2
    assert f"--top-keys {MOST} is not between 0 and 2^63 - 1" in done.stderr
    assert not output.exists()


@pytest.mark.parametrize("count", [-1, MOST])
def test_a_file_gives_no_impossible_top_keys(invoke, trace, tmp_path, count) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(f'traces = ["{trace}"]\ngroupings = ["kg"]\nworkers = 4\ntop_keys = {count}\n')
    done = invoke("sweep", file, "-o", tmp_path / "output")
    assert done.exit_code == 2
    assert f"--top-keys {count} is not between" in done.stderr
    assert not (tmp_path / "output").exists()


def with_closed(stream: str, *args: object) -> "subprocess.CompletedProcess[str]":
    words = " ".join(f"'{word}'" for word in (sys.executable, "-m", "streamgroup", *args))
    return subprocess.run(
        ["/bin/sh", "-c", f"{words} {stream}&-"], capture_output=True, text=True, check=False, timeout=600
    )


@pytest.mark.parametrize(
    ("stream", "args"),
    [("<", ("where", "-", "-g", "pkg", "-n", "4")), (">", ("where", "a", "-g", "pkg", "-n", "4"))],
)
def test_a_closed_stream_is_told(stream, args) -> None:
    done = with_closed(stream, *args)
    assert done.returncode == 3, done.stderr
    assert "error: stdin or stdout is closed" in done.stderr
    assert not done.stdout


def test_closed_streams_that_are_not_needed_end_nothing() -> None:
    assert with_closed("<", "where", "a", "-g", "pkg", "-n", "4").stdout.splitlines()[-1].startswith("a ")
    done = with_closed("2>", "where", "a", "-g", "pkg", "-n", "4")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("a ")


def test_no_other_file_takes_the_place_of_a_closed_stream(trace) -> None:
    # What is opened next gets its number, and is closed with it: that of interrupts was.
    done = with_closed("<", "describe", trace)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_working_directory_that_is_gone_is_named(tmp_path) -> None:
    command = f"mkdir gone && cd gone && rmdir ../gone && '{sys.executable}' -m streamgroup describe some.trace"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "error: some.trace: the current directory does not exist any more" in done.stderr


def leaving(path: Path, what: str) -> Path:
    """Write a grouping file that loads, and raises something when its parameters are asked."""
    source = Path(kg.__file__).read_text()
    path.write_text(f"{source}\n\ndef _leave(*_):\n    raise {what}\n\n\nParams.choices_per_key = _leave\n")
    return path


def test_a_grouping_that_exits_ends_no_sweep_in_silence(invoke, trace, tmp_path) -> None:
    mine = leaving(tmp_path / "mine.py", "SystemExit(0)")
    done = invoke("sweep", trace, "-g", mine, "-g", "kg", "-n", 4, "-o", tmp_path / "output", "--format", "csv")
    assert done.exit_code == 1
    assert "SystemExit: 0" in done.stdout + done.stderr


@pytest.mark.parametrize("what", ["SystemExit(0)", "BaseException('bad')"])
def test_a_run_whose_grouping_ends_it_in_an_odd_way_fails(spawn, trace, tmp_path, what) -> None:
    mine = leaving(tmp_path / "mine.py", what)
    done = spawn("replay", trace, "-g", mine, "-n", 4, "-o", tmp_path / "output")
    assert done.returncode == 1
    assert f"{what.split('(')[0]}: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("record", ["[" * 200_000, f'{{"schema_version": {SCHEMA_VERSION}, "trace": null}}'])
def test_a_record_that_tells_nothing_is_a_damaged_one(invoke, trace, tmp_path, record) -> None:
    sweep = tmp_path / "sweep"
    asked = ("sweep", trace, "-g", "kg", "-n", 4, "-o", sweep)
    assert invoke(*asked).exit_code == 0
    (cell,) = (sweep / "cells").iterdir()
    (cell / "run.json").write_text(record)
    done = invoke("summarize", sweep)
    assert done.exit_code == 4
    assert "is not the record of a run" in done.stderr
    again = invoke(*asked)
    assert again.exit_code == 0
    assert "damaged" in again.stderr
    assert invoke("summarize", sweep).exit_code == 0


def test_the_summary_of_another_cell_is_no_cell_to_reuse(invoke, trace, tmp_path) -> None:
    sweep = tmp_path / "sweep"
    asked = ("sweep", trace, "-g", "kg", "-n", "4,8", "-o", sweep, "--format", "csv")
    first = invoke(*asked)
    one, other = sorted((sweep / "cells").iterdir())
    (one / "summary.parquet").write_bytes((other / "summary.parquet").read_bytes())
    again = invoke(*asked)
    assert again.exit_code == 0
    assert f"damaged: {one.name}" in again.stderr
    assert again.stdout == first.stdout


def test_a_summary_of_other_types_is_no_summary(invoke, trace, tmp_path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    run = tmp_path / "run"
    assert invoke("replay", trace, "-g", "kg", "-n", 4, "-o", run).exit_code == 0
    pq.write_table(pa.table({"trace": [1], "grouping": ["kg"], "workers": ["q"]}), run / "summary.parquet")
    for command in (("summarize", run), ("report", run, "-o", tmp_path / "page.html")):
        done = invoke(*command)
        assert done.exit_code == 4
        assert "is not the summary of one run" in done.stderr


def test_cells_that_are_a_file_are_no_directory_to_go_on_with(invoke, trace, tmp_path) -> None:
    sweep = tmp_path / "sweep"
    sweep.mkdir()
    (sweep / "sweep.json").write_text("{}")
    (sweep / "cells").write_text("mine")
    done = invoke("sweep", trace, "-g", "kg", "-n", 4, "-o", sweep)
    assert done.exit_code == 2
    assert "cells is not a directory" in done.stderr
    assert (sweep / "cells").read_text() == "mine"


def test_a_table_of_nothing_says_why(invoke, trace, tmp_path) -> None:
    run = tmp_path / "run"
    assert invoke("replay", trace, "-g", "kg", "-n", 4, "-o", run).exit_code == 0
    for flag in ("--by", "--metrics"):
        done = invoke("summarize", run, flag, "")
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"{flag} names nothing" in done.stderr
    none = invoke("summarize", run, "--where", "workers=5")
    assert none.exit_code == 0
    assert "none of 1 runs meets --where workers=5" in none.stderr
