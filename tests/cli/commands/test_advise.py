"""`advise`: for people in a few lines, for programs as one object."""

import json
from pathlib import Path
from typing import Any

import pytest

from streamgroup.synth.generate_trace import synthesise

pytestmark = pytest.mark.many_groupings


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few tuples: replays through all groupings are interpreted."""
    path = tmp_path_factory.mktemp("traces") / "zipf"
    synthesise("zipf", {"tuples": 4_000, "keys": 500, "rate": 5000}, path)
    return path


def test_people_get_a_short_answer_and_programs_one_object(invoke: Any, trace: Path) -> None:
    told = invoke("advise", trace, "-n", 8, "--budget", 1, "--jobs", 2)
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("Take ")
    assert len(told.stdout.splitlines()) < 35
    assert "Least workers that keep up: " in told.stdout
    assert all(len(line) <= 150 for line in told.stdout.splitlines())
    found = json.loads(invoke("advise", trace, "-n", 8, "--budget", 1, "--json").stdout)
    assert found["recommended"]["grouping"] in told.stdout
    assert (found["workers"], found["tuples"], found["load_assumed"]) == (8, 4_000, True)
    assert found["options"]["arrivals"] == "utilization=0.8"
    assert len(found["why"]) == 3
    assert {"max_p99_ms", "hot_keys", "least_workers", "kg", "runner_up"} <= set(found)


@pytest.mark.parametrize(
    "flags", [("--max-p99", "0"), ("--max-replication", "0.5"), ("-g", "nobody"), ("--arrivals", "saturate")]
)
def test_wrong_questions_are_usage_errors(invoke: Any, trace: Path, flags: tuple[str, str]) -> None:
    told = invoke("advise", trace, "-n", 4, *flags)
    assert (told.exit_code, told.stdout) == (2, "")


def test_groupings_of_engines_are_asked_with_a_type_of_keys(invoke: Any, tmp_path: Path) -> None:
    made = invoke("synth", "uniform", "--tuples", 5000, "--keys", 100, "-o", tmp_path / "t")
    assert made.exit_code == 0, made.output
    flags = ("-n", 4, "--budget", 0.01, "-g", "flink_keyby", "--key-type")
    told = json.loads(invoke("advise", tmp_path / "t", *flags, "string", "--json").stdout)
    assert (told["options"]["key_type"], told["failed"], told["sample"]["whole"]) == ("string", [], False)
    assert any(row["grouping"].startswith("flink_keyby") for row in told["first_pass"])
    ((name, error),) = (
        one.values() for one in json.loads(invoke("advise", tmp_path / "t", *flags, "long", "--json").stdout)["failed"]
    )
    assert name.startswith("flink_keyby")
    assert "long" in error


def test_a_missed_target_is_exit_code_5(invoke: Any, trace: Path) -> None:
    asked = ("advise", trace, "-n", "8", "--budget", "1", "--fail", "--json")
    assert invoke(*asked, "--max-p99", "1000").exit_code == 0
    missed = invoke(*asked, "--max-p99", "0.001")
    assert missed.exit_code == 5
    assert json.loads(missed.stdout)["targets_met"] is False
    assert "misses the target" in missed.stderr


def test_without_workers_a_target_is_needed(invoke: Any, trace: Path) -> None:
    assert invoke("advise", trace).exit_code == 2
    asked = ("--max-p99", "100", "--service", "1ms", "--arrivals", "rate=5000", "--budget", "1", "--json")
    found = json.loads(invoke("advise", trace, *asked).stdout)
    assert found["workers"] >= 5
    assert found["targets_met"]
