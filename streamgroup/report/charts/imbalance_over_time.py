"""Imbalance of each window over time."""

from streamgroup.report.charts.protocol import Section
from streamgroup.report.over_time import lines_of

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Imbalance over time"
SECTION: Section = "time"
ORDER = 20

frame, draw, caption = lines_of("window_imbalance", "an imbalance of", axis="imbalance (share of tuples)")
