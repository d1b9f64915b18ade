"""The chart of backlogs, of real runs."""

from pathlib import Path

import polars as pl
import pytest

from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.report.charts import lag
from streamgroup.report.report_data import gather
from streamgroup.study.replay_run import run_to_directory
from tests.traces_by_hand import write_trace

RATE = {"arrivals": "rate=1000", "service": "3ms"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Worker 2 of eight is eight times as slow for two seconds."""
    place = tmp_path_factory.mktemp("lag")
    trace = write_trace(place / "t", [(at, b"k%d" % (at % 97), None) for at in range(10_000)])
    options = ReplayOptions("sg", 8, sources=1, slowdown_at=("2s=2:8", "4s=1"), **RATE)  # type: ignore[arg-type]
    run_to_directory(trace, options, place / "slow")
    return place


def test_who_lags_and_how_long(place: Path) -> None:
    data = gather([place / "slow"])
    frame = lag.frame(data)
    table = data.table("lag")
    for unit, column in (("tuples", "backlog_tuples"), ("seconds", "backlog_s")):
        shown = frame.filter(pl.col("unit") == unit, pl.col("who") == "worker 2").sort("time_s")
        wanted = table.filter(pl.col("worker") == 2).sort("time_s")
        assert shown["value"].to_list() == pytest.approx(wanted[column].to_list())
    assert frame["who"].n_unique() == 4
    others = frame.filter(pl.col("who") == "largest of 5 others", pl.col("unit") == "seconds")
    named = frame["who"].str.extract(r"^worker (\d+)$").drop_nulls().cast(pl.Int64).unique().to_list()
    cells = table.filter(~pl.col("worker").is_in(named)).group_by("time_s").agg(
        pl.col("backlog_s").max().alias("largest"), pl.col("backlog_s").min().alias("least")
    ).sort("time_s")  # fmt: skip
    assert others.select("time_s", "value", "least").rows() == cells.rows()
    # The lines have the same ranks, and so the same colours, in every panel; the first is drawn last.
    assert frame.filter(pl.col("unit") == "tuples")["rank"].unique(maintain_order=True).to_list() == [
        "from the least to the largest of all others", "third", "second", "worker furthest behind",
    ]  # fmt: skip
    assert frame.filter(pl.col("rank") == "worker furthest behind")["worker"].unique().to_list() == [2]
    # It gets 125 tuples a second and serves 41.7, for two seconds: 167 behind, which take 4 s at 24 ms each; from
    # then on it serves 333, so that 167 are gone after 0.8 s.
    caption = lag.caption(frame)
    assert frame["value"].max() == pytest.approx(167, abs=10)
    assert caption.startswith("sg: worker 2 has the most tuples not finished, 1")
    assert "After the slow phase from 2s to 4s (4 s) it takes " in caption
    assert float(caption.split("it takes ")[1].split()[0]) == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("grouping", ["sg", "kg", "pkg"])
def test_no_worker_is_further_behind_than_the_maximum_latency(tmp_path: Path, grouping: str) -> None:
    trace = write_trace(tmp_path / "t", [(at, b"k%d" % (at * at % 97), None) for at in range(5_000)])
    run_to_directory(trace, ReplayOptions(grouping, 8, arrivals="utilization=0.8", service="3ms"), tmp_path / "run")
    data = gather([tmp_path / "run"])
    most = data.table("lag")["backlog_s"].max()
    assert isinstance(most, float)
    assert 0 < 1000 * most <= data.runs["latency_max_ms"].item()


def test_an_older_run_has_no_such_table(place: Path, tmp_path: Path) -> None:
    for file in (place / "slow").iterdir():
        if file.name != "lag.parquet":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    assert lag.frame(gather([tmp_path])).is_empty()
