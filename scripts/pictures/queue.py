"""Each tuple of three workers is a bar: first it waits, then it is served."""

from pathlib import Path

import altair as alt
import polars as pl

from pictures.common import BLUE, ON_TOP, ORANGE, WIDTH, assignments, streamgroup


def draw(directory: Path) -> alt.TopLevelMixin:
    streamgroup("synth zipf --tuples 36 --keys 12 --exponent 0.8 -o small.trace", directory)
    options = "--arrivals poisson-utilization=0.85 --slowdown 1,1,1.5 --log -o runs/queue"
    streamgroup(f"replay small.trace -g kg -n 3 {options}", directory)
    rows = assignments(directory / "runs" / "queue")
    waiting = rows.select("seq", "worker", what=pl.lit("waits"), begin="arrival", end="start")
    served = rows.select("seq", "worker", what=pl.lit("is served"), begin="start", end="finish")
    bars = (
        alt.Chart(pl.concat([waiting.filter(pl.col("begin") < pl.col("end")), served]).sort("seq", "begin"))
        .mark_bar(height={"band": 0.75})
        .encode(
            x=alt.X("begin:Q", title="time (ms)").scale(nice=False),
            x2="end:Q",
            y=alt.Y("seq:O", title="tuple", axis=alt.Axis(ticks=False, domain=False)),
            color=alt.Color("what:N", title=None, legend=ON_TOP).scale(
                domain=["waits", "is served"], range=[ORANGE, BLUE]
            ),
            row=alt.Row("worker:N", title=None, header=alt.Header(labelExpr="'worker ' + datum.value")),
        )
        .properties(width=WIDTH, height=alt.Step(11))
    )
    return bars.resolve_scale(y="independent")
