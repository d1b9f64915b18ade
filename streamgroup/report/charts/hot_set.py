"""How many of the hottest keys of a trace stay hot from one window of time to the next."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look
from streamgroup.report.trace_charts import draw_traces, each_trace, in_units, moment, time_axis

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Hot keys that stay hot"
SECTION: Section = "trace"
ORDER = 40


def frame(data: ReportData) -> pl.DataFrame:
    """Return `stay` (0..1), the part of a window's 10 hottest keys that the window before it had among its own."""
    return each_trace(data, lambda found: found.stay.drop_nulls("stay"))


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line over time."""
    rows = in_units(frame)
    chart = (
        alt.Chart()
        .mark_line(color=look.accent, point=alt.OverlayMarkDef(color=look.accent, size=30), strokeWidth=1.5)
        .encode(
            x=time_axis(rows),
            y=alt.Y(
                "stay:Q",
                title="hot keys that were hot before",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%", tickCount=5),
            ),
            tooltip=[
                *([alt.Tooltip("trace:N")] if rows["panel"][0] else []),
                alt.Tooltip("at:N", title="from"),
                alt.Tooltip("stay:Q", title="stay", format=".3~%"),
                alt.Tooltip("tuples:Q", format=","),
            ],
        )
    )
    return draw_traces(chart, rows, 180)


def caption(frame: pl.DataFrame) -> str:
    """Name the mean and the least."""
    sentences = []
    for part in frame.partition_by("panel", maintain_order=True)[:4]:
        least = part.sort("stay", maintain_order=True).row(0, named=True)
        where = f"{part['panel'][0]}: of" if part["panel"][0] else "Of"
        sentences.append(
            f"{where} the ten hottest keys of a window of {moment(least['to_s'] - least['from_s'])} on average "
            f"{number(100 * sum(part['stay']) / part.height)} % were among the ten of the window before, "
            f"and at the fewest {number(100 * least['stay'])} %, {moment(least['from_s'])} after the first tuple."
        )
    return " ".join(sentences)
