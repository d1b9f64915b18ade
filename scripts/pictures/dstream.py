"""What r does in dstream: which keys it finds, how even the load is, and what that costs in state."""

from pathlib import Path

import altair as alt
import polars as pl

from pictures.common import BLUE, GREY, ON_TOP, ORANGE, RED, metrics, streamgroup

RUNS = range(2, 12)


def _panel(rows: pl.DataFrame, names: dict[str, str], title: str, colours: list[str], top: float) -> alt.Chart:
    found = rows.rename(names).unpivot(index="r", on=list(names.values()))
    return (
        alt.Chart(found)
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X("r:Q", axis=alt.Axis(values=list(RUNS), grid=False)).scale(zero=False, nice=False),
            y=alt.Y("value:Q", title=title).scale(domain=[0, top]),
            color=alt.Color("variable:N", title=None, legend=ON_TOP).scale(domain=list(names.values()), range=colours),
        )
        .properties(width=275, height=230)
    )


def draw(directory: Path) -> alt.TopLevelMixin:
    streamgroup("synth zipf --tuples 500000 --exponent 1.4 -o zipf-1.4.trace", directory)
    found = [
        {"r": r} | metrics(f"zipf-1.4.trace -g dstream:r={r} -n 50 --arrivals utilization=0.8", directory) for r in RUNS
    ]
    rows = pl.DataFrame(found, infer_schema_length=None)
    hot = {"hot_precision": "precision", "hot_recall": "recall"}
    cost = {"peak_to_mean": "most loaded worker / mean", "replication_factor": "replicas per key"}
    left = _panel(rows.select("r", *hot), hot, "share of hot keys", [BLUE, ORANGE], 1)
    right = _panel(rows.select("r", *cost), cost, "ratio", [RED, GREY], 2.5)
    return alt.hconcat(left, right).resolve_scale(color="independent")
