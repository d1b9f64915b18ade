"""How far workers are behind over time, in tuples and in seconds."""

import json
from typing import Any

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import faceted
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look
from streamgroup.study.recovery_time import Drain, find_drains

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Backlog of workers over time"
SECTION: Section = "time"
ORDER = 40

_MOST_RUNS = 4
_KINDS = {"backlog_tuples": "tuples", "backlog_s": "seconds"}
_RANKS = ("worker furthest behind", "second", "third")
_OTHERS = "from the least to the largest of all others"


def frame(data: ReportData) -> pl.DataFrame:
    """Return `value`, the backlog of a `worker` at `time_s` in the `unit` of its panel: tuples, or seconds.

    For up to 4 groupings of the first condition, those with the most p99 latency first, one run each; the 3 workers
    whose largest backlog is the longest have a line each, by `rank`; of all others it is the largest, beside the
    `least`. `drains` says how long it took to catch up after a crash or a slow phase. Runs of older versions, without
    the table, are left out.
    """
    runs = data.first_seeds
    runs = runs.filter(pl.col("condition") == runs["condition"].first())
    runs = runs.filter(
        pl.Series([(data.directories[run] / "lag.parquet").is_file() for run in runs["run"]], dtype=pl.Boolean)
    ).sort("latency_p99_ms", "grouping", descending=[True, False], nulls_last=True)
    several = runs.height > 1
    found = [_of_run(data, row, several=several) for row in runs.head(_MOST_RUNS).iter_rows(named=True)]
    shown = [frame for frame in found if frame.height]
    return pl.concat(shown) if shown else pl.DataFrame()


def _of_run(data: ReportData, row: dict[str, object], *, several: bool) -> pl.DataFrame:
    run, grouping = str(row["run"]), str(row["grouping"])
    lag = data.table("lag", [run])
    record = json.loads((data.directories[run] / "run.json").read_bytes())
    drains: list[str] = []
    if "options" in record and "tuples" in record["trace"] and lag.height:
        drains = [_describe(drain) for drain in find_drains(record, lag, data.table("windows", [run]))]
    worst = lag.group_by("worker").agg(pl.col("backlog_tuples", "backlog_s").max()).sort(
        "backlog_s", "backlog_tuples", "worker", descending=[True, True, False], nulls_last=False
    )  # fmt: skip
    ranks = dict(zip(worst["worker"].to_list(), _RANKS, strict=False))
    others = worst.height - len(ranks)
    rank = pl.col("worker").replace_strict(ranks, default=_OTHERS, return_dtype=pl.String)
    who = pl.when(pl.col("rank") == _OTHERS).then(pl.lit(f"largest of {others} others"))
    panel = pl.format("{}backlog in {}", pl.lit(f"{grouping}: " if several else ""), "unit")
    # The line of the worker furthest behind comes last, on top of the others.
    order = pl.col("rank").replace_strict({name: place for place, name in enumerate((_OTHERS, *reversed(_RANKS)))})
    return (
        lag.select("time_s", "worker", rank.alias("rank"), pl.col(*_KINDS).cast(pl.Float64))
        .unpivot(index=["time_s", "worker", "rank"], variable_name="unit")
        .with_columns(pl.col("unit").replace_strict(_KINDS))
        .sort("value", "worker", descending=[True, False], nulls_last=True)
        .group_by("time_s", "rank", "unit", maintain_order=True)
        .agg(pl.col("worker", "value").first(), pl.col("value").min().alias("least"))
        .sort(pl.col("unit") != "tuples", order, "time_s")
        .select(
            panel.alias("panel"), pl.lit(grouping).alias("grouping"), "unit", "time_s",
            who.otherwise(pl.format("worker {}", "worker")).alias("who"), "rank", "worker", "value", "least",
            pl.lit(" ".join(drains)).alias("drains"),
        )
    )  # fmt: skip


def _describe(drain: Drain) -> str:
    after = f"After {drain.what} ({number(drain.at_s)} s)"
    if drain.seconds is None:
        return f"{after} workers do not catch up before the end."
    if drain.seconds == 0:
        return f"{after} no worker falls further behind than any was before."
    return f"{after} it takes {number(drain.seconds)} s until no worker is further behind than any was before."


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each of the workers furthest behind and a band for all others, a panel for each unit."""
    names = [name for name in (*_RANKS, _OTHERS) if name in set(frame["rank"])]
    colours = [*look.series[: len(names) - 1], look.muted] if _OTHERS in names else look.series[: len(names)]
    legend = alt.Legend(symbolType="square", symbolOpacity=1)
    base = alt.Chart().encode(
        x=alt.X("time_s:Q", title="time since the start (s)", axis=alt.Axis(grid=False), scale=alt.Scale(nice=False)),
        # Of one width, so that panels below each other begin at one place.
        y=alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=5, format="~r", minExtent=46, maxExtent=46)),
        color=alt.Color("rank:N", title=None, scale=alt.Scale(domain=names, range=colours), legend=legend),
        tooltip=[
            alt.Tooltip("grouping:N"),
            alt.Tooltip("worker:N"),
            alt.Tooltip("time_s:Q", format=".4~g"),
            alt.Tooltip("value:Q", title="backlog", format=",.4~g"),
            alt.Tooltip("unit:N"),
        ],
    )
    is_band = f"datum.rank === '{_OTHERS}'"
    line = base.transform_filter(f"!({is_band})").mark_line(opacity=0.9, strokeWidth=1.5, interpolate="step-before")
    band = base.transform_filter(is_band).mark_area(opacity=0.35, interpolate="step-before").encode(y2="least:Q")
    found = faceted(alt.layer(band, line), frame)
    return found.resolve_scale(y="independent") if isinstance(found, alt.FacetChart) else found


def caption(frame: pl.DataFrame) -> str:
    """Name for each run who is furthest behind and when, and how long it took to catch up."""
    sentences = []
    steps: list[float] = []
    for part in frame.partition_by("grouping", maintain_order=True):
        tuples, seconds = (part.filter(pl.col("unit") == unit) for unit in _KINDS.values())
        steps.append(float(part["time_s"].min()))  # type: ignore[arg-type]
        most, longest = (_largest(one) for one in (tuples, seconds))
        sentences.append(
            f"{most['grouping']}: worker {most['worker']} has the most tuples not finished, {number(most['value'])}, "
            f"{number(most['time_s'])} s after the start; worker {longest['worker']} is furthest behind, "
            f"{number(longest['value'])} s."
        )
        if part["drains"][0]:
            sentences.append(part["drains"][0])
    every = " to ".join(dict.fromkeys(number(step) for step in (min(steps), max(steps))))
    sentences.append(f"Seen every {every} s; in between a worker can be behind by at most that much more.")
    return " ".join(sentences)


def _largest(rows: pl.DataFrame) -> dict[str, Any]:
    """Return the row with the largest backlog, of equal ones the first."""
    ordered = rows.sort("value", "time_s", "worker", descending=[True, False, False], nulls_last=True)
    return ordered.row(0, named=True)
