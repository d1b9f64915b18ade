"""Imbalance at the end of the run against the number of workers."""

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import curves_of

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Imbalance against workers"
SECTION: Section = "groupings"
ORDER = 10

frame, draw, caption = curves_of(
    "imbalance",
    "imbalance",
    name="imbalance",
    axis="imbalance (share of tuples)",
    about="What the most loaded worker got beyond the mean, as a share of all tuples.",
)
