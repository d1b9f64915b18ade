"""Imbalance of each window over time."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.course import draw_course, over_time, worst_in_words
from streamgroup.report.material import Material
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Imbalance over time"
SECTION: Section = "time"
ORDER = 20


def frame(material: Material) -> pl.DataFrame:
    """Give `window_imbalance` of the windows: see `over_time`."""
    return over_time(material, "window_imbalance")


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each grouping."""
    return draw_course(frame, look, "imbalance (share of tuples)")


def caption(frame: pl.DataFrame) -> str:
    """Name the worst window."""
    return worst_in_words(frame, "an imbalance of")
