"""What a reader of charts reads: ticks, names of points, titles and captions."""

import dataclasses
from pathlib import Path

import polars as pl
import pytest

from streamgroup.report.charts import frontier, imbalance_over_time, latency_tail, load_map, worker_load
from streamgroup.report.charts_over_workers import title_of
from streamgroup.report.findings import compared
from streamgroup.report.render_chart import Drawn, load_chart, specification, svg
from streamgroup.report.report_data import gather
from streamgroup.report.theme import Look
from streamgroup.report.trace_chart_data import gather_traces
from tests.report.made_up_runs import make_run, make_runs
from tests.traces_by_hand import write_trace

GROUPINGS = ("kg", "pkg", "fish:alpha=0.2", "sg")


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        # Powers of ten, or also their multiples where fewer than three are on the axis.
        ([4.6, 4745.0], [1, 10, 100, 1000, 10_000]),
        ([0.0038, 0.35], [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]),
        ([0.0, 8e-5, 0.35], [0, 1e-4, 1e-3, 1e-2, 1e-1, 1]),
    ],
)
def test_ticks_of_logarithmic_axes(values: list[float], ticks: list[float]) -> None:
    axis = Look.axis(values)["axis"].to_dict()
    assert axis["values"] == pytest.approx(ticks)
    # Not every other one goes without its number.
    assert axis["labelOverlap"] == "greedy"


def test_every_tick_of_an_axis_with_zeros_has_its_number(tmp_path: Path) -> None:
    for name, value in (("sg", 0.0), ("posg", 9.5e-5), ("pkg", 0.0099), ("kg", 0.35)):
        make_run(tmp_path / name, grouping=name, imbalance=value)
    drawn = Drawn.of("imbalance", gather([tmp_path]))
    assert drawn
    look = Look("light", ("kg", "pkg", "posg", "sg"))
    picture = svg(specification(drawn, look), look)
    assert all(f">{tick}</text>" in picture for tick in ("0", "0.0001", "0.001", "0.01", "0.1"))


def test_every_grouping_on_the_frontier_has_its_name_beside_it(tmp_path: Path) -> None:
    points = {
        "kg": (1.0, 4000.0), "pkg": (1.19, 400.0), "fish": (1.335, 7.21), "fish:alpha=0.1": (1.34, 7.2),
        "fish:alpha=0.11": (1.341, 7.19), "w_choices": (1.4, 8.0), "sg": (2.6, 4.6), "posg": (2.6, 4.6),
    }  # fmt: skip
    for number, (name, (copies, slow)) in enumerate(points.items()):
        for workers in (25, 50):
            values = {"replication_factor": copies, "latency_p99_ms": slow * workers}
            make_run(tmp_path / f"{number}-{workers}", grouping=name, workers=workers, **values)
    found = gather([tmp_path])
    drawn = Drawn.of("frontier", found)
    assert drawn
    look = Look("light", found.groupings)
    spec = specification(drawn, look)
    texts = [layer for layer in spec["layer"] if layer["mark"]["type"] == "text"]
    rows = spec["datasets"][spec["data"]["name"]]
    named = [row["grouping"] for row in rows if row["slot"] is not None]
    assert sorted(named) == sorted(set(points) - {"w_choices"})
    # Each text is in the picture beside the one in the legend; no two stand at one place of one point.
    picture = svg(spec, look)
    assert all(picture.count(f">{name}</text>") == 2 for name in named)
    assert len({(row["replication_factor"], row["latency_p99_ms"], row["slot"]) for row in rows if row["slot"]}) >= 3
    assert len(texts) == len({row["slot"] for row in rows} - {None})
    twins = [row["slot"] for row in rows if row["grouping"] in ("sg", "posg") and row["workers"] == 50]
    assert len(set(twins)) == 2
    assert "kg (1 replica a key," in frontier.caption(drawn.frame)


def test_the_p99_of_a_caption_is_that_of_the_tables(tmp_path: Path) -> None:
    make_runs(tmp_path, GROUPINGS, workers=(4, 16), seed=(0, 1, 2), trace=("t", "u"))
    material = gather([tmp_path])
    frame = latency_tail.frame(material)
    means = material.runs.filter(workers=16).group_by("condition", "grouping").agg(pl.col("latency_p99_ms").mean())
    wanted = {(one, other): value for one, other, value in means.rows()}
    found = frame.select("condition", "grouping", "latency_p99_ms").unique().rows()
    assert len(found) == len(wanted)
    assert all(value == pytest.approx(wanted[one, other]) for one, other, value in found)
    assert "the mean of the seeds' p99 latencies is" in latency_tail.caption(frame)


def test_a_thinned_curve_falls_where_the_latencies_do(tmp_path: Path) -> None:
    """Of the tuples 60 % take less than 2 ms and 40 % from 10 ms on, a few of them anything in between."""
    make_run(tmp_path / "r")
    rows = [(1.0, 6000), *((2 + at / 10, 1) for at in range(80)), (10.0, 3000), (11.0, 920)]
    counted = pl.DataFrame(rows, {"at_least_ms": pl.Float64, "tuples": pl.Int64}, orient="row")
    counted.with_columns(schema_version=pl.lit(1, pl.Int32)).write_parquet(tmp_path / "r" / "latency.parquet")
    frame = latency_tail.frame(gather([tmp_path / "r"]))
    assert frame.height < 12
    for at, _ in rows:
        above = sum(tuples for other, tuples in rows if other >= at) / sum(tuples for _, tuples in rows)
        # The line comes to a point from the left at its height.
        drawn = frame.filter(pl.col("at_least_ms") >= at)["share"][0]
        assert drawn == pytest.approx(above, rel=0.1)


def test_a_title_says_what_the_chart_is_over(tmp_path: Path) -> None:
    make_runs(tmp_path / "one", GROUPINGS, workers=(8,))
    make_runs(tmp_path / "two", GROUPINGS, workers=(8, 16))
    make_runs(tmp_path / "other", GROUPINGS, workers=(8,), sources=(1, 5))
    titles = [
        title_of(load_chart(chart).TITLE, load_chart(chart).frame(data))
        for chart in ("capacity", "imbalance")
        for data in (gather([tmp_path / "one"]), gather([tmp_path / "two"]), gather([tmp_path / "other"], x="sources"))
    ]
    assert titles == [
        "What the most loaded worker sustains on 8 workers", "What the most loaded worker sustains, against workers",
        "What the most loaded worker sustains, against sources",
        "Imbalance on 8 workers", "Imbalance against workers", "Imbalance against sources",
    ]  # fmt: skip
    assert title_of(load_map.TITLE, load_map.frame(gather([tmp_path / "one"]))) == load_map.TITLE


def test_captions_begin_like_sentences_and_say_what_theta_is(tmp_path: Path) -> None:
    make_runs(tmp_path / "r", GROUPINGS, workers=(50,), hot_threshold=("1/5n",))
    found = gather([tmp_path / "r"])
    assert worker_load.caption(worker_load.frame(found)).startswith(
        "Head: keys with at least the share theta, 0.4 %, of all tuples (50 workers, t)."
    )
    said = imbalance_over_time.caption(imbalance_over_time.frame(found))
    assert said.startswith("On 50 workers (each window's own) the worst window of ")


def test_cells_of_the_load_map_end_where_the_next_begin(tmp_path: Path) -> None:
    make_run(tmp_path / "r", workers=3, windows=120)
    frame = load_map.frame(gather([tmp_path / "r"])).filter(worker=0)
    starts, ends = frame["start_s"].to_list(), frame["end_s"].to_list()
    assert ends[:-1] == pytest.approx(starts[1:])
    assert ends[-1] == pytest.approx(starts[-1] + 3 * (starts[1] - starts[0]) / 3)
    # Windows 6 to 59 are empty: the cell before them ends with its own windows.
    for name in ("windows", "loads"):
        table = pl.read_parquet(tmp_path / "r" / f"{name}.parquet")
        table.filter(~pl.col("window").is_between(6, 59)).write_parquet(tmp_path / "r" / f"{name}.parquet")
    gap = load_map.frame(gather([tmp_path / "r"])).filter(worker=0)
    row = gap.filter(pl.col("window") < 6).row(-1, named=True)
    assert row["end_s"] == pytest.approx(6 * starts[1] / 3)


def test_the_report_says_that_arrivals_are_not_those_of_the_trace(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", [(i * 1000, b"k%d" % (i % 7), None) for i in range(100)])
    make_run(tmp_path / "a", grouping="kg", arrivals="trace")
    make_run(tmp_path / "b", grouping="kg", arrivals="rate=10")
    traces = gather_traces([path]).traces
    for names, said in (
        (("a",), None),
        (("b",), "those of the trace."),
        (("a", "b"), "those of the trace of some runs."),
    ):
        lines = compared(dataclasses.replace(gather([tmp_path / name for name in names]), traces=traces))
        times = [line for line in lines if line.startswith("Times: --arrivals replaced ")]
        assert [said in line for line in times] == ([] if said is None else [True])
