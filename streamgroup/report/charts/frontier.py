"""The frontier of p99 latency against replication: what a lower latency costs in replicas."""

from typing import Any

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import faceted, paneled
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "p99 latency against replication"
SECTION: Section = "groupings"
ORDER = 60

# What a name takes of the width and of the height of a panel.
_ROOM = (0.28, 0.09)


def frame(data: ReportData) -> pl.DataFrame:
    """Return `replication_factor` and `latency_p99_ms`, means over seeds, with the largest p99 of any seed.

    One row for each `condition`, `grouping` and `workers`. `frontier` says that no other grouping is as good in both
    and better in one on so many workers.
    """
    runs = data.charted
    keys = ["condition", "workers", "grouping"]
    both = pl.col("replication_factor").is_not_null() & pl.col("latency_p99_ms").is_not_null()
    means = (
        runs.filter(both)
        .group_by(keys)
        .agg(
            pl.len().cast(pl.Int64).alias("runs"),
            pl.col("replication_factor").mean(),
            pl.col("latency_p99_ms").mean(),
            pl.col("latency_p99_ms").max().alias("latency_p99_ms_max"),
        )
        .sort(keys)
    )
    if means.height < 2:
        return paneled(means.clear()).with_columns(pl.lit(None, pl.Boolean).alias("frontier"))
    return paneled(pl.concat(_marked(part) for part in means.partition_by("condition", "workers", maintain_order=True)))


def _marked(part: pl.DataFrame) -> pl.DataFrame:
    ordered = part.sort("replication_factor", "latency_p99_ms", "grouping")
    before = pl.col("latency_p99_ms").cum_min().shift(1)
    best = pl.col("latency_p99_ms") < before
    twins = pl.struct("replication_factor", "latency_p99_ms")
    marked = ordered.with_columns((before.is_null() | best).alias("frontier"))
    return marked.with_columns(pl.col("frontier").any().over(twins)).sort("grouping")


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a point for each grouping and number of workers, and the frontier of the most workers, with names."""
    names = frame["grouping"].to_list()
    axes = {name: look.axis(frame[name].to_list()) for name in ("replication_factor", "latency_p99_ms")}
    low, high = float(frame["replication_factor"].min()), float(frame["replication_factor"].max())  # type: ignore[arg-type]
    logarithmic = axes["replication_factor"]["scale"].to_dict().get("type") == "log"
    middle = (low * high) ** 0.5 if logarithmic else (low + high) / 2
    axes["replication_factor"]["scale"].padding = axes["latency_p99_ms"]["scale"].padding = 14
    for axis in axes.values():
        if axis["scale"].to_dict().get("type") is None:
            axis["scale"].zero = False
    x = alt.X("replication_factor:Q", title="replication (workers a key)", **axes["replication_factor"])
    y = alt.Y("latency_p99_ms:Q", title="p99 latency (ms)", **axes["latency_p99_ms"])
    base = alt.Chart().encode(x=x, y=y)
    most = base.transform_joinaggregate(most_workers="max(workers)", groupby=["panel"])
    best = most.transform_filter("datum.frontier && datum.workers == datum.most_workers")
    tooltip = [
        alt.Tooltip("grouping:N"),
        alt.Tooltip("workers:Q"),
        alt.Tooltip("replication_factor:Q", format=".4~g"),
        alt.Tooltip("latency_p99_ms:Q", format=".4~g"),
        alt.Tooltip("latency_p99_ms_max:Q", format=".4~g"),
    ]
    several = frame["workers"].n_unique() > 1
    line = best.mark_line(interpolate="step-after", color=look.muted, strokeDash=[4, 3], strokeWidth=1.5)
    points = base.mark_point(opacity=1).encode(
        color=look.colour(names),
        shape=look.shape(names),
        size=_by_workers(frame) if several else alt.value(90),
        tooltip=tooltip,
    )
    layers = [line, points]
    if several:
        path = base.mark_line(strokeWidth=1.5, opacity=0.6).encode(
            color=look.colour(names), detail="grouping:N", order="workers:Q"
        )
        layers.insert(0, path)
    labelled = _labelled(frame, axes)
    is_right = pl.col("replication_factor") > middle
    for side, sign, look_of in (
        (~is_right, "<=", alt.MarkDef(type="text", align="left", dx=8, dy=-10, limit=220)),
        (is_right, ">", alt.MarkDef(type="text", align="right", dx=-8, dy=-10, limit=220)),
    ):
        if labelled.filter(side & pl.col("label").is_not_null()).height:
            here = base.transform_filter(f"datum.label != null && datum.replication_factor {sign} {middle!r}")
            text = here.encode(text="label:N")
            text.mark = look_of
            layers.append(text)
    return faceted(alt.layer(*layers), labelled, apart=True)


def _by_workers(frame: pl.DataFrame) -> alt.Size:
    """Return a size of points that grows with the number of workers."""
    counts = sorted(frame["workers"].unique().to_list())
    steps = [30 + 120 * place / max(1, len(counts) - 1) for place in range(len(counts))]
    legend = alt.Legend(title="workers", symbolType="circle", titleOrient="left")
    return alt.Size("workers:O", scale=alt.Scale(type="ordinal", domain=counts, range=steps), legend=legend)


def _labelled(frame: pl.DataFrame, axes: dict[str, dict[str, Any]]) -> pl.DataFrame:
    """Add `label`: the grouping, where it is on the frontier of the most workers and runs into no other name."""
    places = {}
    for name, axis in axes.items():
        values = frame[name].log() if axis["scale"].to_dict().get("type") == "log" else frame[name]
        low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
        places[name] = ((values - low) / ((high - low) or 1.0)).to_list()
    x, y = places["replication_factor"], places["latency_p99_ms"]
    most = dict(frame.group_by("panel").agg(pl.col("workers").max()).iter_rows())
    labels: list[str | None] = []
    taken: list[tuple[str, float, float]] = []
    for at, row in enumerate(frame.iter_rows(named=True)):
        free = all(
            panel != row["panel"] or abs(other_x - x[at]) > _ROOM[0] or abs(other_y - y[at]) > _ROOM[1]
            for panel, other_x, other_y in taken
        )
        named = row["frontier"] and free and row["workers"] == most[row["panel"]]
        labels.append(row["grouping"] if named else None)
        if named:
            taken.append((row["panel"], x[at], y[at]))
    return frame.with_columns(pl.Series("label", labels, pl.String))


def caption(frame: pl.DataFrame) -> str:
    """Walk along the frontier of the most workers in each of the first panels."""
    several = frame["workers"].n_unique() > 1
    best = "the dashed line joins the groupings that no other beats in both"
    sentences = [f"Down and to the left is better; {best}{' on the most workers' if several else ''}."]
    if several:
        sentences.append("Points are larger on more workers, and solid lines join those of a grouping.")
    for part in frame.partition_by("panel", maintain_order=True)[:3]:
        most = max(part["workers"].to_list())
        chosen = part.filter(pl.col("frontier") & (pl.col("workers") == most)).sort("replication_factor", "grouping")
        steps = ", ".join(
            f"{row['grouping']} ({number(row['replication_factor'])} replicas, {number(row['latency_p99_ms'])} ms)"
            for row in chosen.to_dicts()
        )
        place = ", ".join(text for text in (part["panel"][0], f"{most} workers" if several else "") if text)
        sentences.append(f"{place or 'On it'}: {steps}.")
    return " ".join(sentences)
