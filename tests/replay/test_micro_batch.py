"""`--engine-model micro-batch`: batches against a slow twin, the metrics of a replay, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import streamgroup as sg
from streamgroup.base.errors import UsageError
from streamgroup.replay.micro_batch import batch_ends
from streamgroup.replay.scenario.micro_batch_option import MicroBatch, parse_engine_model
from tests.naive.replay.micro_batches import commits

TUPLE = st.tuples(st.integers(0, 60), st.integers(0, 3), st.integers(0, 25))


@settings(max_examples=200)
@given(
    st.lists(TUPLE, min_size=1, max_size=30),
    st.one_of(st.tuples(st.integers(1, 9), st.just(0)), st.tuples(st.just(0), st.integers(1, 20))),
    st.integers(0, 30),
    st.integers(0, 3),
)
# A batch that runs over its tick, and a gap of several ticks behind it.
@example([(0, 0, 25), (1, 0, 1), (2, 1, 1), (60, 0, 1)], (0, 10), 3, 0)
def test_batches_are_those_of_the_twin(
    tuples: list[tuple[int, int, int]], size: tuple[int, int], overhead: int, delay: int
) -> None:
    arrival, worker, service = (list(column) for column in zip(*sorted(tuples), strict=True))
    found = batch_ends(
        MicroBatch(*size, overhead), np.array(arrival), np.array(worker, dtype=np.int32), np.array(service), delay
    )
    expected = commits(arrival, worker, service, tuples=size[0], every=size[1], overhead=overhead, delay=delay)
    assert found.tolist() == expected


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("batches") / "z.trace"
    sg.synth("zipf", path, tuples=1000, keys=100, exponent=1.2, seed=3)
    return path


@pytest.mark.parametrize(
    ("grouping", "model"), [("pkg", "micro-batch=100,overhead=7ms"), ("w_choices", "micro-batch=50ms")]
)
def test_a_replay_in_batches(trace: Path, tmp_path: Path, grouping: str, model: str) -> None:
    given_options: dict[str, Any] = {"sources": 3, "service": "1ms", "arrivals": "rate=2000", "log": True}
    plain = sg.replay(trace, grouping, 4, output=tmp_path / "plain", **given_options)
    found = sg.replay(trace, grouping, 4, output=tmp_path / "batches", engine_model=model, **given_options)
    before, after = (pq.read_table(tmp_path / name / "assignments").sort_by("seq") for name in ("plain", "batches"))
    assert before["worker"].equals(after["worker"])
    every = (50_000_000 if "50ms" in model else 0, 0 if "50ms" in model else 100)
    ends = commits(
        after["arrival_ns"].to_pylist(), after["worker"].to_pylist(), [1_000_000] * 1000, tuples=every[1],
        every=every[0], overhead=7_000_000 if "overhead" in model else 0,
    )  # fmt: skip
    assert after["finish_ns"].to_pylist() == ends
    assert found.metrics["makespan_s"] == max(ends) / 1e9
    assert (
        found.metrics["latency_max_ms"]
        == max(end - at for end, at in zip(ends, after["arrival_ns"].to_pylist(), strict=True)) / 1e6
    )
    kept = ("imbalance", "replicas", "hot_keys_mean", "hot_precision", "source_state_entries", "control_messages",
            "detector_entries", "state_entries_max", "work_imbalance")  # fmt: skip
    assert {name: found.metrics[name] for name in kept} == {name: plain.metrics[name] for name in kept}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"arrivals": "saturate"}, "times are those of a pipelined engine"),
        ({"queue_capacity": 5}, "workers hold no queue"),
        ({"crash": "50%"}, "workers are the tasks of each batch"),
        ({"grouping": "full_knowledge"}, "sees its workers"),
        ({"engine_model": "micro-batch=0"}, "a batch would hold nothing"),
        ({"engine_model": "storm"}, "there is no such model"),
        ({"engine_model": "micro-batch=5,delay=1ms"}, "has no 'delay'"),
    ],
)
def test_what_has_no_meaning_in_batches(trace: Path, more: dict[str, Any], says: str) -> None:
    options = {"grouping": "pkg", "arrivals": "rate=2000", "engine_model": "micro-batch=10", **more}
    with pytest.raises(UsageError, match=says):
        sg.replay(trace, workers=4, **options)


def test_the_model_as_written() -> None:
    assert parse_engine_model("micro-batch=2s,overhead=300ms") == MicroBatch(0, 2_000_000_000, 300_000_000)
    assert parse_engine_model("micro-batch=40") == MicroBatch(40, 0)


def test_control_servers_work_as_without_batches(trace: Path) -> None:
    """They hear of tuples when these are chosen, which batches do not change."""
    options: dict[str, Any] = {
        "grouping": "dstream:coins=2,coin_service=20us,synopsis_service=10us", "workers": 4, "service": "1ms",
        "arrivals": "utilization=0.5",
    }  # fmt: skip
    plain = sg.replay(trace, **options).metrics
    batches = sg.replay(trace, **options, engine_model="micro-batch=100,overhead=1ms").metrics
    names = "hot_signal_delay_ms", "control_messages"
    assert [batches[name] for name in names] == [plain[name] for name in names]
    assert plain["hot_signal_delay_ms"] > 0
    # In the longer time that batches take.
    busy = batches["control_utilization_max"] * batches["makespan_s"]
    assert busy == pytest.approx(plain["control_utilization_max"] * plain["makespan_s"])
