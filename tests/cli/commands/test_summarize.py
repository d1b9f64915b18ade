"""`summarize` on the command line: what people see of groups, and of cells that failed."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.study.summary.test_averages import write_sweep
from tests.study.summary.test_summarize import write_run


def test_people_see_a_mean_with_its_interval_and_its_ends(invoke: Any, tmp_path: Path) -> None:
    for seed, value in enumerate((1.0, 1.5, 2.25)):
        write_run(tmp_path / f"a{seed}", seed=seed, peak_to_mean=value, replicas=7)
    write_run(tmp_path / "b", grouping="pkg", peak_to_mean=3.0, replicas=8)
    arguments = ("summarize", tmp_path, "--by", "grouping", "--metrics", "peak_to_mean,replicas")
    told = invoke(*arguments)
    assert told.exit_code == 0, told.output
    cells = [re.split(r"  +", line) for line in told.stdout.splitlines()[2:]]
    assert cells == [["pkg", "1", "3", "8"], ["sg", "3", "1.5833 +-1.6 (1..2.25)", "7"]]
    assert "_ci95" not in told.stdout
    rows = json.loads(invoke(*arguments, "--json").stdout)
    assert rows[0] == {
        "grouping": "pkg", "runs": 1,
        "peak_to_mean": 3.0, "peak_to_mean_min": 3.0, "peak_to_mean_max": 3.0, "peak_to_mean_ci95": None,
        "replicas": 8.0, "replicas_min": 8, "replicas_max": 8, "replicas_ci95": None,
    }  # fmt: skip
    assert rows[1]["peak_to_mean_max"] == 2.25
    found = list(csv.DictReader(io.StringIO(invoke(*arguments, "--format", "csv").stdout)))
    assert found[1]["peak_to_mean_min"] == "1.0"


def test_a_gate_on_the_worst_of_a_group(invoke: Any, tmp_path: Path) -> None:
    for seed, value in enumerate((0.0, 0.0, 0.3)):
        write_run(tmp_path / f"a{seed}", seed=seed, imbalance=value)
    arguments = ("summarize", tmp_path, "--by", "grouping", "--fail-on")
    assert invoke(*arguments, "imbalance>0.2").exit_code == 0
    told = invoke(*arguments, "imbalance_max>0.2")
    assert told.exit_code == 5
    assert "imbalance_max is 0.3" in told.stderr


def test_failed_cells_are_seen_and_hold_no_gate(invoke: Any, tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path / "s", [{"grouping": "pkg"}], ok=2)
    told = invoke("summarize", sweep, "--fail-on", "imbalance>0.5")
    assert told.exit_code == 5
    assert "no room" in told.stdout
    assert "1 of 3 cells failed" in told.stderr
    assert "pkg" in told.stderr
    rows = json.loads(invoke("summarize", sweep, "--json").stdout)
    assert [row["status"] for row in rows] == ["ok", "ok", "failed"]
    assert rows[2]["replicas"] is None
    grouped = invoke("summarize", sweep, "--by", "grouping", "--metrics", "replicas").stdout
    assert "no room" in grouped
    assert invoke("summarize", sweep, "--where", "status=ok", "--fail-on", "imbalance>0.5").exit_code == 0
    whole = write_sweep(tmp_path / "whole", [], ok=2)
    assert "failed" not in invoke("summarize", whole, "--by", "grouping", "--metrics", "replicas").stdout


def test_a_broken_gate_has_a_line_for_each_run(invoke: Any, tmp_path: Path) -> None:
    for seed, value in enumerate((2.82, 1.5, 2.5)):
        write_run(tmp_path / f"a{seed}", seed=seed, peak_to_mean=value)
    told = invoke("summarize", tmp_path, "--fail-on", "peak_to_mean>2")
    assert told.exit_code == 5
    assert told.stderr.splitlines() == [
        "error: trace t, grouping sg, workers 16, seed 0: peak_to_mean is 2.82, limit 2",
        "error: trace t, grouping sg, workers 16, seed 2: peak_to_mean is 2.5, limit 2",
        "hint: --fail-on peak_to_mean>2",
    ]


def test_compare_shows_what_changed_and_fails_on_it(invoke: Any, tmp_path: Path) -> None:
    for side, factor in (("old", 1.0), ("new", 1.1)):
        write_run(tmp_path / side / "a", workers=4, latency_p99_ms=10 * factor, imbalance=0.5)
        write_run(tmp_path / side / "b", workers=8, latency_p99_ms=20.0, imbalance=0.5)
    write_run(tmp_path / "new" / "c", workers=16)
    told = invoke("compare", tmp_path / "old", tmp_path / "new", "--fail-on", "latency_p99_ms>+5%")
    assert told.exit_code == 5
    lines = [line.split() for line in told.stdout.splitlines()]
    assert lines[0] == ["trace", "grouping", "workers", "metric", "old", "new", "change"]
    assert lines[2:] == [["t", "sg", "4", "latency_p99_ms", "10", "11", "+10", "%"]]
    assert told.stderr.splitlines() == [
        "13 of 14 values are unchanged",
        "warning: only in NEW: t, sg on 16 workers",
        "error: t, sg on 4 workers: latency_p99_ms went from 10 to 11 (+10 %), limit +5 %",
        "hint: --fail-on latency_p99_ms>+5%",
    ]
    rows = json.loads(invoke("compare", tmp_path / "old", tmp_path / "new", "--metrics", "imbalance", "--json").stdout)
    assert [(row["workers"], row["old"], row["new"], row["change"]) for row in rows] == [
        (4, 0.5, 0.5, 0),
        (8, 0.5, 0.5, 0),
    ]
    assert invoke("compare", tmp_path / "old", tmp_path / "new", "--fail-on", "latency_p99_ms>5%").exit_code == 2


@pytest.mark.parametrize(
    ("metrics", "said", "hint"),
    [
        ("imbalanc", "there is no metric 'imbalanc'", "did you mean 'imbalance'?"),
        ("replicas,nope", "there is no metric 'nope'", "known: "),
        ("bottleneck", "bottleneck is a word, which has no change in size", "name other metrics"),
    ],
)
def test_compare_refuses_metrics_that_it_cannot_show(
    invoke: Any, tmp_path: Path, metrics: str, said: str, hint: str
) -> None:
    run = write_run(tmp_path / "a")
    told = invoke("compare", run, run, "--metrics", metrics)
    assert (told.exit_code, told.stdout) == (2, "")
    lines = told.stderr.splitlines()
    assert lines[0] == f"error: --metrics: {said}"
    assert lines[1].startswith(f"hint: {hint}")


def test_a_run_in_an_engine_checks_conditions_before_it_begins(tmp_path, invoke) -> None:
    command = ("run", tmp_path / "nothing", "-g", "kg", "-n", "4", "--against-replay", "--fail-on")
    for condition, fault in [("makespan>3%", "is not a condition"), ("nope_error>3%", "no metric 'nope'")]:
        told = invoke(*command, condition)
        assert (told.exit_code, told.stdout) == (2, "")
        assert fault in told.stderr
    assert "nothing" in invoke(*command, "makespan_error>3%").stderr


def test_a_picture_of_many_runs_is_refused_before_anything_is_printed(tmp_path, invoke, trace) -> None:
    for side in ("old", "new"):
        assert invoke("sweep", trace, "-g", "kg", "-n", "2,4", "-o", tmp_path / side).exit_code == 0
    told = invoke("compare", tmp_path / "old", tmp_path / "new", "--picture", tmp_path / "x.svg")
    assert (told.exit_code, told.stdout) == (2, "")
    assert not (tmp_path / "x.svg").exists()
    assert invoke("compare", tmp_path / "old", tmp_path / "none").exit_code == 2
