"""One of ten workers takes three times as long for a while, and each grouping goes on sending to it or not."""

from pathlib import Path

import altair as alt
import polars as pl

from pictures.common import BLUE, GREY, ON_TOP, ORANGE, RED, WIDTH, streamgroup


def draw(directory: Path) -> alt.TopLevelMixin:
    streamgroup("synth zipf --tuples 20000 --keys 2000 --exponent 0.6 -o zipf.trace", directory)
    options = "--arrivals utilization=0.6 --slowdown-at 30%=3,1,1,1,1,1,1,1,1,1 --slowdown-at 60%=1"
    groupings = ["kg", "sg", "pkg", "oracle"]
    found = []
    for grouping in groupings:
        streamgroup(f"replay zipf.trace -g {grouping} -n 10 {options} -o runs/{grouping}", directory)
        windows = pl.read_parquet(directory / "runs" / grouping / "windows.parquet")
        found.append(windows.select("start_s", grouping=pl.lit(grouping), latency="latency_p99_ms"))
    rows = pl.concat(found)
    tuples_per_s = 6000
    times = [0.3 * 20000 / tuples_per_s, 0.6 * 20000 / tuples_per_s]
    while_slow = alt.Chart(pl.DataFrame({"from": times[:1], "to": times[1:]})).encode(x="from:Q", x2="to:Q")
    lines = (
        alt.Chart(rows)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("start_s:Q", title="arrival (s)").scale(nice=False),
            y=alt.Y(
                "latency:Q", title="99th percentile of latency (ms)", axis=alt.Axis(values=[1, 10, 100, 1000])
            ).scale(type="log", domain=[1, 2000], nice=False),
            color=alt.Color("grouping:N", title=None, legend=ON_TOP).scale(
                domain=groupings, range=[RED, BLUE, ORANGE, GREY]
            ),
            strokeDash=alt.StrokeDash("grouping:N", title=None, legend=ON_TOP).scale(
                domain=groupings, range=[[1, 0], [1, 0], [5, 4], [2, 2]]
            ),
        )
    )
    label = while_slow.mark_text(align="left", baseline="top", dx=6, dy=6).encode(
        y=alt.value(0), text=alt.value("worker 0 is three times as slow")
    )
    return (while_slow.mark_rect(color="#ececec") + lines + label).properties(width=WIDTH, height=260)
