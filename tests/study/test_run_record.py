"""The record of a run: every part of it that is read may be damaged, and is named then."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streamgroup.base.errors import DataError
from streamgroup.cli.app import app
from streamgroup.study.read_run import read_record, read_tables, recorded_options
from streamgroup.study.run_record import first_fault

MACHINE = {"service_asked_ms": 1, "service_factor": 1.5, "lateness_mean_ms": 0.5, "lateness_p99_ms": float("inf")}
PARTS = (
    "code", "grouping", "versions", "meanings", "options", "option_digests", "trace", "aggregator_grouping_files",
    "engine", "app_digest", "clock",
)  # fmt: skip


def changed(run: Path, **values: Any) -> Path:
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | values))
    return run


def test_a_run_has_the_form_that_is_read(run: Path) -> None:
    record = read_record(run)
    assert first_fault(record) is None
    assert recorded_options(run, record).grouping == "kg"


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("value", [None, 3, [1], True])
def test_a_part_of_another_type_is_named(run: Path, part: str, value: Any) -> None:
    with pytest.raises(DataError) as caught:
        read_record(changed(run, **{part: value}))
    assert caught.value.message.startswith(f"{run / 'run.json'} is not the record of a run: {part}")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"code": "x"}, "code: 'x' is not an object"),
        ({"code": {"program": 3}}, "code.program: 3 is not a text"),
        ({"versions": {"streamgroup": [1]}}, "versions.streamgroup: [1] is not a text"),
        ({"meanings": {"imbalance": "2"}}, "meanings.imbalance: '2' is not a whole number"),
        ({"grouping": {"file_digests": "x"}}, "grouping.file_digests: 'x' is not an object"),
        ({"options": {"workers": "4"}}, "options.workers: '4' is not a whole number"),
        ({"options": {"crash": 5}}, "options.crash: 5 is not a text"),
        ({"options": {"window": None}}, "options.window: null is not a text"),
        ({"trace": {"path": "t"}}, "trace.fingerprint: it is missing"),
        ({"trace": {"fingerprint": "f", "generator": {"name": 1}}}, "trace.generator.name: 1 is not a text"),
        ({"clock": "wall"}, "engine: it is missing"),
        ({"engine": {"name": "spark"}}, "engine.machine: it is missing"),
        ({"engine": {"name": "spark", "machine": MACHINE, "starts": "2"}}, "engine.starts: '2' is not a whole number"),
    ],
)
def test_the_entry_and_the_reason_are_said(run: Path, values: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        read_record(changed(run, **values))
    assert caught.value.message.endswith(f"is not the record of a run: {said}")


@pytest.mark.parametrize(
    "values",
    [
        {"grouping": {"file_digests": {"keys": None}, "later": 1}, "later": [1]},
        {"clock": "wall", "engine": {"name": "spark", "machine": MACHINE, "feedback": {"delay_mean_ms": 1}}},
        {"engine": {"name": "spark", "machine": MACHINE, "feedback": {"reports": 0, "delay_mean_ms": None}}},
        {"trace": {"fingerprint": "f", "generator": {"name": "zipf", "parameters": {"keys": 3}, "seed": 0}}},
    ],
)
def test_what_other_versions_write_is_read(run: Path, values: dict[str, Any]) -> None:
    assert read_record(changed(run, **values))["schema_version"] == 1


@pytest.mark.parametrize("entry", ["grouping", "workers"])
def test_options_without_which_there_is_no_run(run: Path, entry: str) -> None:
    options = json.loads((run / "run.json").read_text())["options"]
    del options[entry]
    record = read_record(changed(run, options=options))
    with pytest.raises(DataError, match=rf"run\.json is not the record of a run: options\.{entry}: it is missing"):
        recorded_options(run, record)


@pytest.mark.parametrize(("arrivals", "pending"), [("trace", 1000), ("saturate", 7)])
def test_a_limit_that_meant_nothing_is_no_option(run: Path, arrivals: str, pending: int) -> None:
    options = json.loads((run / "run.json").read_text())["options"]
    record = read_record(changed(run, options=options | {"arrivals": arrivals, "max_pending": 7}))
    assert recorded_options(run, record).max_pending == pending


@pytest.mark.parametrize("command", ["summarize RUN", "compare RUN RUN", "report RUN -o OUT", "explain RUN"])
@pytest.mark.parametrize("values", [{"code": None}, {"options": "x"}, {"grouping": [1]}, {"trace": 3}])
def test_every_command_that_reads_runs_says_so(run: Path, tmp_path: Path, command: str, values: dict[str, Any]) -> None:
    changed(run, **values)
    places = {"RUN": str(run), "OUT": str(tmp_path / "out.html")}
    done = CliRunner().invoke(app, [places.get(word, word) for word in command.split()])
    assert (done.exit_code, done.stdout) == (4, "")
    assert f"run.json is not the record of a run: {next(iter(values))}" in done.stderr
    assert not (tmp_path / "out.html").exists()


def test_a_run_without_the_place_of_its_trace_is_not_explained(run: Path) -> None:
    changed(run, trace={"fingerprint": "f"})
    done = CliRunner().invoke(app, ["explain", str(run)])
    assert done.exit_code == 4
    assert "trace.path: it is missing" in done.stderr
    assert read_tables(run)
