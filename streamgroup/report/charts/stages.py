"""Where the time of a tuple goes: waiting at its source, waiting for its worker, being served, being merged."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import faceted, paneled
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Where the time goes"
SECTION: Section = "groupings"
ORDER = 37

# Parts in the order in which a tuple passes them. What no other part of the latency measures is the queue.
_QUEUE = "queue"
_PARTS = {
    "source wait": "source_wait_ms_mean",
    _QUEUE: "latency_mean_ms",
    "service": "service_ms_mean",
    "aggregation": "result_delay_ms_mean",
}
_OF_LATENCY = ("source wait", "service")
_NONE = pl.DataFrame(
    schema={
        "panel": pl.String, "condition": pl.String, "grouping": pl.String, "workers": pl.Int64, "part": pl.String,
        "ms": pl.Float64, "share": pl.Float64, "total_ms": pl.Float64, "bottleneck": pl.String, "runs": pl.Int64,
    }
)  # fmt: skip


def frame(data: ReportData) -> pl.DataFrame:
    """Return `ms`, the mean time that a tuple spends in each `part`, and its `share` of their sum, `total_ms`.

    The parts are the `source wait`; the `queue`, which is the rest of the latency: the network, the source's own
    service and the wait in a combiner are in it; the `service` at the worker; and the `aggregation`, from the end of a
    window to its merged result. Those that no run has are left out. Of the runs on one number of workers a condition;
    means over seeds. Runs of older versions, which do not have the service time, are left out.
    """
    runs = data.focus
    missing = [name for name in _PARTS.values() if name not in runs.columns]
    runs = runs.with_columns(pl.lit(None, pl.Float64).alias(name) for name in missing)
    runs = runs.filter(pl.col("service_ms_mean").is_not_null(), pl.col("latency_mean_ms").is_not_null())
    if runs.is_empty():
        return _NONE
    keys = ["condition", "grouping", "workers"]
    words = pl.col("bottleneck").drop_nulls().unique().sort().str.join(", ")
    means = (
        runs.group_by(keys)
        .agg(
            *(pl.col(name).mean().cast(pl.Float64).alias(part) for part, name in _PARTS.items()),
            words.first().alias("bottleneck"),
            pl.len().cast(pl.Int64).alias("runs"),
        )
        .sort(keys)
        .with_columns(
            pl.max_horizontal(pl.col(_QUEUE) - pl.sum_horizontal(*_OF_LATENCY), pl.lit(0.0)).alias(_QUEUE),
        )
        .with_columns(pl.sum_horizontal(*_PARTS).alias("total_ms"))
    )
    parts = [
        means.select(
            *keys,
            pl.lit(part).alias("part"),
            pl.col(part).alias("ms"),
            pl.when(pl.col("total_ms") > 0).then(pl.col(part) / pl.col("total_ms")).alias("share"),
            "total_ms",
            "bottleneck",
            "runs",
        )
        for part in _PARTS
    ]
    rows = pl.concat(parts).filter(pl.col("ms").is_not_null())
    order = pl.col("part").replace_strict({part: place for place, part in enumerate(_PARTS)})
    return pl.concat([_NONE, paneled(rows.sort("condition", "grouping", order)).cast(_NONE.schema)])


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a bar for each grouping, cut at the shares of its parts, with the sum of them beside it."""
    there = set(frame["part"])
    parts = [part for part in _PARTS if part in there]
    colours = Look(look.theme, tuple(_PARTS))
    order = [name for name in look.groupings if name in set(frame["grouping"])]
    named = frame.with_columns(
        pl.Series("total", [f"{number(total)} ms" for total in frame["total_ms"]], pl.String),
        pl.col("part").replace_strict({part: place for place, part in enumerate(_PARTS)}).alias("place"),
    )
    y = alt.Y("grouping:N", title=None, sort=order, axis=alt.Axis(labelLimit=220, ticks=False, domain=False))
    bars = (
        alt.Chart()
        .mark_bar()
        .encode(
            x=alt.X(
                "share:Q", title="share of the mean time of a tuple", stack="zero",
                scale=alt.Scale(domain=[0, 1.18], nice=False),
                axis=alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
            ),
            y=y,
            color=alt.Color(
                "part:N", title=None, scale=alt.Scale(domain=parts, range=[colours.colour_of(part) for part in parts])
            ),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("grouping:N"),
                alt.Tooltip("workers:Q"),
                alt.Tooltip("part:N"),
                alt.Tooltip("ms:Q", format=",.4~g"),
                alt.Tooltip("share:Q", format=".3~%"),
                alt.Tooltip("bottleneck:N"),
            ],
        )
    )  # fmt: skip
    sums = alt.Chart().transform_filter("datum.part === 'service'").mark_text(align="left", dx=6)
    labels = sums.encode(x=alt.XDatum(1), y=y, text="total:N")
    return faceted(alt.layer(bars, labels), named, max(90, 30 * len(order)), apart=True)


def caption(frame: pl.DataFrame) -> str:
    """Describe of each grouping of the first panel the sum, its largest part, and what limits the run."""
    first = frame.filter(pl.col("panel") == frame["panel"][0])
    parts = [
        "the queue is all of the latency that is not measured apart: the network, the source's own service and the "
        "wait in a combiner are in it"
    ]
    if "aggregation" in set(frame["part"]):
        parts.append("aggregation is from the end of a window to its merged result")
    sentences = [f"The mean time of a tuple by where it is spent: {'; '.join(parts)}."]
    for part in first.partition_by("grouping", maintain_order=True):
        row = part.sort("ms", "part", descending=[True, False]).row(0, named=True)
        share = 0.0 if row["share"] is None else 100 * row["share"]
        limit = "" if row["bottleneck"] in (None, "none") else f", limited by {row['bottleneck']}"
        sentences.append(
            f"{row['grouping']}: {number(row['total_ms'])} ms, {number(share)} % of it {row['part']}{limit}."
        )
    return " ".join(sentences)
