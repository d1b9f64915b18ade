"""The load of each worker over time, as a heat map."""

import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import faceted
from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Load of each worker over time"
SECTION: Section = "time"
ORDER = 10

_MOST_RUNS = 6
_MOST_WINDOWS = 50
_MOST_WORKERS = 64


def frame(data: ReportData) -> pl.DataFrame:
    """Return `load`, the tuples that a worker got within some windows over the mean of all workers.

    For up to 6 groupings of the first condition (the 3 with the least and the 3 with the most imbalance in their worst
    window), one run each; windows are merged to at most 50, workers to at most 64, the most loaded of them counting.
    `window`, which begins at `start_s`, and `worker` are the first of those put together, `windows_each` and
    `workers_each` how many they are; `end_s` is when the next begins.
    """
    runs = data.first_seeds
    ordered = runs.filter(pl.col("condition") == runs["condition"].min()).sort("window_imbalance_max", "grouping")
    if ordered.height > _MOST_RUNS:
        ordered = pl.concat([ordered.head(_MOST_RUNS // 2), ordered.tail(_MOST_RUNS // 2)])
    maps = [
        _map(data.table("loads", [row["run"]]), data.table("windows", [row["run"]]), row)
        for row in ordered.iter_rows(named=True)
    ]
    return pl.concat(maps) if maps else _map(_NONE, _TIMES, {"grouping": "", "condition": ""})


_NONE = pl.DataFrame(schema={"window": pl.Int64, "worker": pl.Int64, "tuples": pl.Int64})
_TIMES = pl.DataFrame(schema={"window": pl.Int64, "start_s": pl.Float64})


def _map(loads: pl.DataFrame, times: pl.DataFrame, run: Mapping[str, Any]) -> pl.DataFrame:
    number_of = loads["window"].n_unique()
    windows = max(1, -(-number_of // _MOST_WINDOWS))
    starts = _ends(times.select(pl.col("window").cast(pl.Int64), "start_s").sort("window"), windows)
    workers = max(1, -(-loads["worker"].n_unique() // _MOST_WORKERS))
    place = pl.col("window").rank("dense").cast(pl.Int64) - 1
    return (
        loads.with_columns((place // windows).alias("_bin"))
        .group_by("_bin", "worker")
        .agg(pl.col("window").min().cast(pl.Int64), pl.col("tuples").sum())
        .with_columns(
            (pl.col("tuples") / pl.col("tuples").mean().over("_bin")).fill_nan(None).alias("load"),
            (pl.col("worker").cast(pl.Int64) // workers * workers).alias("worker"),
        )
        .group_by("window", "worker")
        .agg(pl.col("tuples").max(), pl.col("load").max())
        .join(starts, "window", "left")
        .sort("window", "worker")
        .select(
            pl.lit(run["grouping"]).alias("panel"),
            pl.lit(run["condition"]).alias("condition"),
            pl.lit(run["grouping"]).alias("grouping"),
            "window", "start_s", "end_s", "worker", "tuples", "load",
            pl.lit(windows, pl.Int64).alias("windows_each"),
            pl.lit(workers, pl.Int64).alias("workers_each"),
        )
    )  # fmt: skip


def _ends(starts: pl.DataFrame, windows: int) -> pl.DataFrame:
    """Add `end_s`, when the `windows` windows from each on are over: not after empty ones that follow them.

    The last windows are as long as all others on average, one alone is a second.
    """
    windows_long = (pl.col("start_s").last() - pl.col("start_s").first()) / (pl.len() - 1)
    ahead, later = pl.col("window").shift(-windows), pl.col("start_s").shift(-windows)
    step = (later - pl.col("start_s")) * windows / (ahead - pl.col("window"))
    left = pl.min_horizontal(pl.lit(windows), pl.len() - pl.int_range(pl.len()))
    last = pl.when(pl.len() > 1).then(windows_long * left).otherwise(1.0)
    return starts.with_columns((pl.col("start_s") + pl.coalesce(step, last)).alias("end_s"))


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a map for each grouping, workers from below, time to the right; the scale reaches the largest load.

    Half of the colours above the mean are for what nearly all cells have: a few extreme ones must not fade the others.
    """
    top = max(2.0, float(frame["load"].max() or 0))  # type: ignore[arg-type]
    usual = min(max(1.5, float(frame["load"].quantile(0.98) or 0)), (1 + top) / 2)
    least, most, each = (int(value) for value in (*_range(frame["worker"]), frame["workers_each"].max()))  # type: ignore[arg-type]
    workers = alt.Scale(domain=[least - 0.5, most + each - 0.5], nice=False, zero=False)
    few = alt.Axis(tickMinStep=1, tickCount=6, grid=False, domain=False)
    times = alt.Axis(tickCount=6, grid=False, domain=False, format=".4~g")
    legend = alt.Legend(gradientLength=220, format=".2~f", values=_round_values(top))
    chart = (
        alt.Chart()
        .transform_calculate(below="datum.worker - 0.5", above="datum.worker + datum.workers_each - 0.5")
        .mark_rect()
        .encode(
            x=alt.X("start_s:Q", title="time since the start (s)", axis=times, scale=alt.Scale(nice=False, zero=False)),
            x2="end_s:Q",
            y=alt.Y("below:Q", title="worker", axis=few, scale=workers),
            y2="above:Q",
            color=alt.Color(
                "load:Q",
                title="load over the mean",
                scale=alt.Scale(domain=[0, 1, usual, top], range=look.balance, interpolate="rgb"),
                legend=legend,
            ),
            tooltip=[
                alt.Tooltip("grouping:N"),
                alt.Tooltip("window:O"),
                alt.Tooltip("start_s:Q", format=".4~g"),
                alt.Tooltip("worker:O"),
                alt.Tooltip("tuples:Q"),
                alt.Tooltip("load:Q", format=".3~f"),
            ],
        )
    )
    return faceted(chart, frame, apart=True)


def _range(values: pl.Series) -> tuple[Any, Any]:
    return values.min(), values.max()


def _round_values(top: float) -> list[float]:
    """Return round numbers from 0 to the end of the scale, and 1, the mean, where it is apart from them."""
    power = 10.0 ** math.floor(math.log10(top / 5))
    step = next(digit * power for digit in (1, 2, 5, 10) if top / (digit * power) <= 5)
    values = [place * step for place in range(int(top / step) + 1)]
    return sorted({*values, *([1.0] if min(abs(value - 1) for value in values) > top / 15 else [])})


def caption(frame: pl.DataFrame) -> str:
    """Describe which runs are shown and name the most loaded worker."""
    sentences = [f"Tuples of a worker over the mean of all workers in the same window ({frame['condition'][0]})."]
    windows, workers = max(frame["windows_each"].to_list()), max(frame["workers_each"].to_list())
    if windows > 1:
        sentences.append(f"A cell is up to {windows} windows.")
    if workers > 1:
        sentences.append(f"It shows the most loaded of {workers} neighbouring workers.")
    full = frame.sort("load", descending=True, nulls_last=True).unique("grouping", keep="first", maintain_order=True)
    peaks = [f"{row['grouping']} {number(row['load'])} times (worker {row['worker']})" for row in full.to_dicts()]
    sentences.append(f"The most loaded worker of any window got, over the mean: {', '.join(peaks)}.")
    return " ".join(sentences)
