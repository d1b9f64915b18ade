"""One Structured Streaming query: the assignments and the state of a replay, also when it is broken off."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import streamgroup as sg
from streamgroup.base.errors import RunError, UsageError
from streamgroup.base.progress import Silent
from streamgroup.engine_runs.run_on_engine import EngineOptions, run_on_engine
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.spark.session import Session
from tests.engine_runs.kill_between_batches import killed_after
from tests.engine_runs.test_on_spark import STATE

N, TUPLES, SIZE = 2, 600, 150
CONDITIONS: dict[str, Any] = {"sources": 3, "service": "500us", "arrivals": "utilization=0.8"}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engine") / "z.trace"
    sg.synth("zipf", path, tuples=TUPLES, keys=100, exponent=1.1, seed=3)
    return path


class Broken(Silent):
    """Breaks a run off when so many batches are committed."""

    def __init__(self, batches: int) -> None:
        self._left = batches

    def advance(self, done: int) -> None:
        self._left -= done
        if self._left <= 0:
            raise RunError("broken off")


def log_of(run: Path) -> dict[str, Any]:
    table = pq.read_table(run / "assignments").sort_by("seq")
    return {name: table[name].to_pylist() for name in ("seq", "source", "key_id", "worker", "arrival_ns")}


@pytest.mark.spark
def test_a_query_that_is_broken_off_goes_on_as_a_replay(trace: Path, tmp_path: Path, spark: Session) -> None:
    """A grouping with a detector: its state is what all batches before made it."""
    options = ReplayOptions("w_choices", N, app="count", **CONDITIONS)
    engine = EngineOptions(micro_batch=SIZE, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(RunError, match="broken off"):
        run_on_engine(trace, options, engine, tmp_path / "run", session=spark, progress=Broken(4))
    assert not (tmp_path / "run").exists()
    done = len(json.loads((tmp_path / "checkpoint" / "clock.json").read_text())["commits"])
    assert 4 <= done < 6
    with pytest.raises(UsageError, match="is of another run: seed 0 there, 1 here"):
        run_on_engine(trace, dataclasses.replace(options, seed=1), engine, session=spark)
    found = run_on_engine(trace, options, engine, tmp_path / "run", session=spark)
    model = f"micro-batch={SIZE},overhead=1s"
    expected = sg.replay(
        trace, "w_choices", N, output=tmp_path / "replay", log=True, engine_model=model, app="count", **CONDITIONS
    )
    assert log_of(tmp_path / "run") == log_of(tmp_path / "replay")
    assert {name: found.row[name] for name in STATE} == {name: expected.metrics[name] for name in STATE}
    counted = sg.open_run(tmp_path / "run").tables.results
    assert counted is not None
    assert counted.equals(expected.tables.results)
    of = found.record["engine"]
    assert (of["name"], of["batches"], of["micro_batch"]) == ("spark-streaming", 4, SIZE)
    # On a busy machine it is started more often: Spark waits 10 s for Python.
    assert of["starts"] >= 2
    # Spark's own count of what the state of the second operator holds.
    assert of["state"] == {"entries": found.row["replicas"], "equals_direct": True, "spark_rows": found.row["replicas"]}
    compared = sg.compare(tmp_path / "replay", tmp_path / "run")
    assert compared.witness is not None
    assert f"{of['starts']} starts in all" in str(compared.witness.refused)
    # All is committed: the results are there again.
    again = run_on_engine(trace, options, engine, tmp_path / "again", session=spark)
    assert log_of(tmp_path / "again") == log_of(tmp_path / "run")
    assert again.record["engine"]["overhead_ms"] == of["overhead_ms"]


@pytest.mark.spark
def test_times_are_those_of_batches(tmp_path: Path, spark: Session) -> None:
    """One key: one of the workers is the most loaded, and the other gets nothing."""
    few = tmp_path / "few.trace"
    sg.synth("uniform", few, tuples=100, keys=1)
    given: dict[str, Any] = {**CONDITIONS, "network_delay": "50ms", "service_distribution": "exponential"}
    found = run_on_engine(
        few, ReplayOptions("kg", N, **given), EngineOptions(micro_batch=60), tmp_path / "run", session=spark
    )
    log = pq.read_table(tmp_path / "run" / "assignments").sort_by("seq")
    start, finish, arrival = (log[f"{name}_ns"].to_numpy() for name in ("start", "finish", "arrival"))
    first, second = int(finish[0]), int(finish[60])
    assert finish.tolist() == [first] * 60 + [second] * 40
    busy, overhead = finish - start, found.record["engine"]["overhead_ms"]
    assert min(overhead) > 0
    assert first == pytest.approx(arrival[59] + busy[:60].sum() + 50e6 + overhead[0] * 1e6, abs=2000)
    assert second == pytest.approx(max(first, arrival[99]) + busy[60:].sum() + 50e6 + overhead[1] * 1e6, abs=2000)
    # Less than the sources' state has.
    assert found.record["engine"]["state"] == {"entries": 1, "equals_direct": True, "spark_rows": 1}
    assert not list(spark.scratch.glob("checkpoint-*"))
    assert spark.spark.conf.get("spark.sql.shuffle.partitions") != str(N)


@pytest.mark.spark
def test_too_few_slots(trace: Path, spark: Session) -> None:
    with pytest.raises(UsageError, match=r"4 workers run at once, as tasks of one stage, and local\[2\] has 2 slots"):
        run_on_engine(trace, ReplayOptions("kg", 4, **CONDITIONS), EngineOptions(micro_batch=SIZE), session=spark)


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_that_is_killed_goes_on(trace: Path, tmp_path: Path) -> None:
    """From the command line: killed after a batch, and once more between two; at last against a replay."""
    command = [
        sys.executable, "-m", "streamgroup", "run", str(trace), "-g", "fish:hwa=false", "-n", "4", "--sources", "2",
        "--service", "2ms", "--arrivals", "utilization=0.8", "--engine", "spark-streaming", "--micro-batch", "60",
    ]  # fmt: skip
    place = tmp_path / "checkpoint"
    mine = [*command, "--checkpoint", str(place), "-o", str(tmp_path / "run")]
    for batches in (4, 8):
        killed_after(mine, place, batches)
    ran = subprocess.run([*mine, "--against-replay", "--json"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert f"assignments are equal, in all {TUPLES} tuples" in ran.stderr
    assert "starts in all" in ran.stderr
    whole = subprocess.run([*command, "-o", str(tmp_path / "whole")], capture_output=True, text=True, check=False)
    assert whole.returncode == 0, whole.stderr
    assert log_of(tmp_path / "whole") == log_of(tmp_path / "run")
