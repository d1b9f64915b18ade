"""Latency against the number of workers: median, 99th percentile and maximum."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import describe_spread, draw_curves, over_seeds
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Latency against workers"
SECTION: Section = "groupings"
ORDER = 30

_METRICS = {"latency_p50_ms": "p50", "latency_p99_ms": "p99", "latency_max_ms": "max"}


def frame(data: ReportData) -> pl.DataFrame:
    """Return the latencies in ms, a panel each: see `over_seeds`."""
    return over_seeds(data.charted, _METRICS, data.x)


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each grouping, and a panel for each of p50, p99 and max."""
    ordered = frame.sort("condition", maintain_order=True)
    return draw_curves(ordered, look, "latency (ms)")


def caption(frame: pl.DataFrame) -> str:
    """Name the least and the most of p99."""
    words = describe_spread(frame.filter(pl.col("what") == "p99"), "p99 latency", " ms")
    return f"From arrival to finish, over all tuples of a run: the median, the 99th percentile and the maximum. {words}"
