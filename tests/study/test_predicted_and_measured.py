"""A prediction beside a measurement: assignments, errors, calibration, and a machine that was too slow."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import streamgroup as sg
from streamgroup.base.errors import UsageError
from streamgroup.cli.app import app
from streamgroup.study.summary.predicted_and_measured import error_condition
from streamgroup.study.summary.summarize import load_runs, summarize


@pytest.fixture
def replayed(tmp_path: Path) -> Path:
    sg.synth("zipf", tmp_path / "z.trace", tuples=1000, keys=100, exponent=1.1, seed=3)
    for name, service in (("predicted", "10ms"), ("longer", "11ms")):
        sg.replay(
            tmp_path / "z.trace", "pkg", 4, sources=2, arrivals="rate=300", service=service, network_delay="1ms",
            output=tmp_path / name, log=True, warmup="10%",
        )  # fmt: skip
    return tmp_path


def as_measured(run: Path, *, factor: float = 1.1, late: float = 0.1, p99: float = 1.0) -> None:
    """Turn a replay into what a run in an engine would have written, on a machine that was so late (in ms)."""
    record = json.loads((run / "run.json").read_text())
    machine = {
        "service_factor": factor, "service_asked_ms": 10.0, "service_measured_ms": 10 * factor,
        "lateness_share": late / 10, "lateness_mean_ms": late, "lateness_p99_ms": p99,
    }  # fmt: skip
    record |= {"clock": "wall", "engine": {"name": "spark", "machine": machine}}
    (run / "run.json").write_text(json.dumps(record))


def test_calibrated_by_one_number_the_prediction_is_exact(replayed: Path) -> None:
    """What an engine with services of 11 ms would measure, predicted from a replay with 10 ms."""
    as_measured(replayed / "longer")
    found = sg.compare(replayed / "predicted", replayed / "longer")
    assert "assignments are equal, in all 1000 tuples" in found.notes
    assert found.witness is not None
    assert found.witness.refused is None
    rows = {row["metric"]: row for row in found.witness.table.to_dicts()}
    for name in ("makespan_s", "latency_mean_ms", "latency_max_ms", "throughput_tps", "backlog_max_ms"):
        assert rows[name]["calibrated"] == pytest.approx(rows[name]["measured"], rel=1e-9), name
        assert rows[name]["error"] != 0
    # Percentiles of a run come from a histogram.
    for name in ("latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "latency_p999_ms"):
        assert abs(rows[name]["calibrated_error"]) < 0.005, name
    assert rows["replicas"]["error"] == 0
    assert rows["replicas"]["calibrated"] is None


def test_batches_are_calibrated_as_batches(tmp_path: Path) -> None:
    sg.synth("zipf", tmp_path / "z.trace", tuples=1000, keys=100, exponent=1.1, seed=3)
    for name, service in (("predicted", "10ms"), ("longer", "11ms")):
        sg.replay(
            tmp_path / "z.trace", "kg", 4, sources=2, arrivals="rate=300", service=service, network_delay="1ms",
            output=tmp_path / name, log=True, warmup="10%", engine_model="micro-batch=150,overhead=300ms",
        )  # fmt: skip
    as_measured(tmp_path / "longer")
    found = sg.compare(tmp_path / "predicted", tmp_path / "longer")
    assert found.witness is not None
    rows = {row["metric"]: row for row in found.witness.table.to_dicts()}
    for name in ("makespan_s", "latency_mean_ms", "latency_max_ms", "throughput_tps", "backlog_max_ms"):
        assert rows[name]["calibrated"] == pytest.approx(rows[name]["measured"], rel=1e-9), name
        assert rows[name]["error"] != 0


def test_a_gate_on_errors(replayed: Path) -> None:
    as_measured(replayed / "longer")
    found = sg.compare(replayed / "predicted", replayed / "longer")
    assert found.broken("makespan_error>3%,latency_mean_error>0.1%,replicas_error>0%") == []
    (line,) = found.broken("latency_mean_nominal_error>5%")
    assert line.startswith("latency_mean_ms: the error is +")
    assert line.endswith(", limit 5 %")
    # The other way round, too.
    assert sg.compare(replayed / "longer", replayed / "predicted").broken("makespan_error>3%") == []
    with pytest.raises(UsageError, match="no metric 'makespam'"):
        found.broken("makespam_error>3%")
    with pytest.raises(UsageError, match="bottleneck is a word"):
        found.broken("bottleneck_error>3%")
    assert error_condition("latency_p99_ms>+3%") is None


def test_two_replays_have_errors_too(replayed: Path) -> None:
    found = sg.compare(replayed / "predicted", replayed / "longer")
    assert found.witness is None
    assert found.broken("makespan_error>90%,replicas_error>0%") == []
    (line,) = found.broken("latency_mean_error>5%")
    assert "latency_mean_ms went from" in line
    (line,) = sg.compare(replayed / "longer", replayed / "predicted").broken("latency_mean_error>5%")
    assert line.endswith("limit 5 %")


@pytest.mark.parametrize(("late", "p99", "which"), [(0.6, 1.0, "on average"), (0.1, 6.0, "one time in a hundred")])
def test_a_machine_that_was_too_slow_is_no_witness(replayed: Path, late: float, p99: float, which: str) -> None:
    as_measured(replayed / "longer", late=late, p99=p99)
    found = sg.compare(replayed / "predicted", replayed / "longer")
    assert found.witness is not None
    assert found.witness.refused is not None
    assert f"{which}, and" in found.witness.refused
    rows = {row["metric"]: row for row in found.witness.table.to_dicts()}
    for name in ("makespan_s", "service_ms_mean", "sustainable_tps"):
        assert rows[name]["measured"] is rows[name]["error"] is None, name
    assert rows["replicas"]["error"] == 0
    (line,) = found.broken("makespan_error>3%")
    assert "cannot be judged: the machine was too slow" in line
    ran = CliRunner().invoke(app, ["compare", str(replayed / "predicted"), str(replayed / "longer")])
    assert "too slow to be a witness" in ran.stderr
    assert ran.exit_code == 0


def test_an_error_of_a_metric_that_neither_run_has_cannot_be_judged(replayed: Path) -> None:
    as_measured(replayed / "longer")
    found = sg.compare(replayed / "predicted", replayed / "longer")
    assert found.witness is not None
    (line,) = found.broken("hot_recall_error>3%")
    assert line == "hot_recall has no value in OLD and NEW, so hot_recall_error>3% cannot be judged"


def test_the_first_tuple_that_went_elsewhere_is_named(replayed: Path) -> None:
    part = replayed / "longer" / "assignments" / "part-00000.parquet"
    table = pq.read_table(part)
    worker = table["worker"].to_numpy().copy()
    worker[[17, 40]] = (worker[[17, 40]] + 1) % 4
    place = table.schema.get_field_index("worker")
    pq.write_table(table.set_column(place, table.schema.field("worker"), pa.array(worker.astype(np.int32))), part)
    (note,) = [one for one in sg.compare(replayed / "predicted", replayed / "longer").notes if "assignments" in one]
    assert note.startswith("assignments differ in 2 of 1000 tuples, first in tuple 17: worker ")


def test_what_an_engine_did_to_the_order_is_said(replayed: Path) -> None:
    predicted, measured = replayed / "predicted", replayed / "longer"
    as_measured(measured)
    said = "workers served 8.2 % of the tuples after one that had arrived later"
    assert not [note for note in sg.compare(predicted, measured).notes if "arrived later" in note]
    record = json.loads((measured / "run.json").read_text())
    for share, expected in ((0.0, 0), (0.0823, 1)):
        record["engine"] |= {"name": "flink 2.3.0", "sources": {"out_of_order": share}}
        (measured / "run.json").write_text(json.dumps(record))
        assert len([note for note in sg.compare(predicted, measured).notes if note.startswith(said)]) == expected


def test_sources_that_got_no_report_did_not_listen(replayed: Path) -> None:
    predicted, measured = replayed / "predicted", replayed / "longer"
    as_measured(measured)
    record = json.loads((measured / "run.json").read_text())
    for delay, expected in ((None, 0), (3.5, 1)):
        record["engine"]["feedback"] = {"reports": expected, "delay_mean_ms": delay}
        (measured / "run.json").write_text(json.dumps(record))
        notes = [note for note in sg.compare(predicted, measured).notes if "listened to the workers, 3.5 ms" in note]
        assert len(notes) == expected


def test_what_was_measured_and_what_was_simulated_is_not_averaged(replayed: Path) -> None:
    as_measured(replayed / "longer")
    frame = load_runs([replayed / "predicted", replayed / "longer"])
    assert summarize(frame, by=["grouping"], metrics=["makespan_s"])["runs"].to_list() == [1, 1]


def test_metrics_that_were_defined_anew_are_warned_of(replayed: Path) -> None:
    def changed(run: Path, **values: Any) -> None:
        record = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(record | values))

    assert sg.compare(replayed / "predicted", replayed / "longer").warnings == []
    changed(replayed / "predicted", code={"program": "older"})
    assert sg.compare(replayed / "predicted", replayed / "longer").warnings == []
    changed(replayed / "predicted", meanings={"memory_estimate": 1, "hot_precision": 2, "hot_recall": 2})
    (warning,) = sg.compare(replayed / "predicted", replayed / "longer").warnings
    assert warning.endswith("define these metrics differently: memory_estimate, remapped_replicas")
    assert sg.compare(replayed / "predicted", replayed / "longer", metrics="replicas").warnings == []


def test_a_picture_of_both_distributions(replayed: Path) -> None:
    as_measured(replayed / "longer")
    picture = replayed / "both.svg"
    ran = CliRunner().invoke(
        app, ["compare", str(replayed / "predicted"), str(replayed / "longer"), "--picture", str(picture)]
    )
    assert ran.exit_code == 0, ran.stderr
    assert "OLD: pkg, simulated" in picture.read_text()
    assert "NEW: pkg, measured" in picture.read_text()
    assert picture.with_suffix(".csv").read_text().startswith("run,at_least_ms,share")


@pytest.mark.parametrize(
    ("name", "taken", "said"),
    [
        ("both.svg", "both.svg", "both.svg exists already"),
        ("both.svg", "both.csv", "both.csv exists already"),
        ("both", "both.png", "both.png exists already"),
        ("folder.svg", None, "folder.svg is a directory"),
        ("folder", None, "folder is a directory"),
    ],
)
def test_a_picture_replaces_nothing_unless_asked_to(replayed: Path, name: str, taken: str | None, said: str) -> None:
    if taken is None:
        (replayed / name).mkdir()
    else:
        (replayed / taken).write_text("mine")
    command = ["compare", str(replayed / "predicted"), str(replayed / "longer"), "--picture", str(replayed / name)]
    before = sorted(replayed.iterdir())
    ran = CliRunner().invoke(app, command)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert sorted(replayed.iterdir()) == before
    if taken is not None:
        assert (replayed / taken).read_text() == "mine"
        assert CliRunner().invoke(app, [*command, "--overwrite"]).exit_code == 0
        assert (replayed / taken).read_bytes() != b"mine"


@pytest.mark.parametrize(
    ("name", "made"),
    [("both.png", {"both.png", "both.csv"}), ("both", {"both.svg", "both.png", "both.csv"})],
)
def test_a_picture_is_of_the_kind_that_its_ending_names(replayed: Path, name: str, made: set[str]) -> None:
    ran = CliRunner().invoke(
        app, ["compare", str(replayed / "predicted"), str(replayed / "longer"), "--picture", str(replayed / name)]
    )
    assert ran.exit_code == 0, ran.stderr
    assert {path.name for path in replayed.glob("both*")} == made
    assert (replayed / "both.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_may_be_named_for_its_grouping(replayed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A colon in a relative path is no scheme of a URL, and `batch=32` no partition."""
    monkeypatch.chdir(replayed)
    other = Path("run-posg:batch=32")
    shutil.copytree("predicted", other)
    compared = sg.compare("predicted", other)
    assert any(note.startswith("assignments are equal") for note in compared.notes)
    assert sg.open_run(other).metrics == sg.open_run("predicted").metrics
