"""One of four workers crashes and another one joins: what it had is lost, or delivered again."""

from pathlib import Path

import altair as alt
import polars as pl

from pictures.common import BLUE, GREY, ON_TOP, ORANGE, RED, WIDTH, assignments, streamgroup


def draw(directory: Path) -> alt.TopLevelMixin:
    streamgroup("synth zipf --tuples 1500 --keys 500 --exponent 0.5 -o mild.trace", directory)
    options = "--arrivals poisson-utilization=0.85 --service-distribution exponential --crash 35%:2 --join 60% --log"
    streamgroup(f"replay mild.trace -g pkg -n 4 {options} -o runs/lost", directory)
    streamgroup(f"replay mild.trace -g pkg -n 4 {options} --redeliver -o runs/again", directory)
    lost, again = (assignments(directory / "runs" / name) for name in ("lost", "again"))
    # Up to the crash the two runs are the same, so what one loses the other delivers again.
    gone = lost.filter(pl.col("latency").is_null()).select("seq")
    redelivered = again.join(gone, on="seq", how="semi")
    once = again.join(gone, on="seq", how="anti")
    titles = ["without --redeliver", "with --redeliver"]
    rows = pl.concat(
        [
            lost.drop_nulls().with_columns(what=pl.lit("finished"), run=pl.lit(titles[0])),
            lost.join(gone, on="seq", how="semi").with_columns(
                latency=pl.lit(0.0), what=pl.lit("lost"), run=pl.lit(titles[0])
            ),
            once.with_columns(what=pl.lit("finished"), run=pl.lit(titles[1])),
            redelivered.with_columns(what=pl.lit("delivered again"), run=pl.lit(titles[1])),
        ]
    ).select("seq", "arrival", "latency", "what", "run")
    moments = pl.DataFrame({"at": [lost["arrival"][i] for i in (525, 900)], "what": ["crash", "join"]})
    kinds = ["finished", "lost", "delivered again"]
    points = (
        alt.Chart()
        .mark_point(filled=True, opacity=0.9, aria=False)
        .encode(
            x=alt.X("arrival:Q", title="arrival (ms)").scale(nice=False),
            y=alt.Y("latency:Q", title="latency (ms)"),
            color=alt.Color("what:N", title=None, legend=ON_TOP).scale(domain=kinds, range=[BLUE, RED, ORANGE]),
            shape=alt.Shape("what:N", title=None).scale(domain=kinds, range=["square", "cross", "diamond"]),
            size=alt.Size("what:N", title=None).scale(domain=kinds, range=[8, 60, 60]),
        )
        .properties(width=WIDTH, height=170)
    )
    marked = alt.Chart(moments).encode(x="at:Q")
    rules = marked.mark_rule(color=GREY, strokeDash=[4, 3])
    labels = marked.mark_text(align="left", baseline="top", dx=4, dy=4).encode(y=alt.value(0), text="what:N")
    return alt.layer(rules, points, labels, data=rows).facet(row=alt.Row("run:N", title=None).sort(titles))
