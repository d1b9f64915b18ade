"""Sums that no int64 holds: a hopelessly overloaded run in the ordered loop."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.traces_by_hand import write_trace

SERVICE = 8_000_000_000_000_000


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize(("window", "crash"), [("100%", ()), ("150", ()), ("150", ("399",))])
def test_latencies_pass_two_to_the_63(tmp_path: Path, window: str, crash: tuple[str, ...], interpreted: bool) -> None:
    trace = open_trace(write_trace(tmp_path / "t", [(place, b"k%d" % (place % 5), None) for place in range(400)]))
    options = ReplayOptions(
        grouping="kg", workers=2, service=f"{SERVICE}ns", queue_capacity=1000, window=window, slowdown="1,0.9",
        crash=crash,
    )  # fmt: skip
    outcome = replay(trace, options, log_directory=tmp_path / "log", interpreted=interpreted)
    rows = pq.read_table(tmp_path / "log").to_pylist()
    latencies = [row["finish_ns"] - row["arrival_ns"] for row in rows if row["finish_ns"] is not None]
    by_worker = [0, 0]
    for row in rows:
        if row["finish_ns"] is not None:
            by_worker[row["worker"]] += row["finish_ns"] - row["arrival_ns"]
    assert outcome.worker.latency_sum_ns == by_worker
    assert sum(outcome.window.latency_sum_ns) == sum(latencies) > 2**63
    assert summary(outcome)["latency_mean_ms"] == pytest.approx(sum(latencies) / len(latencies) / 1e6, rel=1e-15)
