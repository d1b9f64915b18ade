"""The distribution of latency: the share of tuples with at least a latency."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import faceted, paneled, with_points
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Latency distribution"
SECTION: Section = "groupings"
ORDER = 35

# Points of a curve, for each factor of ten of the share and of its straight part.
_FINE, _STRAIGHT = 25, 40


def frame(data: ReportData) -> pl.DataFrame:
    """Return `share`, the part (0..1] of the tuples that took `at_least_ms` or longer, pooled over seeds.

    For each condition the runs on one number of workers, where most groupings are; of latencies with nearly the same
    share only the first and the last. `latency_p99_ms` is the mean of that metric over the `runs`, as in the tables.
    """
    runs = data.focus.select("run", "condition", "grouping", "workers", "latency_p99_ms")
    if runs.is_empty():
        return _EMPTY
    keys = ["condition", "grouping", "workers"]
    p99 = runs.group_by(keys).agg(
        pl.col("latency_p99_ms").mean().cast(pl.Float64), pl.len().cast(pl.Int64).alias("runs")
    )
    counted = (
        data.table("latency", runs["run"].to_list())
        .join(runs, "run")
        .group_by(*keys, "at_least_ms")
        .agg(pl.col("tuples").sum())
        .join(p99, keys)
        .sort(*keys, "at_least_ms")
    )
    if counted.is_empty():
        return _EMPTY
    above = pl.col("tuples").reverse().cum_sum().reverse().over(keys) / pl.col("tuples").sum().over(keys)
    shares = counted.with_columns(above.alias("share"), pl.int_range(pl.len()).over(keys).alias("_place"))
    steps = ((pl.col("share").log10() * _FINE).round(), (pl.col("share") * _STRAIGHT).round())
    # Where a share is the same over many latencies, it falls after the last of them.
    ends = (pl.col("_place") == pl.col("_place").min()) | (pl.col("_place") == pl.col("_place").max())
    return paneled(
        shares.filter(ends.over(*keys, *steps)).select(*keys, "at_least_ms", "share", "latency_p99_ms", "runs")
    )


_EMPTY = pl.DataFrame(
    schema={
        "panel": pl.String, "condition": pl.String, "grouping": pl.String, "workers": pl.Int64,
        "at_least_ms": pl.Float64, "share": pl.Float64, "latency_p99_ms": pl.Float64, "runs": pl.Int64,
    }
)  # fmt: skip


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a falling line for each grouping, both axes logarithmic where they span much."""
    names = frame["grouping"].to_list()
    shares = look.axis(frame["share"].to_list(), percent=True)
    times = look.axis(frame["at_least_ms"].to_list())
    base = alt.Chart().encode(
        x=alt.X("at_least_ms:Q", title="latency (ms)", **times),
        y=alt.Y("share:Q", title="tuples that took at least so long", **shares),
        color=look.colour(names),
        tooltip=[
            alt.Tooltip("grouping:N"),
            alt.Tooltip("at_least_ms:Q", format=".4~g"),
            alt.Tooltip("share:Q", format=".3~%"),
        ],
    )
    lines = base.mark_line(interpolate="step-before", opacity=0.9).encode(strokeDash=look.dash(names))
    return faceted(with_points(lines, base, frame), frame)


def caption(frame: pl.DataFrame) -> str:
    """Name the least and the largest p99, as in the tables."""
    sentences = ["The lower a line falls and the further left it ends, the fewer tuples wait long."]
    several = (frame["runs"] > 1).any()
    what = "the mean of the seeds' p99 latencies" if several else "the p99 latency"
    if several:
        sentences.append("A line is of the tuples of all seeds together.")
    for part in frame.partition_by("panel", maintain_order=True)[:3]:
        slow = (
            part.filter(pl.col("latency_p99_ms").is_not_null())
            .unique("grouping", maintain_order=True)
            .sort("latency_p99_ms", "grouping")
            .to_dicts()
        )
        where = f"{part['panel'][0]}, on" if part["panel"][0] else "On"
        if slow:
            best, worst = slow[0], slow[-1]
            sentences.append(
                f"{where} {part['workers'][0]} workers {what} is {number(best['latency_p99_ms'])} ms with "
                f"{best['grouping']}"
                + (f", {number(worst['latency_p99_ms'])} ms with {worst['grouping']}." if len(slow) > 1 else ".")
            )
    return " ".join(sentences)
