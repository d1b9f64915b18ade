"""`explain`: lines for people, one object for programs, a trace or a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.traces_by_hand import write_trace


def test_lines_for_people(invoke: Any, trace: Path) -> None:
    told = invoke("explain", trace, "-g", "flink_keyby:max_parallelism=128", "-n", 48)
    assert told.exit_code == 0, told.output
    lines = told.stdout.splitlines()
    assert lines[0] == "Whole trace, 20,000 tuples, 497 keys:"
    assert lines[1].startswith("worker ")
    assert sum(line.startswith("worker ") for line in lines) == 6
    assert "key groups alone 1.12" in told.stdout
    assert "\nWorst of 100 windows, tuples " in told.stdout
    assert "\nVerdict: hot key. k0 alone gives worker " in told.stdout
    assert "\nWhat would help:\n- " in told.stdout
    assert told.stdout.endswith(
        "- With equal service times, the most loaded worker keeps up while its multiple of the mean, times the mean\n"
        "  utilization, is below 1: at 80 %, below 1.25 x mean.\n"
    )
    assert all(len(line) <= 110 for line in lines)
    assert told.stderr == "counted by key: under this grouping every key has one worker\n"
    fewer = invoke("explain", trace, "-g", "kg", "-n", 48, "--top-workers", 1, "--top-keys", 0).stdout
    assert sum(line.startswith("worker ") for line in fewer.splitlines()) == 2
    assert "k0 1" not in fewer.split("Verdict")[0]


def test_a_window_within_one_moment_has_one_time(invoke: Any, tmp_path: Path) -> None:
    # 100 windows of 20 tuples, each within a second; k0 is hot in the last one alone.
    rows = [(at // 20 * 1_000_000, b"k0" if at >= 1980 else b"%d" % at, None) for at in range(2000)]
    told = invoke("explain", write_trace(tmp_path / "t.trace", rows), "-g", "kg", "-n", 4).stdout
    assert "\nWorst of 100 windows, tuples 1,980 to 1,999, 1970-01-01 00:01:39:\n" in told


def test_one_object_for_programs(invoke: Any, trace: Path) -> None:
    found = json.loads(invoke("explain", trace, "-g", "flink_keyby", "-n", 48, "--format", "json").stdout)
    assert (found["verdict"], found["how"], found["windows"]) == ("hot key", "counted", 100)
    assert found["parts"] == {"name": "key groups", "total": 128, "fewest": 2, "most": 3, "peak_to_mean": 1.125}
    top = found["whole"]["workers"][0]
    assert top["load"] == found["peak_to_mean"] == found["whole"]["peak_to_mean"]
    assert top["load"] == pytest.approx(sum(key["load"] for key in top["hot_keys"]) + top["other_load"])
    assert found["window"]["tuples"] == 200
    assert found["split"]["keys"][0]["key"] == "k0"


def test_a_run_has_its_own_options(invoke: Any, trace: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert invoke("replay", trace, "-g", "pkg", "-n", 16, "--log", "-o", run).exit_code == 0
    told = invoke("explain", run)
    assert told.exit_code == 0, told.output
    assert told.stderr == "from the log of the run\n"
    of_trace = invoke("explain", trace, "-g", "pkg", "-n", 16)
    assert of_trace.stdout == told.stdout
    assert of_trace.stderr == "replayed: under this grouping a key has no one worker\n"
    refused = invoke("explain", run, "-n", 4)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--workers: a run has its own options" in refused.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("-n", "4"), "explain takes one -g"),
        (("-g", "kg", "-g", "pkg", "-n", "4"), "explain takes one -g"),
        (("-g", "kg"), "explain needs a number of workers"),
        (("-g", "nobody", "-n", "4"), "there is no grouping"),
        (("-g", "flink_keyby:max_parallelism=2", "-n", "4"), "less than the parallelism"),
    ],
)
def test_wrong_questions_are_usage_errors(invoke: Any, trace: Path, flags: tuple[str, ...], said: str) -> None:
    told = invoke("explain", trace, *flags)
    assert (told.exit_code, told.stdout) == (2, "")
    assert said in told.stderr


def test_an_empty_trace(invoke: Any, tmp_path: Path) -> None:
    told = invoke("explain", write_trace(tmp_path / "t", []), "-g", "kg", "-n", 4)
    assert (told.exit_code, told.stdout) == (4, "")
    assert "the trace is empty" in told.stderr
