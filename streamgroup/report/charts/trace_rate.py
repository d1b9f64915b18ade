"""Tuples a second of a trace over time."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look
from streamgroup.report.trace_charts import draw_traces, each_trace, in_units, moment, time_axis

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Rate over time"
SECTION: Section = "trace"
ORDER = 10

_MEAN, _PEAK = "mean", "busiest tenth"


def frame(data: ReportData) -> pl.DataFrame:
    """Return `rate` and `peak_rate` in tuples a second for segments of each trace: see `TraceProfile`."""
    return each_trace(data, lambda found: found.rate.drop_nulls("rate"))


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw the mean of each segment as an area, and the rate of its busiest tenth as a line where that is more."""
    # Steps go on to the end of the last segment.
    ends = frame.group_by("trace", maintain_order=True).last().with_columns(pl.col("to_s").alias("from_s"))
    rows = in_units(pl.concat([frame, ends.select(frame.columns)]))
    large = (rows["peak_rate"] >= 10_000).any()
    scale = alt.Scale(domain=[_MEAN, _PEAK], range=[look.accent, look.muted])

    def layer(mark: alt.Chart, column: str, name: str) -> alt.Chart:
        return mark.transform_calculate(line=f"'{name}'").encode(
            x=time_axis(rows),
            y=alt.Y(
                f"{column}:Q",
                title="tuples a second",
                stack=None,
                axis=alt.Axis(tickCount=5, format=".3~s" if large else ",~r"),
            ),
            color=alt.Color(
                "line:N", scale=scale, title=None, legend=alt.Legend(symbolType="square") if busier else None
            ),
            tooltip=[
                *([alt.Tooltip("trace:N")] if rows["panel"][0] else []),
                alt.Tooltip("at:N", title="from"),
                alt.Tooltip("rate:Q", title="tuples a second", format=",.4~g"),
                alt.Tooltip("peak_rate:Q", title="in its busiest tenth", format=",.4~g"),
            ],
        )

    busier = bool((frame["peak_rate"] > frame["rate"] * 1.001).any())
    mean = layer(alt.Chart().mark_area(interpolate="step-after", opacity=0.8), "rate", _MEAN)
    peak = layer(alt.Chart().mark_line(interpolate="step-after", strokeWidth=1), "peak_rate", _PEAK)
    return draw_traces(alt.layer(peak, mean) if busier else mean, rows, 220)


def caption(frame: pl.DataFrame) -> str:
    """Name the mean, and the busiest and the quietest segment."""
    sentences = []
    for part in frame.partition_by("panel", maintain_order=True)[:4]:
        most = part.sort("rate", descending=True, maintain_order=True).row(0, named=True)
        least = part.sort("rate", maintain_order=True).row(0, named=True)
        span = part["to_s"][-1]
        mean = part["tuples"].sum() / span
        where = f"{part['panel'][0]}: " if part["panel"][0] else ""
        sentence = f"{where}{number(mean)} tuples a second on average over {moment(span)}"
        if most["rate"] > 1.001 * least["rate"]:
            sentence += (
                f"; the busiest segment ({moment(most['to_s'] - most['from_s'])} long, {moment(most['from_s'])} after "
                f"the first tuple) has {number(most['rate'])}, {number(most['rate'] / mean)} times the mean, the "
                f"quietest {number(least['rate'])}"
            )
        peak = max(part["peak_rate"].to_list())
        if peak > 1.001 * most["rate"]:
            sentence += f"; a tenth of a segment has up to {number(peak)}"
        sentences.append(f"{sentence}.")
    return " ".join(sentences)
