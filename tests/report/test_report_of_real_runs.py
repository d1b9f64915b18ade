"""A report of real runs over a trace that is still there: its charts tell what it holds, a browser finds no fault."""

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.report.formatting import shown
from streamgroup.report.page import page
from streamgroup.report.render_chart import Drawn, chart_names, specification, svg
from streamgroup.report.report_data import ReportData, gather
from streamgroup.report.theme import THEMES, Look
from streamgroup.study.replay_run import run_to_directory
from tests.report.headless_browser import browser, find_chromium
from tests.report.made_up_runs import HOSTILE
from tests.report.visit_report import visit
from tests.traces_by_hand import Tuple, write_trace

TUPLES = 6000
KEYS = [
    None,
    *(key.encode() for key in HOSTILE if len(key) < 100 and "\0" not in key),
    *(b"k%d" % i for i in range(300)),
]


@pytest.fixture(scope="module")
def tuples() -> list[Tuple]:
    rng = np.random.default_rng(5)
    times = np.sort(rng.integers(0, 3_600_000_000, TUPLES)).tolist()
    return [(at, KEYS[min(key - 1, len(KEYS) - 1)], None) for at, key in zip(times, rng.zipf(1.5, TUPLES), strict=True)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, tuples: list[Tuple]) -> Path:
    place = tmp_path_factory.mktemp("real")
    trace = write_trace(place / "hour.trace", tuples)
    for grouping in ("kg", "pkg"):
        for workers in (4, 8):
            chosen = ReplayOptions(grouping, workers, arrivals="utilization=0.8")
            run_to_directory(trace, chosen, place / "runs" / f"{grouping}-{workers}")
    return place / "runs"


@pytest.fixture(scope="module")
def material(runs: Path) -> ReportData:
    return gather([runs])


def drawn(name: str, material: ReportData) -> Drawn:
    found = Drawn.of(name, material)
    assert found is not None
    return found


@pytest.mark.parametrize("name", chart_names())
def test_every_chart_has_something_to_show(name: str, material: ReportData) -> None:
    one = drawn(name, material)
    assert one.chart.caption(one.frame).endswith(".")
    for theme in THEMES:
        look = Look(theme, material.groupings)
        assert svg(specification(one, look, validate=True), look).startswith("<svg")


def test_charts_of_a_trace_tell_what_it_holds(material: ReportData, tuples: list[Tuple]) -> None:
    counts = sorted(Counter(key for _, key, _ in tuples).values(), reverse=True)
    rate = drawn("trace_rate", material).frame
    assert rate["tuples"].sum() == TUPLES
    assert (rate["rate"] * (rate["to_s"] - rate["from_s"])).sum() == pytest.approx(TUPLES)
    ranks = drawn("rank_frequency", material).frame
    assert dict(zip(ranks["rank"], ranks["count"], strict=True)) == {rank: counts[rank - 1] for rank in ranks["rank"]}
    assert (ranks["rank"].min(), ranks["rank"].max()) == (1, len(counts))
    hot = drawn("hot_keys", material).frame
    told = hot.with_columns(of=hot["share"] * hot["tuples"]).group_by("key").agg(pl.col("of").sum())
    count = Counter("(no key)" if key is None else shown(key.decode()) or "(empty)" for _, key, _ in tuples)
    assert told.height == 10
    for key, of in told.rows():
        assert of == pytest.approx(count[key])
    # The largest share of any window goes down with the rank.
    peaks = hot.group_by("rank").agg(pl.col("share").max()).sort("rank")["share"].to_list()
    assert peaks == sorted(peaks, reverse=True)


def test_a_browser_finds_no_fault(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("there is no Chromium to look at pages with")
    report = tmp_path / "report.html"
    report.write_text(page(gather([runs])), encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(
        report.read_text()
        .replace("</main>", "<div style='width: 3000px'>wide</div></main>")
        .replace('aria-sort", ', 'aria-sorted", ')
        .replace("toSVG()", "toSVX()")
    )
    with browser(chromium) as opened:
        found = visit(opened, report, tmp_path)
        assert found.faults == []
        assert {"summary.csv", "summary.json", "frontier.svg", "frontier.csv", "runs.csv"} <= found.files.keys()
        assert len(found.files["runs.csv"].splitlines()) == 5
        assert {path.name for path in tmp_path.glob("*.png")} == {
            f"{width}-{theme}.png" for width in (1280, 400) for theme in ("light", "dark")
        }
        opened.open(broken)
        with monkeypatch.context() as patch:
            # It never comes.
            patch.setattr("tests.report.headless_browser.COMES_IN", 2.0)
            with pytest.raises(TimeoutError, match="download"):
                visit(opened, broken)
        broken.write_text(broken.read_text().replace("toSVX()", "toSVG()"))
        faults = "\n".join(visit(opened, broken).faults)
        assert "scrolls sideways" in faults
        assert "does not say that it is ascending" in faults


def test_a_trace_that_is_gone_or_another_is_noted(runs: Path, tmp_path: Path, material: ReportData) -> None:
    assert [dataclasses.asdict(found)["name"] for found in material.traces] == ["hour"]
    trace = runs.parent / "hour.trace"
    trace.rename(runs.parent / "away.trace")
    try:
        away = gather([runs])
        write_trace(trace, [(1, b"x", None)])
        other = gather([runs])
    finally:
        for path in sorted(trace.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        trace.rmdir()
        (runs.parent / "away.trace").rename(trace)
    for found, why in ((away, "does not exist"), (other, "another trace")):
        assert found.traces == ()
        assert why in found.notes[0]
    assert Drawn.of("trace_rate", away) is None
