"""The 99th percentile of latency of each window over time."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.over_time import describe_worst, draw_over_time, over_time
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "p99 latency over time"
SECTION: Section = "time"
ORDER = 30


def frame(material: ReportData) -> pl.DataFrame:
    """Return `latency_p99_ms` of the windows: see `over_time`."""
    return over_time(material, "latency_p99_ms")


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each grouping."""
    return draw_over_time(frame, look, "p99 latency (ms)")


def caption(frame: pl.DataFrame) -> str:
    """Name the worst window."""
    return describe_worst(frame, "a p99 latency of", " ms")
