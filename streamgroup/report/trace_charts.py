"""Charts of traces: a panel for each trace, and times since its first tuple in a fitting unit."""

from collections.abc import Callable

import altair as alt
import polars as pl

from streamgroup.report.charts_over_workers import faceted
from streamgroup.report.formatting import number
from streamgroup.report.report_data import MOST_CONDITIONS, ReportData
from streamgroup.report.trace_profile import TraceProfile

__all__ = ["draw_traces", "each_trace", "in_units", "moment", "time_axis"]

_UNITS = ((172_800, 86_400, "days"), (7_200, 3_600, "h"), (180, 60, "min"), (1, 1, "s"), (1e-3, 1e-3, "ms"))
_LEAST = (1e-6, "us")


def each_trace(data: ReportData, made: Callable[[TraceProfile], pl.DataFrame]) -> pl.DataFrame:
    """Make a frame of each trace and put them below one another, after `panel` (empty for one alone) and `trace`."""
    frames = [made(found).select(pl.lit(found.name).alias("trace"), pl.all()) for found in data.traces]
    shown = [frame for frame in frames if frame.height][: len(frames) if data.whole else MOST_CONDITIONS]
    if not shown:
        return frames[0].select(pl.lit("").alias("panel"), pl.all()) if frames else pl.DataFrame()
    panel = pl.col("trace") if len(shown) > 1 else pl.lit("")
    return pl.concat(shown).select(panel.alias("panel"), pl.all())


def _unit(seconds: float) -> tuple[float, str]:
    return next(((size, name) for least, size, name in _UNITS if seconds >= least), _LEAST)


def in_units(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `from` and `to`, times in a unit that fits the trace, `at` (`from_s` in words) and `unit`.

    Where traces need different units, each panel is named with its own.
    """
    spans = frame.group_by("trace", maintain_order=True).agg(pl.col("to_s").max()).rows()
    fits = [(trace, *_unit(span)) for trace, span in spans]
    sizes = pl.DataFrame(fits, {"trace": pl.String, "_size": pl.Float64, "unit": pl.String}, orient="row")
    panel = pl.format("{} (time in {})", "panel", "unit") if sizes["unit"].n_unique() > 1 else pl.col("panel")
    return (
        frame.join(sizes, "trace", maintain_order="left")
        .with_columns(
            (pl.col("from_s") / pl.col("_size")).alias("from"),
            (pl.col("to_s") / pl.col("_size")).alias("to"),
            pl.Series("at", [moment(seconds) for seconds in frame["from_s"]], pl.String),
            panel.alias("panel"),
        )
        .drop("_size")
    )


def moment(seconds: float) -> str:
    """Write a length of time in a unit that fits."""
    size, name = _unit(seconds)
    return f"{number(seconds / size)} {name}"


def time_axis(rows: pl.DataFrame) -> alt.X:
    """Return the x channel of times since the first tuple, for a frame of `in_units`."""
    units = rows["unit"].unique().to_list()
    title = "time since the first tuple" + (f" ({units[0]})" if len(units) == 1 else "")
    axis = alt.Axis(grid=False, tickCount=6)
    return alt.X("from:Q", title=title, axis=axis, scale=alt.Scale(nice=False))


def draw_traces(
    chart: alt.Chart | alt.LayerChart | alt.FacetChart, frame: pl.DataFrame, height: int
) -> alt.TopLevelMixin:
    """Return the chart as one view, or one for each trace with axes of its own."""
    found = faceted(chart, frame, height)
    return found.resolve_scale(x="independent", y="independent") if isinstance(found, alt.FacetChart) else found
