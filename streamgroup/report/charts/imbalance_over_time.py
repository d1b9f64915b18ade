"""Imbalance over time: of each window, and of all tuples until its end (001, fig. 12)."""

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_time import lines_of

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Imbalance over time"
SECTION: Section = "time"
ORDER = 20

frame, draw, caption = lines_of(
    {"window_imbalance": "each window's own", "imbalance": "cumulative, I(t)"},
    "an imbalance of",
    axis="imbalance (share of tuples)",
)
