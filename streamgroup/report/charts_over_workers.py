"""Charts of a metric against the number of workers: means over seeds, with bands from least to largest."""

from collections.abc import Callable, Mapping

import altair as alt
import polars as pl

from streamgroup.report.formatting import number
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import HEIGHT, WIDTH, Look
from streamgroup.report.x_axis import WORKERS

__all__ = [
    "CURVES", "PANEL_HEIGHT", "curves_of", "describe_spread", "draw_curves", "faceted", "over_seeds", "paneled",
    "title_of", "with_points",
]  # fmt: skip

PANEL_HEIGHT = 230
# The charts of curves, which can be over something else than workers.
CURVES = ("imbalance", "window_imbalance", "replication", "latency")

# `frame`, `draw` and `caption` of a chart, see `charts.protocol`.
ChartFunctions = tuple[
    Callable[[ReportData], pl.DataFrame],
    Callable[[pl.DataFrame, Look], alt.TopLevelMixin],
    Callable[[pl.DataFrame], str],
]


def curves_of(metric: str, label: str, *, name: str, axis: str, about: str) -> ChartFunctions:
    """Return `frame`, `draw` and `caption` of a chart of one metric.

    `label` is the metric in the column `what`, `name` that of the caption, which begins with `about`.
    """

    def frame(data: ReportData) -> pl.DataFrame:
        return over_seeds(data.charted, {metric: label}, data.x)

    def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
        return draw_curves(frame, look, axis)

    def caption(frame: pl.DataFrame) -> str:
        return f"{about} {describe_spread(frame, name)}"

    return frame, draw, caption


def over_seeds(runs: pl.DataFrame, metrics: Mapping[str, str], x: str = WORKERS) -> pl.DataFrame:
    """Return `mean`, `min` and `max` of metrics over runs that differ in nothing but their seeds.

    `metrics` maps a metric to what a panel calls it. One row for each `panel`, `condition`, `what`, `grouping` and
    `x` (the workers), with how many `runs` have the metric; no row where none has, and none at all for a single run.
    """
    keys = ["condition", "grouping", x]
    frames = [
        runs.filter(pl.col(metric).is_not_null())
        .group_by(keys)
        .agg(
            pl.len().cast(pl.Int64).alias("runs"),
            pl.col(metric).mean().cast(pl.Float64).alias("mean"),
            pl.col(metric).min().cast(pl.Float64).alias("min"),
            pl.col(metric).max().cast(pl.Float64).alias("max"),
        )
        .sort(keys)
        .select(pl.lit(what).alias("what"), pl.all())
        for metric, what in metrics.items()
    ]
    frame = paneled(pl.concat(frames))
    return frame if frame.select(keys).unique().height > 1 else frame.clear()


def paneled(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `panel` as first column: what the panels of a chart differ in, of `condition` and `what` (if there)."""
    names = [name for name in ("condition", "what") if name in frame.columns and frame[name].n_unique() > 1]
    panel = pl.concat_str(names, separator=" · ") if names else pl.lit("")
    # The order of their kinds has become that of the rows.
    texts = [pl.col(name).cast(pl.String) for name in ("condition", "grouping") if name in frame.columns]
    return frame.select(panel.cast(pl.String).alias("panel"), pl.all()).with_columns(texts)


def faceted(
    chart: alt.LayerChart | alt.FacetChart | alt.Chart,
    frame: pl.DataFrame,
    height: int = HEIGHT,
    *,
    apart: bool = False,
) -> alt.TopLevelMixin:
    """Return the chart as one view, or a view for each `panel`, in the order of the frame.

    Each view has an x axis of its own, with `apart` also a scale.
    """
    assert not isinstance(chart, alt.FacetChart)
    panels = frame["panel"].unique(maintain_order=True).to_list()
    if len(panels) == 1:
        return chart.properties(data=frame, width=WIDTH, height=height)
    inner = chart.properties(width=WIDTH // 2, height=min(height, PANEL_HEIGHT))
    facets = inner.facet(facet=alt.Facet("panel:N", title=None, sort=panels), columns=2, data=frame)
    # One axis for a column would stand below a panel that is not there, and apart from those further up.
    made: alt.FacetChart = facets.resolve_axis(x="independent")
    return made.resolve_scale(x="independent") if apart else made


def with_points(lines: alt.Chart, base: alt.Chart, frame: pl.DataFrame) -> alt.LayerChart:
    """Add points where a grouping has one value in its panel: a line of it is not to be seen."""
    layers = [lines]
    if frame.select((pl.len().over("panel", "grouping") == 1).any()).item():
        counted = base.transform_joinaggregate(rows_of_line="count()", groupby=["panel", "grouping"])
        layers.append(counted.transform_filter("datum.rows_of_line == 1").mark_point(opacity=1))
    return alt.LayerChart(layer=layers)


def draw_curves(frame: pl.DataFrame, look: Look, title: str, *, percent: bool = False) -> alt.TopLevelMixin:
    """Draw a frame of `over_seeds`: lines over the workers, or points beside each other for one number of workers."""
    names, over = frame["grouping"].to_list(), _x_of(frame)
    axis = look.axis([*frame["min"], *frame["max"]], percent=percent)
    tooltip = [
        alt.Tooltip("grouping:N"),
        alt.Tooltip(f"{over}:Q"),
        alt.Tooltip("mean:Q", format=".4~g"),
        alt.Tooltip("min:Q", format=".4~g"),
        alt.Tooltip("max:Q", format=".4~g"),
        alt.Tooltip("runs:Q"),
    ]
    counts = sorted(frame[over].unique().to_list())
    if len(counts) == 1:
        y = alt.Y("grouping:N", title=None, sort=alt.EncodingSortField("mean", op="max"), axis=alt.Axis(labelLimit=160))
        base = alt.Chart().encode(y=y, color=look.colour(names, legend=False), tooltip=tooltip)
        span = base.mark_rule(strokeWidth=3, opacity=0.5).encode(
            x=alt.X("min:Q", title=title, **axis), x2=alt.X2("max:Q")
        )
        dots = base.mark_point(size=90, opacity=1).encode(x=alt.X("mean:Q", title=title, **axis))
        return faceted(alt.layer(span, dots), frame, max(90, 26 * len(set(names))))
    if over == WORKERS:
        scale = alt.Scale(type="log", base=2, nice=False, padding=8)
        x = alt.X("workers:Q", title="workers", scale=scale, axis=alt.Axis(values=counts, format="d", grid=False))
    else:
        scale = alt.Scale(zero=False, nice=False, padding=8)
        x = alt.X(f"{over}:Q", title=over.replace("_", " "), scale=scale, axis=alt.Axis(grid=False))
    base = alt.Chart().encode(x=x, color=look.colour(names), tooltip=tooltip)
    layers = [
        base.mark_line(opacity=0.9).encode(y=alt.Y("mean:Q", title=title, **axis), strokeDash=look.dash(names)),
        base.mark_point(opacity=1).encode(y=alt.Y("mean:Q", title=title, **axis), shape=look.shape(names)),
    ]
    if (frame["runs"] > 1).any():
        band = base.mark_area(opacity=0.15).encode(y=alt.Y("min:Q", title=title, **axis), y2=alt.Y2("max:Q"))
        layers.insert(0, band)
    return faceted(alt.layer(*layers), frame)


def title_of(title: str, frame: pl.DataFrame) -> str:
    """Return the title of a chart over workers as its frame has them: one number of them, or something else."""
    what, found, _ = title.partition(f" against {WORKERS}")
    if not found or "grouping" not in frame.columns:
        return title
    over = _x_of(frame)
    values, name = frame[over].unique().to_list(), over.replace("_", " ")
    if len(values) > 1:
        return f"{what} against {name}"
    return f"{what.rstrip(',')} {f'on {values[0]} workers' if over == WORKERS else f'at {name} {values[0]:g}'}"


def _x_of(frame: pl.DataFrame) -> str:
    """Return what a frame of `over_seeds` is over: the column after the grouping."""
    return frame.columns[frame.columns.index("grouping") + 1]


def describe_spread(frame: pl.DataFrame, what: str, unit: str = "") -> str:
    """Describe of a frame of `over_seeds` which grouping has the least and which the most, on the most workers."""
    sentences, over = [], _x_of(frame)
    for panel in frame.partition_by("panel", maintain_order=True)[:4]:
        most = max(panel[over].to_list())
        at = panel.filter(pl.col(over) == most).sort("mean", "grouping").to_dicts()
        where = f"on {most} workers" if over == WORKERS else f"at {over.replace('_', ' ')} {most:g}"
        place = f"{at[0]['panel']}: {where}" if at[0]["panel"] else where.capitalize()
        least, worst = at[0], at[-1]
        sentence = f"{place} {least['grouping']} has the least {what}, {_value(least, unit)}"
        if len(at) > 1:
            sentence += f", and {worst['grouping']} the most, {_value(worst, unit)}"
        sentences.append(f"{sentence}.")
    if (frame["runs"] > 1).any():
        marks = (
            "Lines are means over seeds, bands" if frame[over].n_unique() > 1 else "Points are means over seeds, bars"
        )
        sentences.append(f"{marks} reach from the least to the largest of them.")
        alone = frame.group_by("grouping").agg(pl.col("runs").max() == 1).filter("runs")["grouping"].sort().to_list()
        if alone:
            sentences.append(f"One run only, so without a spread: {', '.join(alone)}.")
    return " ".join(sentences)


def _value(row: Mapping[str, float], unit: str) -> str:
    text = f"{number(row['mean'])}{unit}"
    most = f"{number(row['max'])}{unit}"
    return text if most == text else f"{text} (at most {most})"
