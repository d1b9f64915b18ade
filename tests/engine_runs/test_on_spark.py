"""Runs inside Spark: the assignments and the state of a replay, in the tables of one."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import streamgroup as sg
from streamgroup.base.errors import UsageError
from streamgroup.engine_runs.run_on_engine import EngineOptions, run_on_engine
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.spark.session import Session

# Metrics that follow from the assignments alone.
STATE = (
    "imbalance", "replicas", "replication_factor", "state_entries_max", "source_state_entries", "detector_entries",
    "hot_keys_mean", "choices_mean", "hot_precision", "control_messages", "offered_load",
)  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engine") / "z.trace"
    sg.synth("zipf", path, tuples=2000, keys=300, exponent=1.1, seed=3)
    return path


@pytest.mark.spark
def test_four_workers_against_a_replay(trace: Path, tmp_path: Path) -> None:
    """A session of its own: the one that tests share has two slots."""
    command = ["run", str(trace), "-g", "pkg", "-n", "4", "--sources", "2", "--service", "2ms", "--arrivals"]
    command += ["utilization=0.8", "-o", str(tmp_path / "run"), "--against-replay", "--json"]
    ran = subprocess.run([sys.executable, "-m", "streamgroup", *command], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "assignments are equal, in all 2000 tuples" in ran.stderr
    rows = {row["metric"]: row for row in json.loads(ran.stdout)}
    assert {name: rows[name]["error"] for name in STATE if rows[name]["predicted"] is not None} == {
        name: 0.0 for name in STATE if rows[name]["predicted"] is not None
    }
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["clock"] == "wall"
    assert record["engine"]["state"] == {"entries": rows["replicas"]["measured"], "equals_direct": True}
    machine = record["engine"]["machine"]
    assert machine["service_measured_ms"] >= machine["service_asked_ms"] == 2.0
    assert pq.read_table(tmp_path / "run" / "assignments").num_rows == 2000


@pytest.mark.spark
def test_hot_keys_delays_and_a_worker_without_tuples(trace: Path, tmp_path: Path, spark: Session) -> None:
    options = ReplayOptions(
        "d_choices", 2, sources=2, service="500us", arrivals="poisson-utilization=0.5", slowdown="one:2",
        service_distribution="exponential", network_delay="1ms", warmup="10%", source_assignment="key",
    )  # fmt: skip
    engine = EngineOptions(lead_ns=500_000_000)
    found = run_on_engine(trace, options, engine, tmp_path / "run", session=spark)
    expected = sg.replay(
        trace, "d_choices", 2, sources=2, service="500us", arrivals="poisson-utilization=0.5", slowdown="one:2",
        service_distribution="exponential", network_delay="1ms", warmup="10%", source_assignment="key",
        output=tmp_path / "replay", log=True,
    )  # fmt: skip
    assert {name: found.row[name] for name in STATE} == {name: expected.metrics[name] for name in STATE}
    compared = sg.compare(tmp_path / "replay", tmp_path / "run")
    assert "assignments are equal, in all 2000 tuples" in compared.notes
    log = pq.read_table(tmp_path / "run" / "assignments").to_pandas()
    assert (log.start_ns >= log.arrival_ns + 1_000_000).all()
    few = tmp_path / "few.trace"
    sg.synth("uniform", few, tuples=20, keys=1)
    alone = run_on_engine(few, ReplayOptions("kg", 2, service="1ms", arrivals="rate=100"), engine, session=spark)
    assert (alone.row["idle_workers"], alone.row["replicas"]) == (1, 1)


@pytest.mark.spark
def test_too_few_slots_for_the_barrier(trace: Path, tmp_path: Path, spark: Session) -> None:
    options = ReplayOptions("kg", 4, service="1ms", arrivals="utilization=0.5")
    with pytest.raises(UsageError, match=r"4 workers run at once, .* local\[2\] has 2 slots"):
        run_on_engine(trace, options, EngineOptions(), tmp_path / "run", session=spark)
    assert list(tmp_path.iterdir()) == []
