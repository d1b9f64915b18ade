"""Frequency of the keys by rank, beside the Zipf law that fits best."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look
from streamgroup.report.trace_charts import draw_traces, each_trace
from streamgroup.report.trace_profile import TraceProfile

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Keys by rank"
SECTION: Section = "trace"
ORDER = 20

_SEEN, _FIT = "counted", "Zipf law"


def frame(data: ReportData) -> pl.DataFrame:
    """Return `count` and `share` (0..1 of all tuples) at ranks evenly spaced in their logarithm, the last among them.

    `zipf` is the count by the Zipf law that fits best, `exponent` its z; no row for a trace of fewer than two keys.
    """
    return each_trace(data, _of)


def _of(found: TraceProfile) -> pl.DataFrame:
    rows = found.ranks if found.keys > 1 else found.ranks.clear()
    return rows.select(
        "rank",
        "count",
        (pl.col("count") / max(1, found.tuples)).alias("share"),
        "zipf",
        pl.lit(found.zipf_exponent, pl.Float64).alias("exponent"),
    )


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw counts over ranks, both logarithmic, and the law as a dashed line."""
    scale = alt.Scale(domain=[_SEEN, _FIT], range=[look.accent, look.muted])
    most = int(frame["rank"].max())  # type: ignore[arg-type]
    x = alt.X(
        "rank:Q",
        title="rank of the key",
        scale=alt.Scale(type="log", nice=False, padding=4),
        axis=alt.Axis(values=[10**power for power in range(len(str(most)))], format="~s", grid=False),
    )
    # The law may promise less than a tuple, which no key has.
    rows = frame.with_columns(pl.when(pl.col("zipf") >= 0.5).then("zipf").alias("zipf"))
    axis = look.axis([*rows["count"], *rows["zipf"]])

    def layer(mark: alt.Chart, column: str, name: str) -> alt.Chart:
        return mark.transform_calculate(line=f"'{name}'").encode(
            x=x,
            y=alt.Y(f"{column}:Q", title="tuples with the key", **axis),
            color=alt.Color("line:N", scale=scale, title=None, legend=alt.Legend(symbolType="stroke")),
            tooltip=[
                *([alt.Tooltip("trace:N")] if rows["panel"][0] else []),
                alt.Tooltip("rank:Q", format=","),
                alt.Tooltip("count:Q", title="tuples", format=","),
                alt.Tooltip("share:Q", format=".3~%"),
                alt.Tooltip("zipf:Q", title="by the law", format=",.4~g"),
            ],
        )

    law = layer(alt.Chart().mark_line(strokeDash=[5, 4], strokeWidth=1.5), "zipf", _FIT)
    seen = layer(alt.Chart().mark_line(point=alt.OverlayMarkDef(size=14), strokeWidth=1.5), "count", _SEEN)
    return draw_traces(alt.layer(law, seen), rows, 280)


def caption(frame: pl.DataFrame) -> str:
    """Name the keys, the share of the hottest, from how many workers on it is too much for one, and the exponent."""
    sentences = []
    for part in frame.partition_by("panel", maintain_order=True)[:4]:
        first, last = part.row(0, named=True), part.row(-1, named=True)
        where = f"{part['panel'][0]}: " if part["panel"][0] else ""
        sentence = (
            f"{where}{number(last['rank'])} keys; the most frequent has {number(100 * first['share'])} % of the "
            f"tuples, more than one worker's even share from {int(1 / first['share']) + 1:,} workers on"
        )
        if first["exponent"] is not None:
            sentence += f"; the Zipf law that fits best has an exponent of {number(first['exponent'])}"
        sentences.append(f"{sentence}.")
    return " ".join(sentences)
