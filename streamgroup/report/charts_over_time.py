"""Charts of a metric over time, a line for each grouping."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from streamgroup.report.charts_over_workers import ChartFunctions, faceted, paneled, with_points
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["lines_of"]

_MOST_WINDOWS = 100


def lines_of(metrics: Mapping[str, str], what: str, *, axis: str, unit: str = "") -> ChartFunctions:
    """Return `frame`, `draw` and `caption` of a chart of columns of the windows, `what` in the caption.

    `metrics` maps each column to what its panel is called.
    """

    def frame(data: ReportData) -> pl.DataFrame:
        return _windows(data, metrics)

    def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
        return _draw(frame, look, axis)

    def caption(frame: pl.DataFrame) -> str:
        return _describe_worst(frame, what, unit)

    return frame, draw, caption


def _windows(data: ReportData, metrics: Mapping[str, str]) -> pl.DataFrame:
    """Return columns of the windows for one run of each condition and grouping, a panel for each of several.

    `start_s` is when a window starts and `value` its metric; of too many windows that follow each other the largest.
    """
    runs = data.first_seeds.select("run", "condition", "grouping", "workers")
    keys = ["condition", "grouping", "workers"]
    if runs.is_empty():
        return paneled(runs.select(keys)).with_columns(pl.lit(0.0).alias("start_s"), pl.lit(0.0).alias("value"))
    windows = data.table("windows", runs["run"].to_list()).join(runs, "run")
    each = (pl.len().cast(pl.Int64).over("run") + _MOST_WINDOWS - 1) // _MOST_WINDOWS
    frames = [
        windows.filter(pl.col(metric).is_not_null())
        .sort("run", "window")
        .with_columns((pl.int_range(pl.len()).over("run") // each).alias("_bin"))
        .group_by(*keys, "run", "_bin")
        .agg(pl.col("start_s").min(), pl.col(metric).max().cast(pl.Float64).alias("value"))
        .sort(*keys, "start_s")
        .select(pl.lit(what).alias("what"), *keys, "start_s", "value")
        for metric, what in metrics.items()
        if metric in windows.columns
    ]
    frame = paneled(pl.concat(frames))
    return frame if len(metrics) > 1 else frame.drop("what")


def _draw(frame: pl.DataFrame, look: Look, title: str) -> alt.TopLevelMixin:
    """Draw a line for each grouping over the time since the start of the run."""
    names = frame["grouping"].to_list()
    base = alt.Chart().encode(
        x=alt.X("start_s:Q", title="time since the start (s)", axis=alt.Axis(grid=False), scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", title=title, **look.axis(frame["value"].to_list())),
        color=look.colour(names),
        tooltip=[
            alt.Tooltip("grouping:N"),
            alt.Tooltip("start_s:Q", format=".4~g"),
            alt.Tooltip("value:Q", title=title, format=".4~g"),
        ],
    )
    lines = base.mark_line(opacity=0.9, strokeWidth=1.5).encode(strokeDash=look.dash(names))
    return faceted(with_points(lines, base, frame), frame, apart=True)


def _describe_worst(frame: pl.DataFrame, what: str, unit: str) -> str:
    """Describe for each of the first panels which grouping has the least and which the worst of its worst windows."""
    sentences = []
    for part in frame.partition_by("panel", maintain_order=True)[:3]:
        worst = part.sort("value", descending=True).unique("grouping", keep="first", maintain_order=True)
        rows = worst.sort("value", "grouping").to_dicts()
        where = f" ({part['panel'][0]})" if part["panel"][0] else ""
        sentence = (
            f"On {rows[-1]['workers']} workers{where} the worst window of {rows[-1]['grouping']} has {what} "
            f"{number(rows[-1]['value'])}{unit}, {number(rows[-1]['start_s'])} s after the start"
        )
        if len(rows) > 1:
            sentence += f"; that of {rows[0]['grouping']} {number(rows[0]['value'])}{unit}"
        sentences.append(f"{sentence}.")
    return " ".join(sentences)
