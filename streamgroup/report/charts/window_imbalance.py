"""Imbalance of the worst window against the number of workers."""

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import curves_of

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Worst window against workers"
SECTION: Section = "groupings"
ORDER = 20

frame, draw, caption = curves_of(
    "window_imbalance_max",
    "worst window",
    name="imbalance in its worst window",
    axis="worst imbalance of a window",
    about="Imbalance within the worst measuring window: what the total hides when a stream changes.",
)
