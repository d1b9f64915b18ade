"""How far workers are behind over time, in tuples and in seconds."""

import json

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
_MOST_WORKERS = 5
_KINDS = {"backlog_tuples": "tuples", "backlog_s": "seconds"}


def frame(data: ReportData) -> pl.DataFrame:
    """Return `value`, the backlog of a worker at `time_s` in the `unit` of its panel: tuples, or seconds.

    For up to 4 groupings of the first condition, those with the most p99 latency first, one run each; the 5 workers
    that are furthest behind have a line each, of all others it is the largest. `drains` says how long it took to catch
    up after a crash or a slow phase. Runs of older versions, without the table, are left out.
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
    named = worst["worker"].head(_MOST_WORKERS).to_list()
    others = worst.height - len(named)
    is_named = pl.col("worker").is_in(named)
    label = pl.when(is_named).then(pl.format("worker {}", "worker")).otherwise(pl.lit(f"largest of {others} others"))
    return (
        lag.with_columns(label.alias("who"))
        .group_by("time_s", "who")
        .agg(pl.col("backlog_tuples").max().cast(pl.Float64), pl.col("backlog_s").max())
        .unpivot(index=["time_s", "who"], variable_name="unit")
        .with_columns(pl.col("unit").replace_strict(_KINDS))
        .with_columns((pl.concat_str(pl.lit(f"{grouping}: "), "unit") if several else pl.col("unit")).alias("panel"))
        .sort(pl.col("unit") != "tuples", "time_s", "who")
        .select(
            "panel", pl.lit(grouping).alias("grouping"), "unit", "time_s", "who", "value",
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
    """Draw a line for each worker, a panel for each unit."""
    names = frame["who"].unique().sort().to_list()
    lines = Look(look.theme, tuple(names))
    colours = [lines.colour_of(name) for name in names]
    chart = (
        alt.Chart()
        .mark_line(opacity=0.9, strokeWidth=1.5, interpolate="step-before")
        .encode(
            x=alt.X(
                "time_s:Q", title="time since the start (s)", axis=alt.Axis(grid=False), scale=alt.Scale(nice=False)
            ),
            y=alt.Y("value:Q", title="backlog"),
            color=alt.Color("who:N", title=None, scale=alt.Scale(domain=names, range=colours)),
            tooltip=[
                alt.Tooltip("grouping:N"),
                alt.Tooltip("who:N", title="worker"),
                alt.Tooltip("time_s:Q", format=".4~g"),
                alt.Tooltip("value:Q", title="backlog", format=",.4~g"),
                alt.Tooltip("unit:N"),
            ],
        )
    )
    found = faceted(chart, frame)
    return found.resolve_scale(y="independent") if isinstance(found, alt.FacetChart) else found


def caption(frame: pl.DataFrame) -> str:
    """Name for each run who is furthest behind and when, and how long it took to catch up."""
    sentences = []
    for part in frame.partition_by("grouping", maintain_order=True):
        tuples, seconds = (part.filter(pl.col("unit") == unit) for unit in _KINDS.values())
        most = tuples.sort("value", descending=True, maintain_order=True).row(0, named=True)
        longest = seconds.sort("value", descending=True, nulls_last=True, maintain_order=True).row(0, named=True)
        sentences.append(
            f"{most['grouping']}: {most['who']} has the most tuples not finished, {number(most['value'])}, "
            f"{number(most['time_s'])} s after the start; {longest['who']} is furthest behind, "
            f"{number(longest['value'])} s."
        )
        if part["drains"][0]:
            sentences.append(part["drains"][0])
    return " ".join(sentences)
