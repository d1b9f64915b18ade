"""The numbers of charts, computed once more the obvious way; colours; what is shown where there is little to show."""

import dataclasses
import json
import math
import struct
import zlib
from collections import defaultdict
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest
import vl_convert

from streamgroup.report.charts import (
    capacity,
    frontier,
    imbalance,
    latency,
    latency_over_time,
    latency_tail,
    load_map,
    stages,
    worker_load,
)
from streamgroup.report.findings import compared
from streamgroup.report.render_chart import Drawn, chart_names, load_chart, png, specification, svg
from streamgroup.report.report_data import MOST_CONDITIONS, MOST_GROUPINGS, ReportData, gather
from streamgroup.report.theme import THEMES, Look
from streamgroup.report.trace_chart_data import gather_traces
from tests.report.made_up_runs import make_run, make_runs
from tests.traces_by_hand import write_trace

GROUPINGS = ("kg", "pkg", "fish:alpha=0.2", "sg")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made") / "runs"
    make_runs(place, GROUPINGS, workers=(4, 16), seed=(0, 1, 2), trace=("t", "u"))
    return place


@pytest.fixture(scope="module")
def material(place: Path) -> ReportData:
    return gather([place])


def _grouped(rows: list[dict[str, Any]], *names: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


@pytest.mark.parametrize(
    ("chart", "metrics"),
    [
        (imbalance, {"imbalance"}),
        (capacity, {"throughput_limit_tps"}),
        (latency, {"latency_p50_ms", "latency_p99_ms", "latency_max_ms"}),
    ],
)
def test_means_over_seeds(material: ReportData, chart: Any, metrics: set[str]) -> None:
    frame = chart.frame(material)
    wanted = sorted(
        (condition, grouping, workers, fmean(values), min(values), max(values))
        for metric in metrics
        for (condition, grouping, workers), rows in _grouped(
            material.runs.to_dicts(), "condition", "grouping", "workers"
        ).items()
        for values in [[row[metric] for row in rows]]
    )
    found = sorted(frame.select("condition", "grouping", "workers", "mean", "min", "max").rows())
    assert [row[:3] for row in found] == [row[:3] for row in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one[3:] == pytest.approx(other[3:])
    assert set(frame["runs"]) == {3}


def test_where_the_time_goes(tmp_path: Path) -> None:
    whole: dict[str, Any] = {
        "latency_mean_ms": 10.0, "service_ms_mean": 4.0, "bottleneck": "workers", "source_wait_ms_mean": None,
        "result_delay_ms_mean": None,
    }  # fmt: skip
    for seed, more in ((0, 0.0), (1, 2.0)):
        make_run(tmp_path / f"kg{seed}", grouping="kg", seed=seed, **{**whole, "latency_mean_ms": 10.0 + more})
    make_run(
        tmp_path / "sg", grouping="sg", **{**whole, "source_wait_ms_mean": 1.0, "result_delay_ms_mean": 5.0}
    )  # fmt: skip
    frame = stages.frame(gather([tmp_path]))
    found = {(row["grouping"], row["part"]): row["ms"] for row in frame.to_dicts()}
    assert found == {
        ("kg", "queue"): 7.0, ("kg", "service"): 4.0,
        ("sg", "source wait"): 1.0, ("sg", "queue"): 5.0, ("sg", "service"): 4.0, ("sg", "aggregation"): 5.0,
    }  # fmt: skip
    assert frame.group_by("grouping").agg(pl.col("share").sum().round(9))["share"].to_list() == [1.0, 1.0]
    assert "kg: 11 ms, 63.6 % of it queue, limited by workers." in stages.caption(frame)


def test_runs_from_before_the_service_time_are_not_shown(tmp_path: Path) -> None:
    make_run(tmp_path / "old", service_ms_mean=None)
    assert stages.frame(gather([tmp_path])).is_empty()


def test_the_frontier_is_what_no_other_beats(material: ReportData) -> None:
    frame = frontier.frame(material)
    assert frame.height == len(GROUPINGS) * 2 * 2
    for panel in frame.partition_by("panel", "workers"):
        points = {row["grouping"]: (row["replication_factor"], row["latency_p99_ms"]) for row in panel.to_dicts()}
        for row in panel.to_dicts():
            x, y = points[row["grouping"]]
            beaten = any(a <= x and b <= y and (a, b) != (x, y) for a, b in points.values())
            assert row["frontier"] is not beaten


def test_twins_on_the_frontier_are_both_on_it(tmp_path: Path) -> None:
    for name, copies, slow in (("a", 1.0, 5.0), ("b", 1.0, 5.0), ("c", 1.0, 6.0), ("d", 2.0, 5.0)):
        make_run(tmp_path / name, grouping=name, replication_factor=copies, latency_p99_ms=slow)
    frame = frontier.frame(gather([tmp_path]))
    assert frame.filter("frontier")["grouping"].to_list() == ["a", "b"]


def test_the_distribution_is_pooled_over_seeds(material: ReportData) -> None:
    frame = latency_tail.frame(material)
    assert set(frame["workers"]) == {16}
    for (condition, grouping), found in frame.partition_by("condition", "grouping", as_dict=True).items():
        chosen = material.runs.filter(condition=condition, grouping=grouping, workers=16)["run"].to_list()
        pooled: dict[float, int] = defaultdict(int)
        for run in chosen:
            for row in pl.read_parquet(material.directories[run] / "latency.parquet").to_dicts():
                pooled[row["at_least_ms"]] += row["tuples"]
        total = sum(pooled.values())
        assert found["at_least_ms"].min() == min(pooled)
        assert found["at_least_ms"].max() == max(pooled)
        for row in found.to_dicts():
            above = sum(tuples for at, tuples in pooled.items() if at >= row["at_least_ms"])
            assert row["share"] == pytest.approx(above / total)


def test_loads_over_the_mean(material: ReportData) -> None:
    frame = load_map.frame(material)
    assert set(frame["grouping"]) == set(GROUPINGS)
    for (grouping,), found in frame.partition_by("grouping", as_dict=True).items():
        run = material.first_seeds.filter(condition="t", grouping=grouping)["run"].item()
        rows = pl.read_parquet(material.directories[run] / "loads.parquet").to_dicts()
        mean = {window[0]: fmean(row["tuples"] for row in of) for window, of in _grouped(rows, "window").items()}
        wanted = {(row["window"], row["worker"]): row["tuples"] / mean[row["window"]] for row in rows}
        assert {(row["window"], row["worker"]): row["load"] for row in found.to_dicts()} == pytest.approx(wanted)


def test_many_windows_and_workers_are_put_together(tmp_path: Path) -> None:
    make_run(tmp_path / "r", workers=130, windows=120)
    frame = load_map.frame(gather([tmp_path / "r"]))
    assert frame["worker"].n_unique() == 44
    assert frame["window"].n_unique() == 40
    rows = _grouped(pl.read_parquet(tmp_path / "r" / "loads.parquet").to_dicts(), "window")
    first = [sum(rows[window,][at]["tuples"] for window in range(3)) for at in range(130)]
    assert frame.row(0, named=True)["load"] == pytest.approx(max(first[:3]) / fmean(first))
    assert "neighbouring" in load_map.caption(frame)


def test_over_time_the_largest_of_windows_that_are_put_together(tmp_path: Path) -> None:
    make_run(tmp_path / "r", windows=250)
    frame = latency_over_time.frame(gather([tmp_path / "r"]))
    values = pl.read_parquet(tmp_path / "r" / "windows.parquet")["latency_p99_ms"].to_list()
    assert frame["value"].to_list() == [max(values[at : at + 3]) for at in range(0, 250, 3)]


@pytest.mark.parametrize("name", chart_names())
def test_every_chart_draws_in_both_themes_or_has_nothing(material: ReportData, name: str) -> None:
    drawn = Drawn.of(name, material)
    if drawn is None:
        # Traces are gone where runs are made up.
        assert load_chart(name).SECTION == "trace"
        return
    caption = drawn.chart.caption(drawn.frame)
    assert caption.endswith(".")
    assert not {"None", "nan", "NaN"} & set(caption.replace(",", " ").split())
    assert not any(isinstance(value, float) and not math.isfinite(value) for row in drawn.frame.rows() for value in row)
    for theme in THEMES:
        look = Look(theme, material.groupings)
        spec = specification(drawn, look, validate=True)
        assert svg(spec, look).startswith("<svg")
    assert png(spec, look, 0.5).startswith(b"\x89PNG")


def test_a_png_is_squeezed_without_loss(material: ReportData) -> None:
    drawn = Drawn.of("load_map", material)
    assert drawn
    look = Look("light", material.groupings)
    spec = specification(drawn, look)
    plain = vl_convert.vegalite_to_png({**spec, "config": look.config()}, scale=1)
    packed = png(spec, look, 1)
    assert len(packed) < len(plain)
    assert _chunks(packed) == _chunks(plain)


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """Give the content of a PNG, its pixels unpacked; the checksums must be right."""
    found: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        body = data[at + 4 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(body)
        found[body[:4]] = found.get(body[:4], b"") + body[4:]
        at += 12 + size
    return {**found, b"IDAT": zlib.decompress(found[b"IDAT"])}


def test_the_load_of_workers_by_head_and_tail(tmp_path: Path) -> None:
    make_runs(tmp_path, GROUPINGS, workers=(70,))
    found = gather([tmp_path])
    rows = worker_load.frame(found).to_dicts()
    for run, grouping in found.runs.select("run", "grouping").rows():
        workers = pl.read_parquet(found.directories[run] / "workers.parquet").to_dicts()
        total = sum(row["tuples"] for row in workers)
        most = sorted(workers, key=lambda row: (-row["tuples"], row["worker"]))[:64]
        for part in ("head", "tail"):
            wanted = {row["worker"]: row[f"true_{part}_tuples"] / total for row in most}
            shown = {row["worker"]: row["share"] for row in rows if (row["grouping"], row["part"]) == (grouping, part)}
            assert shown == pytest.approx(wanted)
    assert {row["even"] for row in rows} == {1 / 70}
    for path in tmp_path.glob("*/workers.parquet"):
        pl.read_parquet(path).drop("true_head_tuples").write_parquet(path)
    assert worker_load.frame(gather([tmp_path])).is_empty()


def test_the_load_of_workers_says_which_conditions_it_leaves_out(tmp_path: Path) -> None:
    make_runs(tmp_path, GROUPINGS, workers=(8, 16), trace=("t", "u", "v"))
    caption = worker_load.caption(worker_load.frame(gather([tmp_path])))
    assert "2 more conditions are not shown" in caption
    assert "16 workers" in caption
    alone = worker_load.caption(worker_load.frame(gather([tmp_path], where="trace=u,workers=8")))
    assert "not shown" not in alone
    assert "8 workers" in alone


def test_one_run_has_no_chart_that_compares(tmp_path: Path) -> None:
    make_run(tmp_path / "r")
    one = gather([tmp_path / "r"])
    shown = [name for name in chart_names() if Drawn.of(name, one)]
    assert shown == [
        "worker_load", "latency_tail", "stages", "load_map", "imbalance_over_time", "latency_over_time", "lag",
    ]  # fmt: skip


def test_one_number_of_workers_gives_points_for_groupings(tmp_path: Path) -> None:
    make_runs(tmp_path, GROUPINGS, seed=(0, 1))
    drawn = Drawn.of("imbalance", gather([tmp_path]))
    assert drawn
    marks = [layer["mark"]["type"] for layer in specification(drawn, Look("light", GROUPINGS))["layer"]]
    assert marks == ["rule", "point"]


def test_a_grouping_has_one_colour_whatever_others_there_are() -> None:
    few, many = (
        Look("light", ("kg", "pkg")),
        Look("light", ("d_choices", "fish", "kg", "pkg", "posg", "sg", "w_choices")),
    )
    assert few.colour_of("kg") == many.colour_of("kg")
    assert few.colour_of("pkg") == many.colour_of("pkg")
    assert len({many.colour_of(name) for name in many.groupings}) == 7


def test_more_groupings_than_colours_are_told_apart_by_dashes() -> None:
    names = tuple(f"g{at}" for at in range(MOST_GROUPINGS))
    look = Look("dark", names)
    dashes = look.dash(names).to_dict()["scale"]["range"]
    assert len({(look.colour_of(name), tuple(dash)) for name, dash in zip(names, dashes, strict=True)}) == 16


def test_too_many_groupings_and_conditions_are_left_to_the_tables(tmp_path: Path) -> None:
    make_runs(tmp_path, tuple(f"fish:alpha={at}" for at in range(20)), sources=tuple(range(1, 11)))
    found = gather([tmp_path])
    assert len(found.groupings) == MOST_GROUPINGS
    assert len(found.conditions) == MOST_CONDITIONS
    assert found.charted.height == MOST_GROUPINGS * MOST_CONDITIONS
    assert found.runs.height == 200


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1.0, 5.0], None), ([1.0, 500.0], "log"), ([0.0, 0.001, 5.0], "symlog"), ([0.0, 0.0], None), ([], None)],
)
def test_axes_are_logarithmic_where_values_span_much(values: list[float], kind: str | None) -> None:
    assert Look.axis(values)["scale"].to_dict().get("type") == kind


def test_no_name_in_a_legend_is_cut(tmp_path: Path) -> None:
    names = tuple(f"flink_keyby:max_parallelism={2**at}" for at in range(7, 11))
    make_runs(tmp_path, names, workers=(4, 8))
    found = gather([tmp_path])
    # By the numbers in them, not by their digits.
    assert found.groupings == names
    look = Look("light", found.groupings)
    drawn = Drawn.of("imbalance", found)
    assert drawn
    picture = svg(specification(drawn, look), look)
    assert all(f">{name}</text>" in picture for name in names)
    # Each has room: no two names of a line overlap.
    assert look.config()["legend"]["columns"] * 7 * len(names[-1]) < 640


def test_a_grouping_comes_before_its_variants_and_the_plainest_condition_first(tmp_path: Path) -> None:
    for number, (grouping, crash) in enumerate(product(("fish:alpha=0.5", "fish", "fish:alpha=0.25"), ("50%:3", None))):
        make_run(tmp_path / f"r{number}", grouping=grouping, crash=crash)
    found = gather([tmp_path])
    assert found.groupings == ("fish", "fish:alpha=0.25", "fish:alpha=0.5")
    assert found.conditions == ("t, no crash", "t, crash 50%:3")
    drawn = Drawn.of("imbalance", found)
    assert drawn
    assert drawn.frame["panel"].unique(maintain_order=True).to_list() == list(found.conditions)


def test_long_conditions_have_letters_that_the_summary_explains(tmp_path: Path) -> None:
    slow = ",".join(["1"] * 40 + ["2"] * 24)
    for number, slowdown in enumerate((None, slow)):
        for grouping in GROUPINGS:
            make_run(tmp_path / f"{number}-{grouping.replace(':', '-')}", grouping=grouping, slowdown=slowdown)
    found = gather([tmp_path])
    assert found.conditions == ("t, A", "t, B")
    assert list(found.letters) == ["A", "B"]
    assert found.letters["A"] == "no slowdown"
    assert found.letters["B"].startswith("slowdown 1,1,1")
    said = compared(found)
    assert "A: no slowdown." in said
    drawn = Drawn.of("imbalance", found)
    assert drawn
    assert max(map(len, drawn.frame["panel"])) <= 44


def test_one_value_is_a_point(tmp_path: Path) -> None:
    for number, windows in enumerate((1, 20)):
        make_run(tmp_path / f"r{number}", grouping=GROUPINGS[number], windows=windows)
    found = gather([tmp_path])
    drawn = Drawn.of("latency_over_time", found)
    assert drawn
    look = Look("light", found.groupings)
    spec = specification(drawn, look)
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["line", "point"]
    assert svg(spec, look).count('aria-roledescription="point"') == 1
    make_run(tmp_path / "r2", grouping=GROUPINGS[0], seed=-1)
    several = Drawn.of("latency_over_time", gather([tmp_path]))
    assert several
    assert [layer["mark"]["type"] for layer in specification(several, look)["layer"]] == ["line"]


def test_the_scale_of_the_load_map_reaches_its_maximum(tmp_path: Path) -> None:
    make_runs(tmp_path, GROUPINGS)
    for path in tmp_path.glob("*/loads.parquet"):
        frame = pl.read_parquet(path)
        one = (pl.col("window") == 3) & (pl.col("worker") == 1)
        frame.with_columns(pl.when(one).then(100_000).otherwise("tuples").alias("tuples")).write_parquet(path)
    drawn = Drawn.of("load_map", gather([tmp_path]))
    assert drawn
    scale = specification(drawn, Look("light", GROUPINGS))["spec"]["encoding"]["color"]["scale"]
    assert scale["domain"][:2] == [0, 1]
    assert scale["domain"][3] == drawn.frame["load"].max()
    assert 1 < scale["domain"][2] < scale["domain"][3]
    assert len(scale["range"]) == 4
    assert drawn.frame.filter(pl.col("window") == 4)["start_s"].unique().to_list() == [2.0]


def test_the_frontier_has_one_panel_for_all_numbers_of_workers(tmp_path: Path) -> None:
    make_runs(tmp_path, GROUPINGS, workers=(4, 8, 16))
    drawn = Drawn.of("frontier", gather([tmp_path]))
    assert drawn
    assert drawn.frame["panel"].unique().to_list() == [""]
    assert sorted(drawn.frame["workers"].unique()) == [4, 8, 16]
    spec = specification(drawn, Look("light", GROUPINGS))
    sizes = [layer["encoding"]["size"]["scale"]["domain"] for layer in spec["layer"] if "size" in layer["encoding"]]
    assert sizes == [[4, 8, 16]]


def test_runs_of_different_code_are_two_groupings(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_run(tmp_path / name, grouping="./mine.py")
        record = json.loads((tmp_path / name / "run.json").read_text())
        record["grouping"] = {"file_digest": name * 16}
        (tmp_path / name / "run.json").write_text(json.dumps(record))
    assert gather([tmp_path]).groupings == ("./mine.py @aaaaaaaa", "./mine.py @bbbbbbbb")
    assert gather([tmp_path / "a"]).groupings == ("./mine.py",)


def test_traces_that_a_picture_has_no_room_for_are_told_and_are_in_its_numbers(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", [(i * 1000, b"k%d" % (i % 7), None) for i in range(100)])
    one = gather_traces([path])
    names = tuple(f"t{number}" for number in range(MOST_CONDITIONS + 3))
    data = dataclasses.replace(one, traces=tuple(dataclasses.replace(one.traces[0], name=name) for name in names))
    assert data.left_out == f"{MOST_CONDITIONS} of {len(names)} traces"
    assert one.left_out == ""
    for chart in ("rank_frequency", "trace_rate", "hot_keys"):
        drawn = load_chart(chart)
        assert drawn.frame(data)["trace"].n_unique() == MOST_CONDITIONS
        assert drawn.frame(dataclasses.replace(data, whole=True))["trace"].n_unique() == len(names)
