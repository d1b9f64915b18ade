"""`advise`: for people in a few lines, for programs as one object."""

import json
from pathlib import Path
from typing import Any

import pytest


def test_people_get_a_short_answer_and_programs_one_object(invoke: Any, trace: Path) -> None:
    told = invoke("advise", trace, "-n", 8, "--budget", 1, "--jobs", 2)
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("Take ")
    assert len(told.stdout.splitlines()) < 35
    assert "Least workers that keep up: " in told.stdout
    assert all(len(line) <= 150 for line in told.stdout.splitlines())
    found = json.loads(invoke("advise", trace, "-n", 8, "--budget", 1, "--json").stdout)
    assert found["recommended"]["grouping"] in told.stdout
    assert (found["workers"], found["tuples"], found["load_assumed"]) == (8, 20_000, True)
    assert found["options"]["arrivals"] == "utilization=0.8"
    assert len(found["why"]) == 3
    assert {"max_p99_ms", "hot_keys", "least_workers", "kg", "runner_up"} <= set(found)


@pytest.mark.parametrize(
    "flags", [("--max-p99", "0"), ("--max-replication", "0.5"), ("-g", "nobody"), ("--arrivals", "saturate")]
)
def test_wrong_questions_are_usage_errors(invoke: Any, trace: Path, flags: tuple[str, str]) -> None:
    told = invoke("advise", trace, "-n", 4, *flags)
    assert (told.exit_code, told.stdout) == (2, "")
