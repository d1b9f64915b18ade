"""The load of each worker, what the head and the tail of the keys make of it (001, fig. 8)."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from streamgroup.groupings._share_threshold import share_of
from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import faceted
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Load of each worker by head and tail"
SECTION: Section = "groupings"
ORDER = 25

_MOST_RUNS = 6
_MOST_WORKERS = 64
_PARTS = ("head", "tail")
_NONE = pl.DataFrame(
    schema={
        "panel": pl.String, "condition": pl.String, "grouping": pl.String, "worker": pl.Int64, "part": pl.String,
        "tuples": pl.Int64, "share": pl.Float64, "even": pl.Float64, "theta": pl.Float64, "other_conditions": pl.Int64,
    }
)  # fmt: skip


def frame(data: ReportData) -> pl.DataFrame:
    """Return `share`, the part of all tuples that a worker got of the `head` and the `tail` of the keys.

    For up to 6 groupings of the first condition, those with the least imbalance, one run each, and the 64 most loaded
    workers of each. `even` is the share of a worker if all had the same, `theta` that from which on a key is of the
    head, null if it is the grouping's own; `other_conditions` counts those left out.
    """
    runs = data.first_seeds
    chosen = runs.filter(pl.col("condition") == runs["condition"].min()).sort("imbalance", "grouping").head(_MOST_RUNS)
    parts = [_parts(data.table("workers", [row["run"]]), row) for row in chosen.iter_rows(named=True)]
    others = runs["condition"].n_unique() - 1
    return pl.concat(
        [_NONE, *(part.with_columns(pl.lit(others, pl.Int64).alias("other_conditions")) for part in parts)]
    )


def _parts(workers: pl.DataFrame, run: Mapping[str, Any]) -> pl.DataFrame:
    # Runs from before it was counted lack the column.
    if "true_head_tuples" not in workers.columns or not workers["tuples"].sum():
        return _NONE.drop("other_conditions")
    total, even = workers["tuples"].sum(), 1 / workers.height
    threshold = run.get("hot_threshold")
    theta = None if threshold in (None, "own") else float(share_of(str(threshold), int(run["workers"])))
    most = workers.sort("tuples", "worker", descending=[True, False]).head(_MOST_WORKERS).sort("worker")
    return pl.concat(
        most.select(
            pl.lit(run["grouping"]).alias("panel"),
            pl.lit(run["condition"]).alias("condition"),
            pl.lit(run["grouping"]).alias("grouping"),
            pl.col("worker").cast(pl.Int64),
            pl.lit(part).alias("part"),
            pl.col(f"true_{part}_tuples").cast(pl.Int64).alias("tuples"),
            (pl.col(f"true_{part}_tuples") / total).alias("share"),
            pl.lit(even).alias("even"),
            pl.lit(theta, pl.Float64).alias("theta"),
        )
        for part in _PARTS
    )


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw bars of the workers for each grouping, the tail on the head; a line is where all have the same."""
    few = alt.Axis(labelOverlap="greedy", ticks=False, labelAngle=0, labelSeparation=12, values=_round_workers(frame))
    base = alt.Chart()
    placed = base.transform_calculate(place=f"datum.part === '{_PARTS[0]}' ? 0 : 1")
    bars = placed.mark_bar().encode(
        x=alt.X("worker:O", title="worker", axis=few),
        y=alt.Y("share:Q", title="share of tuples", stack="zero", axis=alt.Axis(format=".3~%")),
        color=alt.Color("part:N", title=None, scale=alt.Scale(domain=list(_PARTS), range=[look.accent, look.muted])),
        order=alt.Order("place:Q"),
        tooltip=[
            alt.Tooltip("grouping:N"),
            alt.Tooltip("worker:O"),
            alt.Tooltip("part:N"),
            alt.Tooltip("tuples:Q"),
            alt.Tooltip("share:Q", format=".3~%"),
        ],
    )
    even = base.mark_rule(strokeDash=[4, 3]).encode(y=alt.Y("mean(even):Q"))
    return faceted(alt.layer(bars, even), frame, apart=True)


def _round_workers(frame: pl.DataFrame) -> list[int]:
    """Return the workers that get a number: multiples of 1, 2, 5 or 10 and so on, up to ten, if all are shown."""
    workers = frame["worker"].unique().sort().to_list()
    steps = (digit * 10**power for power in range(9) for digit in (1, 2, 5))
    step = next(step for step in steps if len(workers) <= 10 * step)
    return [worker for worker in workers if worker % step == 0] if workers == list(range(len(workers))) else workers


def caption(frame: pl.DataFrame) -> str:
    """Describe of each grouping what its most loaded worker got, and how much of that is the head."""
    workers = f"{round(1 / frame['even'][0])} workers, {frame['condition'][0]}"
    share = [f"{number(100 * value)} %" for value in frame["theta"].drop_nulls().unique().sort()]
    theta = f"theta, {' or '.join(share)}," if share else "theta of the grouping"
    sentences = [f"Head: keys with at least the share {theta} of all tuples ({workers})."]
    if others := frame["other_conditions"][0]:
        sentences.append(f"{others} more conditions are not shown: choose one with --where.")
    for part in frame.partition_by("grouping", maintain_order=True):
        loads = part.group_by("worker").agg(
            pl.col("share").sum(), pl.col("share").filter(pl.col("part") == "head").sum().alias("head")
        )
        row = loads.sort("share", "worker", descending=[True, False]).row(0, named=True)
        sentences.append(
            f"The most loaded worker of {part['grouping'][0]} got {number(100 * row['share'])} % of the tuples, "
            f"{number(100 * row['head'])} % as head."
        )
    return " ".join(sentences)
