"""Imbalance of each window over time."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.over_time import describe_worst, draw_over_time, over_time
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Imbalance over time"
SECTION: Section = "time"
ORDER = 20


def frame(material: ReportData) -> pl.DataFrame:
    """Return `window_imbalance` of the windows: see `over_time`."""
    return over_time(material, "window_imbalance")


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each grouping."""
    return draw_over_time(frame, look, "imbalance (share of tuples)")


def caption(frame: pl.DataFrame) -> str:
    """Name the worst window."""
    return describe_worst(frame, "an imbalance of")
