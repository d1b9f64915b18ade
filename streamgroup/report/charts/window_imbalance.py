"""Imbalance of the worst window against the number of workers."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.over_workers import describe_spread, draw_curves, over_seeds
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Worst window against workers"
SECTION: Section = "groupings"
ORDER = 20

_WHAT = "Imbalance within the worst measuring window: what the total hides when a stream changes."
_NAME = "imbalance in its worst window"


def frame(material: ReportData) -> pl.DataFrame:
    """Return `window_imbalance_max`: see `over_seeds`."""
    return over_seeds(material.charted, {"window_imbalance_max": "worst window"})


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each grouping."""
    return draw_curves(frame, look, "worst imbalance of a window")


def caption(frame: pl.DataFrame) -> str:
    """Name the least and the most."""
    return f"{_WHAT} {describe_spread(frame, _NAME)}"
