"""Curves over something else than workers."""

from pathlib import Path

import polars as pl
import pytest

import streamgroup as sg
from streamgroup.base.errors import UsageError
from streamgroup.report.charts import imbalance, latency
from streamgroup.report.charts_over_workers import CURVES
from streamgroup.report.render_chart import Drawn, load_chart, specification
from streamgroup.report.report_data import gather
from streamgroup.report.theme import Look
from streamgroup.report.x_axis import with_x
from tests.report.made_up_runs import make_runs


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("swept") / "s"
    texts = ["zipf:exponent=0.5..1.5..0.5,seed=1,2,tuples=1000,keys=50"]
    sg.sweep([], ["kg", "pkg"], 4, output=output, arrivals="utilization=0.8", synth=texts)
    return output


def test_a_parameter_of_traces_is_the_axis_and_seeds_are_replicates(swept: Path) -> None:
    frame = imbalance.frame(gather([swept], x="exponent"))
    runs = sg.load_runs(swept)
    assert frame.columns == ["panel", "what", "condition", "grouping", "exponent", "runs", "mean", "min", "max"]
    assert frame["runs"].to_list() == [2] * 6
    for row in frame.iter_rows(named=True):
        same = runs.filter(pl.col("grouping") == row["grouping"], pl.col("exponent") == row["exponent"])["imbalance"]
        assert (row["mean"], row["min"], row["max"]) == (same.mean(), same.min(), same.max())
    assert imbalance.caption(frame).count("At exponent 1.5") == 1


def test_every_chart_of_curves_can_be_drawn_over_it(swept: Path) -> None:
    data = gather([swept], x="exponent")
    for name in CURVES:
        drawn = Drawn.of(name, data)
        assert drawn is not None
        text = str(specification(drawn, Look("light", data.groupings), validate=True))
        assert "exponent:Q" in text or "'field': 'exponent'" in text
        assert "'title': 'workers'" not in text
        assert load_chart(name).caption(drawn.frame)


def test_an_option_is_the_axis_and_workers_a_condition(tmp_path: Path) -> None:
    make_runs(tmp_path, ("kg", "pkg"), workers=(4, 8), sources=(1, 2, 5))
    frame = latency.frame(gather([tmp_path], x="sources"))
    assert frame["sources"].unique().sort().to_list() == [1, 2, 5]
    assert sorted({text.rpartition(", ")[2] for text in frame["condition"]}) == ["4 workers", "8 workers"]


def test_a_parameter_of_groupings_is_the_axis_with_its_default() -> None:
    texts = ["fish:alpha=0.5,epoch=2000", "fish:epoch=2000", "kg", "fish:alpha=0"]
    runs = pl.DataFrame({"grouping": texts, "workers": [8] * 4})
    found, without = with_x(runs, "alpha")
    assert found["grouping"].to_list() == ["fish:epoch=2000", "fish:epoch=2000", "fish"]
    assert found["alpha"].to_list() == [0.5, 0.2, 0.0]
    assert without == ["kg"]


@pytest.mark.parametrize(
    ("x", "said"), [("alhpa", "neither the runs"), ("grouping", "no number"), ("imbalance", "nei")]
)
def test_what_is_no_axis(tmp_path: Path, x: str, said: str) -> None:
    make_runs(tmp_path, ("kg", "pkg"), workers=(4, 8))
    with pytest.raises(UsageError, match=said):
        gather([tmp_path], x=x)


def test_a_share_of_n_and_a_parameter_that_is_called_as_an_option() -> None:
    texts = ["w_choices", "w_choices:theta=1/8n,capacity=20", "w_choices:capacity=30,theta=0.25", "kg"]
    none = pl.Series("capacity", [None] * 4, pl.String)
    runs = pl.DataFrame({"grouping": texts, "workers": [10, 10, 10, 10], "trace": ["t"] * 4}).with_columns(none)
    found, without = with_x(runs, "theta")
    assert found["theta"].to_list() == [0.02, 0.0125, 0.25]
    assert found["grouping"].to_list() == ["w_choices", "w_choices:capacity=20", "w_choices:capacity=30"]
    assert without == ["kg"]
    found, _ = with_x(runs, "capacity")
    assert found["capacity"].to_list() == [0, 20, 30]
