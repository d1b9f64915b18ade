"""Replication factor against the number of workers."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.over_workers import describe_spread, draw_curves, over_seeds
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Replication against workers"
SECTION: Section = "groupings"
ORDER = 40

_WHAT = "Replicas: on how many workers a key lives, on average over keys."
_NAME = "replication"


def frame(material: ReportData) -> pl.DataFrame:
    """Return `replication_factor`: see `over_seeds`."""
    return over_seeds(material.charted, {"replication_factor": "replication"})


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each grouping."""
    return draw_curves(frame, look, "replication (workers a key)")


def caption(frame: pl.DataFrame) -> str:
    """Name the least and the most."""
    return f"{_WHAT} {describe_spread(frame, _NAME)}"
