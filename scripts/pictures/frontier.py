"""What each grouping of the demo pays in replicas of keys for its 99th percentile of latency."""

from pathlib import Path

import altair as alt
import polars as pl

from pictures.common import BLUE, GREY, ORANGE, RED, metrics, streamgroup

RAW = Path(__file__).resolve().parents[2] / "traces/raw/twitter-cache-cluster52/cluster52-first105000.csv.zst"
# Each grouping with its colour and where its name stands: offsets in pixels and alignment.
GROUPINGS = {
    "kg": (RED, 12, -8, "left"),
    "dstream": (ORANGE, 8, -12, "left"),
    "pkg": (BLUE, 10, -11, "left"),
    "d_choices": (ORANGE, -12, 2, "right"),
    "w_choices": (ORANGE, 10, -9, "left"),
    "fish": (ORANGE, 10, 14, "left"),
    "posg": (GREY, 12, -12, "left"),
    "sg": (GREY, 0, 17, "center"),
}
KINDS = {RED: "by key", BLUE: "two choices", ORANGE: "hot-key detector", GREY: "round robin, estimates"}


def draw(directory: Path) -> alt.TopLevelMixin:
    streamgroup(f"ingest csv {RAW} --time time --key object --engine local -o requests.trace", directory)
    rows = []
    for name, (hue, *_) in GROUPINGS.items():
        found = metrics(f"requests.trace -g {name} -n 50 --sources 5 --arrivals utilization=0.8", directory)
        shown = {metric: found[metric] for metric in ("replication_factor", "latency_p99_ms")}
        rows.append({"grouping": name, "kind": KINDS[hue], **shown})
    ticks = [1, 3, 10, 30, 100, 300, 1000, 3000]
    x = alt.X("replication_factor:Q", title="replicas per key", axis=alt.Axis(values=[1, 1.5, 2, 2.5])).scale(
        domain=[0.9, 2.9], nice=False
    )
    y = alt.Y("latency_p99_ms:Q", title="p99 latency (ms)", axis=alt.Axis(values=ticks, format=",")).scale(
        type="log", domain=[2.5, 6000], nice=False
    )
    legend = alt.Legend(orient="top-right", symbolSize=110, labelFontSize=13)
    base = alt.Chart(pl.DataFrame(rows)).encode(x=x, y=y)
    line = base.mark_line(interpolate="step-after", color=GREY, strokeDash=[4, 3], strokeWidth=1.2)
    points = base.mark_point(filled=True, size=110, opacity=1).encode(
        color=alt.Color("kind:N", title=None, sort=list(KINDS.values()), legend=legend).scale(
            domain=list(KINDS.values()), range=list(KINDS)
        )
    )
    names = [
        base.transform_filter(alt.datum.grouping == name)
        .mark_text(dx=dx, dy=dy, align=align, fontSize=14)
        .encode(text="grouping:N")
        for name, (_, dx, dy, align) in GROUPINGS.items()
    ]
    return alt.layer(line, points, *names).properties(width=600, height=280)
