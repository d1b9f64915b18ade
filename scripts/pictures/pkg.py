"""The most loaded worker of kg, pkg and sg as workers are added, at two skews, with the bound of pkg."""

from pathlib import Path

import altair as alt
import polars as pl

from pictures.common import BLUE, GREY, RED, metrics, streamgroup

BOUND = "p1 n / 2"
GROUPINGS = ["kg", "pkg", "sg"]
WORKERS = [4, 8, 16, 32, 64, 128]


def draw(directory: Path) -> alt.TopLevelMixin:
    rows = []
    for exponent in (0.8, 1.4):
        trace = f"zipf-{exponent}.trace"
        streamgroup(f"synth zipf --tuples 200000 --exponent {exponent} -o {trace}", directory)
        p1 = pl.read_parquet(directory / trace / "keys" / "*.parquet")["count"].max() / 200000
        title = f"Zipf {exponent}, hottest key {p1:.1%}"
        for workers in WORKERS:
            # Half of the hottest key's tuples, as a multiple of the mean load.
            rows.append({"workers": workers, "peak": p1 * workers / 2, "grouping": BOUND, "skew": title})
            for grouping in GROUPINGS:
                found = metrics(f"{trace} -g {grouping} -n {workers} --arrivals utilization=0.8", directory)
                peak = found["peak_to_mean"]
                rows.append({"workers": workers, "peak": peak, "grouping": grouping, "skew": title})
    x = alt.X("workers:Q", title="workers", axis=alt.Axis(values=WORKERS, grid=False)).scale(
        type="log", base=2, nice=False
    )
    y = alt.Y("peak:Q", title="most loaded worker / mean", axis=alt.Axis(values=[1, 2, 5, 10, 20, 50])).scale(
        type="log", domain=[0.9, 60], nice=False
    )
    names = [*GROUPINGS, BOUND]
    legend = alt.Legend(orient="top", symbolType="stroke", symbolSize=400, symbolStrokeWidth=2)
    hue = alt.Color("grouping:N", title=None, sort=names).scale(domain=names, range=[RED, BLUE, GREY, "#222222"])
    dash = alt.StrokeDash("grouping:N", title=None, sort=names, legend=legend).scale(
        domain=names, range=[[1, 0], [1, 0], [1, 0], [2, 3]]
    )
    base = alt.Chart(pl.DataFrame(rows)).encode(x=x, y=y)
    lines = base.mark_line(strokeWidth=2, clip=True).encode(color=hue.legend(legend), strokeDash=dash)
    points = (
        base.transform_filter(f"datum.grouping != '{BOUND}'")
        .mark_point(filled=True, opacity=1)
        .encode(color=hue.legend(None))
    )
    panel = (lines + points).properties(width=290, height=230)
    return panel.facet(column=alt.Column("skew:N", title=None))
