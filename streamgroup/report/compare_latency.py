"""The latency distributions of two runs in one picture, as of a replay and of a run in an engine."""

from collections.abc import Callable
from pathlib import Path

import altair as alt
import polars as pl

from streamgroup.base.output_formats import render
from streamgroup.report.render_chart import png, svg
from streamgroup.report.theme import HEIGHT, WIDTH, Look
from streamgroup.study.read_run import read_tables

__all__ = ["two_latencies"]


def two_latencies(old: Path, new: Path) -> dict[str, Callable[[], bytes]]:
    """Return what makes the files of a chart with a line for each run, by ending: `.svg`, `.png`, and `.csv` with its
    numbers, the share of tuples with at least a latency.

    UsageError for a path that is no run.
    """
    parts = []
    for side, path in (("OLD", old), ("NEW", new)):
        tables, record = read_tables(path)
        clock = "measured" if record.get("clock") == "wall" else "simulated"
        name = f"{side}: {tables['summary']['grouping'][0].as_py()}, {clock}"
        counted = pl.DataFrame(pl.from_arrow(tables["latency"])).sort("at_least_ms")
        share = pl.col("tuples").reverse().cum_sum().reverse() / pl.col("tuples").sum()
        parts.append(counted.select(pl.lit(name).alias("run"), "at_least_ms", share.alias("share")))
    frame = pl.concat(parts)
    look = Look("light", tuple(frame["run"].unique(maintain_order=True)))
    times, shares = look.axis(frame["at_least_ms"].to_list()), look.axis(frame["share"].to_list(), percent=True)
    lines = (
        alt.Chart(frame, width=WIDTH, height=HEIGHT)
        .mark_line(interpolate="step-before", opacity=0.9)
        .encode(
            x=alt.X("at_least_ms:Q", title="latency (ms)", **times),
            y=alt.Y("share:Q", title="tuples that took at least so long", **shares),
            color=alt.Color("run:N", title=None, sort=list(look.groupings)),
            strokeDash=alt.StrokeDash("run:N", sort=list(look.groupings), legend=None),
        )
    )
    with alt.data_transformers.enable("default", max_rows=None):
        spec = lines.to_dict(validate=False)
    spec.pop("config", None)
    return {
        ".svg": lambda: svg(spec, look).encode(),
        ".png": lambda: png(spec, look),
        ".csv": lambda: render(frame.to_dicts(), "csv", columns=frame.columns).encode(),
    }
