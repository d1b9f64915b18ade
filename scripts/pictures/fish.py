"""Latency over time where other keys become hot half way."""

import subprocess
import sys
from pathlib import Path

import altair as alt
import polars as pl

from pictures.common import BLUE, GREY, ORANGE, RED, WIDTH, colour, streamgroup, windows

GROUPINGS = ["pkg", "d_choices", "w_choices", "fish"]
# Also in docs/groupings/fish.md.
SHIFT = """awk -F, -v OFS=, 'NR > 500001 { $2 = "k" 9999 - substr($2, 2) } 1' zipf.csv > shift.csv"""


def draw(directory: Path) -> alt.TopLevelMixin:
    streamgroup("synth zipf --tuples 1000000 -o zipf.trace", directory)
    streamgroup("export zipf.trace --to csv -o zipf.csv", directory)
    print(SHIFT, file=sys.stderr)
    subprocess.run(["sh", "-c", SHIFT], cwd=directory, check=True)
    streamgroup("ingest csv shift.csv --time timestamp --key key --time-format us -o shift.trace", directory)
    found = []
    for grouping in GROUPINGS:
        line = f"replay shift.trace -g {grouping} -n 50 --arrivals utilization=0.8 -o runs/{grouping}"
        streamgroup(line, directory)
        rows = windows(directory / "runs" / grouping)
        found.append(rows.select("start_s", grouping=pl.lit(grouping), latency="latency_p99_ms"))
    shift = 0.5 * 1000000 / 40000
    lines = (
        alt.Chart(pl.concat(found))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("start_s:Q", title="arrival (s)").scale(nice=False),
            y=alt.Y(
                "latency:Q",
                title="99th percentile of latency (ms)",
                axis=alt.Axis(values=[1, 10, 100, 1000, 10000, 100000], format="~s"),
            ).scale(type="log", domain=[1, 100000], nice=False),
            color=colour(GROUPINGS, [GREY, ORANGE, BLUE, RED]),
        )
    )
    marked = alt.Chart(pl.DataFrame({"at": [shift]})).encode(x="at:Q")
    rule = marked.mark_rule(color="#222222", strokeDash=[4, 3])
    label = marked.mark_text(align="left", baseline="top", dx=6, dy=6, text="other keys are hot").encode(y=alt.value(0))
    return (rule + lines + label).properties(width=WIDTH, height=260)
