"""`bounds`: tables for people and programs, and what cannot be asked."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.traces_by_hand import write_trace

LAW = "zipf:z=2,keys=1e4,tuples=1e7"


def test_a_table_for_people(invoke: Any, trace: Path) -> None:
    told = invoke("bounds", trace, "-n", 50, "-g", "pkg")
    assert (told.exit_code, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert lines[0].split() == ["name", "value", "unit", "formula", "source"]
    assert lines[2].startswith("pkg_floor ")
    assert lines[2].endswith("001, section III-A")
    all_of_them = invoke("bounds", LAW, "-n", 50).stdout
    assert "\n\nkg_floor" not in all_of_them
    assert "\ndstream_table_1_1024: printed as 73.53 %\n" in all_of_them


def test_every_format_says_the_same(invoke: Any) -> None:
    rows = json.loads(invoke("bounds", LAW, "-n", 50, "--json").stdout)
    assert list(rows[0]) == [
        "name", "formula", "value", "unit", "relation", "measured", "tolerance", "verdict", "source", "note",
    ]  # fmt: skip
    (floor,) = [row for row in rows if row["name"] == "pkg_floor"]
    assert floor["value"] == pytest.approx(0.284, abs=5e-5)
    assert (floor["measured"], floor["verdict"]) == (None, "not measured")
    lines = list(csv.DictReader(io.StringIO(invoke("bounds", LAW, "-n", 50, "--format", "csv").stdout)))
    assert [line["name"] for line in lines] == [row["name"] for row in rows]
    assert [float(line["value"]) for line in lines if line["name"] == "pkg_floor"] == [floor["value"]]
    assert invoke("bounds", LAW, "-n", 50, "--format", "markdown").stdout.startswith("| name | value |")


def test_a_run_and_its_verdicts(invoke: Any, trace: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert invoke("replay", trace, "-g", "pkg", "-n", 50, "-o", run).exit_code == 0
    told = invoke("bounds", trace, "--run", run)
    assert told.stdout.splitlines()[0].split()[:5] == ["name", "value", "unit", "measured", "verdict"]
    (line,) = [line for line in told.stdout.splitlines() if line.startswith("pkg_floor ")]
    assert " holds " in line
    same = invoke("bounds", trace, "--run", run, "-n", 50, "-g", "pkg", "--sources", 5)
    assert same.stdout == told.stdout
    for flags, said in (
        (("-n", 49), "--workers 49: the run"),
        (("-g", "kg"), "--grouping kg: the run"),
        (("--sources", 2), "--sources 2: the run"),
    ):
        refused = invoke("bounds", trace, "--run", run, *flags)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert said in refused.stderr


def test_a_run_of_another_trace(invoke: Any, trace: Path, tmp_path: Path) -> None:
    other = write_trace(tmp_path / "other", [(0, b"a", None), (5, b"b", None)])
    assert invoke("replay", other, "-g", "pkg", "-n", 2, "-o", tmp_path / "run").exit_code == 0
    for stream in (trace, LAW):
        told = invoke("bounds", stream, "--run", tmp_path / "run")
        assert (told.exit_code, told.stdout) == (2, "")
        assert "it is a run of another stream, other" in told.stderr


@pytest.mark.parametrize("what", ["record", "options", "table"])
def test_a_damaged_run(invoke: Any, trace: Path, tmp_path: Path, what: str) -> None:
    run = tmp_path / "run"
    assert invoke("replay", trace, "-g", "pkg", "-n", 5, "-o", run).exit_code == 0
    if what == "table":
        (run / "workers.parquet").write_bytes(b"PAR1")
    elif what == "record":
        (run / "run.json").write_text("{}")
    else:
        record = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps({**record, "options": {"workers": 5}}))
    told = invoke("bounds", trace, "--run", run)
    assert (told.exit_code, told.stdout) == (4, "")
    assert "make the run again" in told.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((LAW,), "bounds needs a number of workers"),
        ((LAW, "-n", "0"), "--workers 0 is not between 1 and 65536"),
        ((LAW, "-n", "-3"), "--workers -3 is not between 1 and 65536"),
        ((LAW, "-n", "65537"), "--workers 65537 is not between"),
        ((LAW, "-n", "2", "--sources", "0"), "--sources 0 is not between"),
        ((LAW, "-n", "two"), "Invalid value for '--workers' / '-n'"),
        ((LAW, "-n", "2", "-g", "nobody"), "there is no grouping 'nobody'"),
        ((LAW, "-n", "2", "-g", "pkg:e=3"), "there is no parameter 'e'"),
        ((LAW, "--run", "NOSUCH"), "is no run"),
        (("NOSUCH", "-n", "2"), "does not exist"),
        (("zipf:z=-1", "-n", "2"), "z: -1 is below 0"),
        (("zipf:z=9", "-n", "2"), "z: 9 is above 3"),
        (("zipf:z=nan", "-n", "2"), "z: "),
        (("zipf:z=one", "-n", "2"), "z: 'one' is not a number"),
        (("zipf:z=1,z=2", "-n", "2"), "gives z twice"),
        (("zipf:z=1,2", "-n", "2"), "z has several values"),
        (("zipf:keys=0", "-n", "2"), "keys: 0 is below 1"),
        (("zipf:tuples=0", "-n", "2"), "tuples: 0 is below 1"),
        (("zipf:keys=1.5", "-n", "2"), "keys: '1.5' is not a whole number"),
        (("zipf:keys=1e8", "-n", "2"), "100000000 keys are more than 10000000"),
        (("zipf:tupels=5", "-n", "2"), "did you mean 'tuples'?"),
        (("zipf:exponent=1", "-n", "2"), "there is no 'exponent'"),
    ],
)
def test_wrong_questions_are_usage_errors(invoke: Any, args: tuple[str, ...], said: str) -> None:
    told = invoke("bounds", *args)
    assert (told.exit_code, told.stdout) == (2, "")
    assert said in told.stderr


def test_an_empty_trace(invoke: Any, tmp_path: Path) -> None:
    told = invoke("bounds", write_trace(tmp_path / "t", []), "-n", 4)
    assert (told.exit_code, told.stdout) == (4, "")
    assert "the trace is empty" in told.stderr


@pytest.mark.parametrize("workers", [1, 2, 65536])
def test_any_number_of_workers(invoke: Any, workers: int, tmp_path: Path) -> None:
    one = write_trace(tmp_path / "t", [(0, None, None)])
    for stream in (one, "zipf:z=0,keys=1,tuples=1"):
        rows = json.loads(invoke("bounds", stream, "-n", workers, "-g", "pkg", "--json").stdout)
        assert rows[0]["value"] == max(0.5 - 1 / workers, 0.0)
