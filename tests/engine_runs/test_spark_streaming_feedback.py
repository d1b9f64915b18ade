"""A Structured Streaming query whose sources listen to the workers: what they decided follows from its input files."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import streamgroup as sg
from streamgroup.base.errors import RunError
from streamgroup.engine_runs.run_on_engine import EngineOptions, run_on_engine
from streamgroup.engine_runs.spark_streaming.checkpoint import WARM_UPS
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.spark.session import Session
from tests.engine_runs.kill_between_batches import killed_after
from tests.engine_runs.test_spark_streaming import Broken, log_of
from tests.naive.streaming_with_feedback import choices

POSG, FISH = "posg:batch=10,rows=2,columns=16", "fish:interval=500ms,epoch=100"
# What a run is started with: two of the four workers are half as fast.
COMMAND = ("--service", "2ms", "--slowdown", "half:2", "--arrivals", "utilization=0.8", "--engine", "spark-streaming")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engine") / "z.trace"
    sg.synth("zipf", path, tuples=600, keys=100, exponent=1.1, seed=3)
    return path


def inputs(checkpoint: Path) -> list[list[dict[str, Any]]]:
    """The rows of the input files of the batches, the warm-ups among them."""
    return [pq.read_table(path).to_pylist() for path in sorted((checkpoint / "input").iterdir())]


def check(run: Path, checkpoint: Path, grouping: str, workers: int, sources: int) -> None:
    """Decide once more from the input files, hold reports against the workers' rows, and the log against both."""
    log, batches = log_of(run), inputs(checkpoint)
    assert choices(batches, grouping, workers, sources) == dict(zip(log["seq"], log["worker"], strict=True))
    origin = json.loads((checkpoint / "clock.json").read_text())["origin_ns"]
    for before, batch in enumerate(batches[WARM_UPS + 1 :], WARM_UPS):
        served = pq.read_table(checkpoint / "output" / f"batch-{before:09d}.parquet").to_pylist()
        worked = sorted(
            (row["seq"], row["worker"], row["start"] - origin, row["finish"] - origin)
            for row in served if row["report"] is None
        )  # fmt: skip
        assert [row[0] for row in worked] == sorted(row["seq"] for row in batches[before] if row["worker"] < 0)
        for source in range(sources):
            heard = [row for row in batch if row["source"] == source and row["worker"] >= 0]
            assert sorted((row["seq"], row["worker"], row["start"], row["finish"]) for row in heard) == worked


@pytest.mark.spark
def test_a_query_with_feedback_that_is_broken_off_goes_on(trace: Path, tmp_path: Path, spark: Session) -> None:
    """One of two workers is three times as slow: once sketches came, it gets less."""
    options = ReplayOptions(
        POSG, 2, sources=1, service="500us", slowdown="1,3", arrivals="utilization=0.8", network_delay="20ms"
    )
    place = tmp_path / "checkpoint"
    engine = EngineOptions(micro_batch=150, checkpoint=place)
    with pytest.raises(RunError, match="broken off"):
        run_on_engine(trace, options, engine, session=spark, progress=Broken(4))
    before = inputs(place)
    found = run_on_engine(trace, options, engine, tmp_path / "run", session=spark)
    assert inputs(place)[: len(before)] == before
    check(tmp_path / "run", place, POSG, 2, 1)
    last = log_of(tmp_path / "run")["worker"][450:]
    assert last.count(0) > 2 * last.count(1)
    heard = found.record["engine"]["feedback"]
    assert heard["reports"] == 450
    # A batch's overhead is more than that.
    assert 10 < heard["delay_mean_ms"] < heard["delay_max_ms"]
    again = run_on_engine(trace, options, engine, session=spark)
    assert again.record["engine"]["feedback"] == heard


@pytest.mark.spark
def test_an_error_of_a_grouping_is_reported_through_the_sink(trace: Path, tmp_path: Path, spark: Session) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from typing import NamedTuple\nimport numpy as np\n"
        "from streamgroup.groupings.protocol import GroupingParams\n"
        "class Params(GroupingParams):\n    pass\n"
        "class Mine(NamedTuple):\n    heard: np.ndarray\n"
        "    def choose(self, source, key, now):\n        return 0 if self.heard[0] == 0 else 7\n"
        "    def observe(self, source, key, worker, now):\n        pass\n"
        "    def tick(self, now):\n        pass\n"
        "    def executed(self, worker, key, arrival, start, finish):\n        self.heard[0] += 1\n"
        "def start(params, context):\n    return Mine(np.zeros(1, dtype=np.int64))\n"
    )
    options = ReplayOptions(str(mine), 2, sources=2, service="500us", arrivals="utilization=0.8")
    with pytest.raises(RunError, match="it chose a worker that does not exist"):
        run_on_engine(trace, options, EngineOptions(micro_batch=300), session=spark)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(("grouping", "sources"), [(POSG, 1), (FISH, 2)])
def test_groupings_that_listen_send_less_to_slow_workers(
    trace: Path, tmp_path: Path, grouping: str, sources: int
) -> None:
    """From the command line, against a replay."""
    place, run = tmp_path / "checkpoint", tmp_path / "run"
    command = [
        sys.executable, "-m", "streamgroup", "run", str(trace), "-g", grouping, "-n", "4", "--sources", str(sources),
        *COMMAND, "--micro-batch", "100", "--checkpoint", str(place), "-o", str(run), "--against-replay", "--json",
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "assignments are not expected to be equal" in ran.stderr
    check(run, place, grouping, 4, sources)
    sent = np.bincount(log_of(run)["worker"][300:], minlength=4)
    # Decided once more without reports: then slow workers are sent as much.
    tuples = [[row for row in batch if row["worker"] < 0] for batch in inputs(place)]
    deaf = choices(tuples, grouping, 4, sources)
    same = np.bincount([worker for seq, worker in deaf.items() if seq >= 300], minlength=4)
    assert same[:2].sum() < 1.2 * same[2:].sum()
    assert sent[:2].sum() > 1.4 * sent[2:].sum()
    record = json.loads((run / "run.json").read_text())
    assert record["engine"]["feedback"]["reports"] == 500 * sources
    assert record["engine"]["state"]["equals_direct"]


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_with_feedback_that_is_killed_goes_on(trace: Path, tmp_path: Path) -> None:
    """Killed after a batch, and once more: what had been decided stays, and all follows from the files."""
    place, run = tmp_path / "checkpoint", tmp_path / "run"
    command = [
        sys.executable, "-m", "streamgroup", "run", str(trace), "-g", FISH, "-n", "4", "--sources", "2", *COMMAND,
        "--micro-batch", "60", "--checkpoint", str(place), "-o", str(run),
    ]  # fmt: skip
    before: list[list[list[dict[str, Any]]]] = []
    for batches in (4, 8):
        killed_after(command, place, batches)
        before.append(inputs(place))
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    for some in before:
        assert inputs(place)[: len(some)] == some
    check(run, place, FISH, 4, 2)
    assert json.loads((run / "run.json").read_text())["engine"]["starts"] >= 3
