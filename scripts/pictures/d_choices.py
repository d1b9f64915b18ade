"""What more choices for hot keys do to the balance, and what they cost in state, as workers are added."""

from pathlib import Path

import altair as alt
import polars as pl

from pictures.common import BLUE, ORANGE, RED, colour, metrics, streamgroup

GROUPINGS = ["pkg", "d_choices", "w_choices"]
WORKERS = [8, 16, 32, 64, 128]


def draw(directory: Path) -> alt.TopLevelMixin:
    streamgroup("synth zipf --tuples 1000000 --exponent 1.4 -o zipf.trace", directory)
    rows = []
    for workers in WORKERS:
        for grouping in GROUPINGS:
            found = metrics(f"zipf.trace -g {grouping} -n {workers} --arrivals utilization=0.8", directory)
            rows.append({"workers": workers, "grouping": grouping} | found)
    base = alt.Chart(pl.DataFrame(rows).select("workers", "grouping", "imbalance", "replication_factor")).mark_line(
        point=True, strokeWidth=2
    )
    x = alt.X("workers:Q", title="workers", axis=alt.Axis(values=WORKERS, grid=False)).scale(
        type="log", base=2, nice=False
    )
    hue = colour(GROUPINGS, [BLUE, ORANGE, RED])
    powers = alt.Axis(values=[10.0**e for e in range(-6, 1)], format="~e")
    balance = base.encode(
        x=x, y=alt.Y("imbalance:Q", title="imbalance", axis=powers).scale(type="log", domain=[1e-6, 1]), color=hue
    )
    state = base.encode(x=x, y=alt.Y("replication_factor:Q", title="replicas per key").scale(zero=True), color=hue)
    size = {"width": 275, "height": 230}
    return alt.hconcat(balance.properties(**size), state.properties(**size))
