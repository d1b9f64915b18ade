"""The 99th percentile of latency of each window over time."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.course import draw_course, over_time, worst_in_words
from streamgroup.report.material import Material
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "p99 latency over time"
SECTION: Section = "time"
ORDER = 30


def frame(material: Material) -> pl.DataFrame:
    """Give `latency_p99_ms` of the windows: see `over_time`."""
    return over_time(material, "latency_p99_ms")


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each grouping."""
    return draw_course(frame, look, "p99 latency (ms)")


def caption(frame: pl.DataFrame) -> str:
    """Name the worst window."""
    return worst_in_words(frame, "a p99 latency of", " ms")
