"""The share of the hottest keys of a trace over time."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look
from streamgroup.report.trace_charts import draw_traces, each_trace, in_units, moment, time_axis
from streamgroup.report.trace_profile import TraceProfile

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "The hottest keys over time"
SECTION: Section = "trace"
ORDER = 30

_ROW = 24


def frame(data: ReportData) -> pl.DataFrame:
    """Return `share` (0..1), the part of the tuples of a window of time that each of 10 keys has.

    They are those with the largest share of any window, from `rank` 1 on. `share_overall` is a key's part of all
    tuples; no row for a window without a tuple, or a trace of a single window.
    """
    return each_trace(data, _of)


def _of(found: TraceProfile) -> pl.DataFrame:
    keys = pl.DataFrame(
        {
            "rank": range(1, len(found.top_keys) + 1),
            "key": [_label(top.key) for top in found.top_keys],
            "share_overall": [top.share for top in found.top_keys],
        },
        {"rank": pl.Int64, "key": pl.String, "share_overall": pl.Float64},
    )
    rows = found.hot if found.stay.height > 1 else found.hot.clear()
    return rows.join(keys, "rank", maintain_order="left").select(
        "rank", "key", "share_overall", "from_s", "to_s", "tuples", "share"
    )


def _label(key: str | None) -> str:
    return "(no key)" if key is None else key or "(empty)"


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a row for each key, from the largest peak down, the darker the larger its share."""
    rows = in_units(frame)
    # With its rank a name is the only one of its kind.
    rows = rows.with_columns(pl.format("{}. {}", "rank", "key").alias("name"))
    chart = (
        alt.Chart()
        .mark_rect(stroke=None)
        .encode(
            x=time_axis(rows),
            x2=alt.X2("to:Q"),
            y=alt.Y("name:N", title=None, sort=alt.EncodingSortField("rank", op="min")),
            color=alt.Color(
                "share:Q",
                title="share of tuples",
                scale=alt.Scale(type="sqrt", range=look.ramp, domainMin=0),
                legend=alt.Legend(format=".2~%", gradientLength=200, tickCount=3),
            ),
            tooltip=[
                *([alt.Tooltip("trace:N")] if rows["panel"][0] else []),
                alt.Tooltip("key:N"),
                alt.Tooltip("at:N", title="from"),
                alt.Tooltip("share:Q", format=".3~%"),
                alt.Tooltip("share_overall:Q", title="of all tuples", format=".3~%"),
            ],
        )
    )
    return draw_traces(chart, rows, _ROW * rows["rank"].n_unique())


def caption(frame: pl.DataFrame) -> str:
    """Name the key with the largest share of any window, when that is, and the share of all keys shown together."""
    sentences = []
    for part in frame.partition_by("panel", maintain_order=True)[:4]:
        keys = part.unique("rank", keep="first", maintain_order=True)
        # In a window of few tuples any key may have it all.
        full = part.filter(pl.col("tuples") >= 0.1 * pl.col("tuples").mean())
        most = full.sort("share", descending=True, maintain_order=True).row(0, named=True)
        where = f"{part['panel'][0]}: the" if part["panel"][0] else "The"
        sentences.append(
            f"{where} {keys.height} keys with the largest share of any window have "
            f"{number(100 * sum(keys['share_overall']))} % of all tuples together. {most['key']} has the largest: "
            f"{number(100 * most['share'])} % of the tuples of {moment(most['to_s'] - most['from_s'])}, "
            f"{moment(most['from_s'])} after the first tuple, against {number(100 * most['share_overall'])} % of all."
        )
    return " ".join(sentences)
