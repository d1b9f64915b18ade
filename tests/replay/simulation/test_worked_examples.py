"""The worked examples of the papers that are about workers, as replays of traces made by hand."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgroup.metrics.run_tables import summary
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.traces_by_hand import Tuple, write_trace

EXAMPLES = json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())
SECOND = 1_000_000_000
# The second changes nothing in these: a queue with room for all, in the other loop.
LOOPS: list[dict[str, Any]] = [{}, {"queue_capacity": 1000}]


def example(name: str) -> tuple[Any, Any]:
    (found,) = [entry for entry in EXAMPLES if entry["id"] == name]
    return found["input"], found["expected"]


def replayed(directory: Path, tuples: list[Tuple], **options: Any) -> tuple[Outcome, list[dict[str, Any]]]:
    trace = open_trace(write_trace(directory / "x.trace", tuples))
    outcome = replay(trace, ReplayOptions(sources=1, **options), log_directory=directory / "log", interpreted=True)
    return outcome, pq.read_table(directory / "log").to_pylist()


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("name", "grouping"), [("POSG-01", "sg"), ("POSG-02", "full_knowledge")])
def test_posg(tmp_path: Path, name: str, grouping: str, loop: dict[str, Any]) -> None:
    given, expected = example(name)
    times = list(zip(given["arrivals_s"], given["exec_s"], strict=True))
    tuples = [(at * 1_000_000, b"ab"[place % 2 : place % 2 + 1], cost * 1e6) for place, (at, cost) in enumerate(times)]
    outcome, rows = replayed(tmp_path, tuples, grouping=grouping, workers=given["k"], **loop)
    assert [row["worker"] for row in rows] == expected["assignment"]
    assert [row["arrival_ns"] for row in rows] == [at * SECOND for at in given["arrivals_s"]]
    completion = [row["finish_ns"] - row["arrival_ns"] for row in rows]
    assert completion == [seconds * SECOND for seconds in expected["completion_s"]]
    assert sum(outcome.worker.latency_sum_ns) == expected["cumulated_s"] * SECOND
    waits = sum(row["start_ns"] - row["arrival_ns"] for row in rows)
    assert waits == expected.get("wasted_s", 0) * SECOND
    assert summary(outcome)["latency_mean_ms"] == pytest.approx(expected["cumulated_s"] * 1000 / 3, rel=1e-15)


@pytest.mark.parametrize("loop", LOOPS)
def test_imbalance(tmp_path: Path, loop: dict[str, Any]) -> None:
    """Loads of 50, 30 and 20, made by costs: the oracle of work sends where the least work is."""
    given, expected = example("IMB-01")
    loads, work = given["loads"], [0] * 3
    tuples: list[Tuple] = []
    left = list(loads)
    # Of equal work in the end, so that the cheap tuples are many: each goes to the lowest of the least loaded.
    for place in range(sum(loads)):
        worker = work.index(min(work))
        assert left[worker] > 0
        left[worker] -= 1
        cost = 300 // loads[worker]
        work[worker] += cost
        tuples.append((place, b"k", float(cost)))
    outcome, _ = replayed(tmp_path, tuples, grouping="full_knowledge", workers=3, **loop)
    assert outcome.worker.tuples.tolist() == loads
    row = summary(outcome)
    assert row["imbalance"] == pytest.approx(expected["imbalance"], abs=1e-6)
    assert row["imbalance"] == pytest.approx(1 / 2 - 1 / 3, rel=1e-15)
    assert row["peak_to_mean"] == expected["max_over_avg"]
