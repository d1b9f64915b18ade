"""`report` and `plot` from the command line."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from streamgroup.report.charts import imbalance
from streamgroup.report.render_chart import chart_names
from streamgroup.report.report_data import MOST_CONDITIONS, gather
from tests.cli.conftest import Invoke
from tests.report.made_up_runs import make_runs

pytestmark = pytest.mark.many_groupings


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    make_runs(tmp_path / "runs", ("kg", "pkg"), workers=(4, 8))
    return tmp_path / "runs"


def test_a_report_is_written_and_not_replaced_unasked(runs: Path, tmp_path: Path, invoke: Invoke) -> None:
    page = tmp_path / "new" / "report.html"
    told = invoke("report", runs, "-o", page)
    assert told.exit_code == 0, told.output
    assert told.stdout == ""
    first = page.read_bytes()
    assert b"</html>" in first
    again = invoke("report", runs, "-o", page)
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    assert invoke("report", runs, "-o", page, "--overwrite", "--where", "workers=4").exit_code == 0
    assert page.read_bytes() != first
    assert [path.name for path in page.parent.iterdir()] == ["report.html"]


def test_what_is_no_run_leaves_nothing(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "empty").mkdir()
    for command in (("report",), ("plot", "imbalance")):
        told = invoke(*command, tmp_path / "empty", "-o", tmp_path / "out" / "x")
        assert told.exit_code == 2
        assert "is no run and holds none" in told.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("ending", "files"), [("", {"a.svg", "a.png", "a.csv"}), (".svg", {"a.svg", "a.csv"}), (".png", {"a.png", "a.csv"})]
)
def test_a_chart_is_drawn_with_its_numbers_beside(
    runs: Path, tmp_path: Path, invoke: Invoke, ending: str, files: set[str]
) -> None:
    place = tmp_path / "out"
    told = invoke("plot", "imbalance", runs, "-o", place / f"a{ending}")
    assert told.exit_code == 0, told.output
    assert {path.name for path in place.iterdir()} == files
    frame = imbalance.frame(gather([runs]))
    assert told.stdout == imbalance.caption(frame) + "\n"
    with (place / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["mean"]) for row in rows] == frame["mean"].to_list()
    assert [row["grouping"] for row in rows] == frame["grouping"].to_list()


def test_the_same_picture_every_time_but_for_the_theme(runs: Path, tmp_path: Path, invoke: Invoke) -> None:
    for name, theme in (("a", "light"), ("b", "light"), ("c", "dark")):
        assert invoke("plot", "latency-tail", runs, "-o", tmp_path / name, "--theme", theme).exit_code == 0
    for kind in (".svg", ".png"):
        assert (tmp_path / f"a{kind}").read_bytes() == (tmp_path / f"b{kind}").read_bytes()
        assert (tmp_path / f"a{kind}").read_bytes() != (tmp_path / f"c{kind}").read_bytes()


def test_numbers_of_a_chart_as_json(runs: Path, tmp_path: Path, invoke: Invoke) -> None:
    told = invoke("plot", "imbalance", runs, "-o", tmp_path / "a", "--json")
    assert json.loads(told.stdout) == imbalance.frame(gather([runs])).to_dicts()


def test_charts_are_listed(invoke: Invoke) -> None:
    for command in (("plot",), ("plot", "--list")):
        told = invoke(*command, "--json")
        assert [row["name"] for row in json.loads(told.stdout)] == chart_names()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("imbalanc", "RUNS", "-o", "x"), "did you mean 'imbalance'?"),
        (("imbalance", "RUNS"), "add -o FILE"),
        (("imbalance", "-o", "x"), "no run to read"),
        (("imbalance", "RUNS", "-o", "x", "--where", "workers=4,grouping=kg"), "nothing to show"),
    ],
)
def test_what_is_wrong_is_said(
    runs: Path, invoke: Invoke, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs.parent)
    told = invoke("plot", *(str(runs) if word == "RUNS" else word for word in words))
    assert told.exit_code == 2
    assert said in told.stderr
    assert [path.name for path in runs.parent.iterdir()] == ["runs"]


@pytest.mark.parametrize("name", ["hot_keys", "trace_rate", "rank_frequency", "hot_set"])
def test_charts_of_traces_need_no_run(trace: Path, tmp_path: Path, invoke: Invoke, name: str) -> None:
    """They are those of a run of that trace."""
    assert invoke("replay", trace, "-g", "kg", "-n", 4, "-o", tmp_path / "run").exit_code == 0
    alone = invoke("plot", name, trace, "-o", tmp_path / "alone")
    assert alone.exit_code == 0, alone.output
    of_run = invoke("plot", name, tmp_path / "run", "-o", tmp_path / "of_run")
    assert alone.stdout == of_run.stdout
    for ending in (".svg", ".csv"):
        assert (tmp_path / f"alone{ending}").read_bytes() == (tmp_path / f"of_run{ending}").read_bytes()


def test_several_traces_have_names_of_their_own(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    told = invoke("plot", "trace_rate", trace, trace, "-o", tmp_path / "x.svg", "--json")
    assert {row["trace"] for row in json.loads(told.stdout)} == {"zipf", "zipf (2)"}


def test_traces_where_they_mean_nothing(trace: Path, runs: Path, tmp_path: Path, invoke: Invoke) -> None:
    for args, said in (
        (("imbalance", trace), "imbalance is about runs"),
        (("hot_keys", trace, runs), "is a trace and"),
        (("hot_keys", trace, "--where", "workers=4"), "--where chooses runs"),
        (("hot_keys", *[trace] * 9), "9 traces: a chart has room for 8"),
    ):
        told = invoke("plot", *args, "-o", tmp_path / "x")
        assert (told.exit_code, told.stdout) == (2, ""), args
        assert said in told.stderr
        assert not (tmp_path / "x.svg").exists()


def test_another_axis(tmp_path: Path, invoke: Invoke) -> None:
    make_runs(tmp_path / "runs", ("kg", "pkg"), workers=(4,), sources=(1, 2, 5))
    told = invoke("plot", "imbalance", tmp_path / "runs", "--x", "sources", "-o", tmp_path / "a.svg")
    assert told.exit_code == 0, told.output
    with (tmp_path / "a.csv").open(newline="") as file:
        assert {row["sources"] for row in csv.DictReader(file)} == {"1.0", "2.0", "5.0"}
    # The same curves on a page, and all else as without.
    pages = [tmp_path / "over-workers.html", tmp_path / "over-sources.html"]
    for page, more in zip(pages, ((), ("--x", "sources")), strict=True):
        assert invoke("report", tmp_path / "runs", *more, "-o", page).exit_code == 0
    texts = [page.read_text() for page in pages]
    assert ["At sources 5" in text for text in texts] == [False, True]
    refused = invoke("plot", "frontier", tmp_path / "runs", "--x", "sources", "-o", tmp_path / "b.svg")
    assert (refused.exit_code, "frontier has no --x" in refused.stderr) == (2, True)


def test_what_a_picture_has_no_room_for_is_told_and_is_in_its_numbers(tmp_path: Path, invoke: Invoke) -> None:
    traces: tuple[Any, ...] = tuple(f"t{number:02}" for number in range(MOST_CONDITIONS + 3))
    make_runs(tmp_path / "runs", ("kg", "pkg"), workers=(4, 8), trace=traces)
    told = invoke("plot", "imbalance", tmp_path / "runs", "-o", tmp_path / "a.svg")
    assert f"the picture shows {MOST_CONDITIONS} of {len(traces)} conditions" in told.stderr
    with (tmp_path / "a.csv").open(newline="") as file:
        assert {row["condition"] for row in csv.DictReader(file)} == set(traces)
