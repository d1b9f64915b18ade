"""Throughput limit against the number of workers."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.over_workers import describe_spread, draw_curves, over_seeds
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "What the most loaded worker sustains, against workers"
SECTION: Section = "groupings"
ORDER = 50

_WHAT = "Tuples a second at which the most loaded worker would be busy all the time: more cannot be sustained."
_NAME = "sustainable rate"

_WHAT = "Tuples a second at which the most loaded worker would be busy all the time: more cannot be sustained."


def frame(material: ReportData) -> pl.DataFrame:
    """Return `throughput_limit_tps`: see `over_seeds`."""
    return over_seeds(material.charted, {"throughput_limit_tps": "capacity"})


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each grouping."""
    return draw_curves(frame, look, "sustained (tuples/s)")


def caption(frame: pl.DataFrame) -> str:
    """Name the least and the most."""
    return f"{_WHAT} {describe_spread(frame, _NAME)}"
