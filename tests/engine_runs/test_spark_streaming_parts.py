"""The parts of a streaming run, without Spark."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamgroup as sg
from streamgroup.base.errors import EnvironmentFault, RunError, UsageError
from streamgroup.engine_runs.engine_options import engine_options
from streamgroup.engine_runs.run_on_engine import _tuples
from streamgroup.engine_runs.spark_streaming.batch_times import batches_of
from streamgroup.engine_runs.spark_streaming.checkpoint import WARM_UPS, belongings, opened
from streamgroup.engine_runs.spark_streaming.one_worker_per_partition import partition_labels
from streamgroup.engine_runs.spark_streaming.streaming_run import _check_state
from streamgroup.engines.keys.typed_key_values import Int
from streamgroup.engines.spark_sql import spark_sql_partition
from streamgroup.replay.prepared_run import Run
from streamgroup.replay.replay_trace import prepared
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.summary.predicted_and_measured import too_slow
from streamgroup.traces.trace import open_trace

OPTIONS = ReplayOptions("pkg", 2, sources=3, service="1ms", arrivals="rate=1000")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engine") / "z.trace"
    sg.synth("zipf", path, tuples=100, keys=30, exponent=1.1, seed=3)
    return path


def run(trace: Path, **changed: Any) -> Run:
    return prepared(open_trace(trace), dataclasses.replace(OPTIONS, **changed))


@pytest.mark.parametrize(("wanted", "partitions"), [(1, 1), (4, 4), (64, 64), (5, 2), (2, 16)])
def test_labels_hash_to_their_places(wanted: int, partitions: int) -> None:
    labels = partition_labels(wanted, partitions)
    assert len(set(labels)) == wanted
    assert [spark_sql_partition(Int(label), partitions) for label in labels] == [i % partitions for i in range(wanted)]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3), st.integers(0, 30)), min_size=1, max_size=30),
    st.integers(1, 7),
)
def test_batches_cost_what_is_left(tuples: list[tuple[int, int, int]], size: int) -> None:
    """By a loop over the batches."""
    arrival = np.cumsum([one[0] for one in tuples])
    worker, busy = np.array([one[1] for one in tuples]), np.array([one[2] for one in tuples])
    number = np.arange(len(tuples)) // size
    commit, expected, committed = [], [], 0
    for batch in range(int(number[-1]) + 1):
        mine = [i for i in range(len(tuples)) if number[i] == batch]
        begins = max(int(arrival[mine[-1]]), committed)
        most = max(sum(int(busy[i]) for i in mine if worker[i] == who) for who in range(4))
        committed = begins + most + 5 + batch + 3
        commit.append(committed)
        expected.append(batch + 3)
    found = batches_of(number, arrival, worker, busy, np.array(commit))
    assert found.overhead(5).tolist() == expected
    assert found.record(size, 5)["overhead_mean_ms"] == pytest.approx(float(np.mean(expected)) / 1e6)


def test_a_checkpoint_holds_the_stream_cut_into_batches(trace: Path, tmp_path: Path) -> None:
    one, place = run(trace), tmp_path / "c"
    table = _tuples(one)
    belongs = belongings(one, "sleep", 30)
    with opened(place, belongs, table, 2) as checkpoint:
        assert (checkpoint.batches, checkpoint.is_complete) == (WARM_UPS + 4, False)
        delivered = 0
        # Time begins after the warm-ups.
        while (due := checkpoint.due()) is not None:
            assert due == 0
            checkpoint.deliver()
            delivered += 1
        assert delivered == WARM_UPS
        checkpoint.begin(10**18)
        assert checkpoint.due() == 10**18 + table["arrival"][29].as_py()
        checkpoint.deliver()
        commits = place / "spark" / "commits"
        commits.mkdir(parents=True)
        (commits / "0").write_text("v1")
        (commits / ".1.tmp").write_text("v1")
        os.utime(commits / "0", ns=(7, 7))
        assert (checkpoint.look(), checkpoint.look()) == (1, 0)
    with opened(place, belongs, table, 2) as again:
        assert again.commits == {0: 7}
        assert again.origin_ns == 10**18
        for _ in range(3):
            again.deliver()
        assert again.due() is None
    files = sorted((place / "input").iterdir())
    times = [file.stat().st_mtime for file in files]
    assert times == sorted(set(times))
    parts = [pq.read_table(file) for file in files]
    assert parts[0]["seq"].to_pylist() == [-1] * 3
    assert [seq for part in parts[WARM_UPS:] for seq in part["seq"].to_pylist()] == list(range(100))
    assert [len(part) for part in parts[WARM_UPS:]] == [30, 30, 30, 10]
    assert len({(row["label"], row["source"]) for part in parts for row in part.to_pylist()}) == 3


def test_a_checkpoint_is_of_one_run_and_used_by_one(trace: Path, tmp_path: Path) -> None:
    one, place = run(trace), tmp_path / "c"
    table = _tuples(one)
    belongs = belongings(one, "sleep", 30)
    with opened(place, belongs, table, 2):
        # A lock is of a process; another one has to ask.
        asks = f"import fcntl; fcntl.flock(open({str(place / '.lock')!r}), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        ran = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=False)
        assert "BlockingIOError" in ran.stderr
    other = belongings(run(trace, grouping="pkg:d=3", service="2ms"), "sleep", 30)
    with pytest.raises(UsageError) as error, opened(place, other, table, 2):
        pass
    assert str(error.value).endswith("another run: grouping pkg there, pkg:d=3 here; service 1ms there, 2ms here")
    with (
        pytest.raises(UsageError, match=r"another run: code-of-program \w+ there, x here"),
        opened(place, {**belongs, "code_of_program": "x"}, table, 2),
    ):
        pass
    with (
        pytest.raises(UsageError, match="micro-batch 30 there, 31 here"),
        opened(place, {**belongs, "micro_batch": 31}, table, 2),
    ):
        pass
    with pytest.raises(UsageError, match=r"has a \[ in its path"), opened(tmp_path / "c[1]", belongs, table, 2):
        pass
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(UsageError, match=r"holds no checkpoint\.json"), opened(tmp_path / "mine", belongs, table, 2):
        pass
    assert json.loads((place / "checkpoint.json").read_text())["grouping"].startswith("pkg")


def test_counts_of_the_state_are_those_of_the_tuples_sent() -> None:
    key, worker = np.array([5, 3, 5, 5]), np.array([1, 0, 1, 0], dtype=np.int32)
    held = {"worker": [1, 0, 0], "key_id": [5, 5, 3], "count": [2, 1, 1]}
    _check_state(pa.table(held), key, worker)
    for wrong in ({"count": [2, 1, 2]}, {"worker": [0, 1, 0]}, {"key_id": [5, 5, 4]}):
        with pytest.raises(RunError, match="other counts"):
            _check_state(pa.table({**held, **wrong}), key, worker)


def test_without_protobuf_it_says_what_to_install(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(EnvironmentFault, match="need protobuf") as error:
        sg.run(trace, "pkg", 2, engine="spark-streaming", service="1ms", arrivals="rate=1000")
    assert "streamgroup[connect]" in str(error.value.hint)


def test_options_of_an_engine() -> None:
    assert engine_options("spark", "sleep", {}).name == "spark"
    streaming = engine_options("spark-streaming", "spin", {"checkpoint": "c"})
    assert (streaming.name, streaming.micro_batch, streaming.checkpoint) == ("spark-streaming", 1000, Path("c"))
    with pytest.raises(UsageError, match="--checkpoint is of a streaming query"):
        engine_options("spark", "sleep", {"checkpoint": "c"})
    with pytest.raises(UsageError, match="--micro-batch 0 is not a number of tuples"):
        engine_options("spark-streaming", "sleep", {"micro_batch": 0})
    with pytest.raises(UsageError, match="no engine 'storm'"):
        engine_options("storm", "sleep", {})


def test_a_run_with_gaps_is_no_witness_of_times() -> None:
    machine = {"service_asked_ms": 10.0, "lateness_mean_ms": 0.4, "lateness_p99_ms": 2.0}
    batches = {"machine": machine, "starts": 1, "micro_batch": 10}
    assert too_slow({"engine": batches}) is None
    assert "2 starts in all" in str(too_slow({"engine": {**batches, "starts": 2}}))
    assert "5 % are allowed" in str(too_slow({"engine": {**batches, "machine": {**machine, "lateness_mean_ms": 0.6}}}))
    # A tuple's own wake-up counts where tuples do not wait for their batch.
    assert "one time in a hundred" in str(too_slow({"engine": {"machine": machine}}))
