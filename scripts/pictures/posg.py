"""Mean latency where the cost of a tuple depends on its key, as few keys come to make up most of the stream."""

import subprocess
import sys
from pathlib import Path

import altair as alt
import polars as pl

from pictures.common import BLUE, GREY, ORANGE, WIDTH, colour, metrics, streamgroup

GROUPINGS = ["sg", "posg", "full_knowledge"]
EXPONENTS = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
# Also in docs/groupings/posg.md: 64 costs, from 1 to 64 ms, that have nothing to do with how often a key comes.
LINE = """BEGIN { print "key,cost" } { print "k" $1 "," 1000 * (1 + (37 * $1 + 28) % 64) }"""
COSTS = f"seq 0 4095 | awk '{LINE}' > costs.csv"


def draw(directory: Path) -> alt.TopLevelMixin:
    print(COSTS, file=sys.stderr)
    subprocess.run(["sh", "-c", COSTS], cwd=directory, check=True)
    rows = []
    for exponent in EXPONENTS:
        trace = f"zipf-{exponent}.trace"
        streamgroup(f"synth zipf --tuples 200000 --keys 4096 --exponent {exponent} -o {trace}", directory)
        for grouping in GROUPINGS:
            options = "-n 5 --sources 1 --key-cost costs.csv --arrivals utilization=0.95"
            found = metrics(f"{trace} -g {grouping} {options}", directory)
            rows.append({"exponent": exponent, "grouping": grouping, "latency": found["latency_mean_ms"]})
    lines = (
        alt.Chart(pl.DataFrame(rows))
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X("exponent:Q", title="Zipf exponent", axis=alt.Axis(values=EXPONENTS, grid=False)).scale(
                nice=False, zero=False
            ),
            y=alt.Y("latency:Q", title="mean latency (ms)").scale(zero=True),
            color=colour(GROUPINGS, [GREY, ORANGE, BLUE]),
        )
    )
    return lines.properties(width=WIDTH, height=260)
