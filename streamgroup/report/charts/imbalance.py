"""Imbalance at the end of the run against the number of workers."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.over_workers import describe_spread, draw_curves, over_seeds
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Imbalance against workers"
SECTION: Section = "groupings"
ORDER = 10

_WHAT = "What the most loaded worker got beyond the mean, as a share of all tuples."
_NAME = "imbalance"


def frame(material: ReportData) -> pl.DataFrame:
    """Return `imbalance`: see `over_seeds`."""
    return over_seeds(material.charted, {"imbalance": "imbalance"})


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each grouping."""
    return draw_curves(frame, look, "imbalance (share of tuples)")


def caption(frame: pl.DataFrame) -> str:
    """Name the least and the most."""
    return f"{_WHAT} {describe_spread(frame, _NAME)}"
