"""The frontier of p99 latency against replication: what a lower latency costs in replicas."""

from typing import Any

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.formatting import number
from streamgroup.report.over_workers import faceted, paneled
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "p99 latency against replication"
SECTION: Section = "groupings"
ORDER = 60

_MOST_PANELS = 12
# What a name takes of the width and of the height of a panel.
_ROOM = (0.28, 0.09)


def frame(data: ReportData) -> pl.DataFrame:
    """Return `replication_factor` and `latency_p99_ms`, means over seeds, with the largest p99 of any seed.

    One row for each `condition`, `grouping` and `workers` (of too many only the workers that most groupings have).
    `frontier` says that no other grouping of the panel is as good in both and better in one.
    """
    runs = data.charted
    if runs.select("condition", "workers").unique().height > _MOST_PANELS:
        runs = data.focus
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
    workers = pl.format("{} workers", "workers") if means["workers"].n_unique() > 1 else pl.lit("")
    parts = [_marked(part) for part in means.partition_by("condition", "workers", maintain_order=True)]
    return paneled(pl.concat(parts).with_columns(workers.alias("what"))).drop("what")


def _marked(part: pl.DataFrame) -> pl.DataFrame:
    ordered = part.sort("replication_factor", "latency_p99_ms", "grouping")
    before = pl.col("latency_p99_ms").cum_min().shift(1)
    best = pl.col("latency_p99_ms") < before
    twins = pl.struct("replication_factor", "latency_p99_ms")
    marked = ordered.with_columns((before.is_null() | best).alias("frontier"))
    return marked.with_columns(pl.col("frontier").any().over(twins)).sort("grouping")


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a point for each grouping and a line through those on the frontier, which carry their names."""
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
    best = base.transform_filter("datum.frontier")
    tooltip = [
        alt.Tooltip("grouping:N"),
        alt.Tooltip("workers:Q"),
        alt.Tooltip("replication_factor:Q", format=".4~g"),
        alt.Tooltip("latency_p99_ms:Q", format=".4~g"),
        alt.Tooltip("latency_p99_ms_max:Q", format=".4~g"),
    ]
    line = best.mark_line(interpolate="step-after", color=look.muted, strokeDash=[4, 3], strokeWidth=1.5)
    points = base.mark_point(size=90, opacity=1).encode(
        color=look.colour(names), shape=look.shape(names), tooltip=tooltip
    )
    right = f"datum.replication_factor > {middle!r}"
    names_of = base.transform_filter("datum.label != null")
    labels = [
        names_of.transform_filter(f"!({right})").mark_text(align="left", dx=4, dy=-10, limit=150),
        names_of.transform_filter(right).mark_text(align="right", dx=-4, dy=-10, limit=150),
    ]
    layers = [line, points, *(label.encode(text="label:N") for label in labels)]
    return faceted(alt.layer(*layers), _labelled(frame, axes))


def _labelled(frame: pl.DataFrame, axes: dict[str, dict[str, Any]]) -> pl.DataFrame:
    """Add `label`: the grouping, where it is on the frontier and the name does not run into another."""
    places = {}
    for name, axis in axes.items():
        values = frame[name].log() if axis["scale"].to_dict().get("type") == "log" else frame[name]
        low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
        places[name] = ((values - low) / ((high - low) or 1.0)).to_list()
    x, y = places["replication_factor"], places["latency_p99_ms"]
    labels: list[str | None] = []
    taken: list[tuple[str, float, float]] = []
    for at, row in enumerate(frame.iter_rows(named=True)):
        free = all(
            panel != row["panel"] or abs(other_x - x[at]) > _ROOM[0] or abs(other_y - y[at]) > _ROOM[1]
            for panel, other_x, other_y in taken
        )
        named = row["frontier"] and free
        labels.append(row["grouping"] if named else None)
        if named:
            taken.append((row["panel"], x[at], y[at]))
    return frame.with_columns(pl.Series("label", labels, pl.String))


def caption(frame: pl.DataFrame) -> str:
    """Walk along the frontier of each of the first panels."""
    sentences = ["Down and to the left is better; the dashed line joins the groupings that no other beats in both."]
    for part in frame.partition_by("panel", maintain_order=True)[:3]:
        best = part.filter("frontier").sort("replication_factor", "grouping").to_dicts()
        steps = ", ".join(
            f"{row['grouping']} ({number(row['replication_factor'])} replicas, {number(row['latency_p99_ms'])} ms)"
            for row in best
        )
        sentences.append(f"{best[0]['panel'] or 'On it'}: {steps}." if best[0]["panel"] else f"On it: {steps}.")
    return " ".join(sentences)
