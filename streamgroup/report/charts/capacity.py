"""Throughput limit against the number of workers."""

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import curves_of

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "What the most loaded worker sustains, against workers"
SECTION: Section = "groupings"
ORDER = 50

frame, draw, caption = curves_of(
    "throughput_limit_tps",
    "capacity",
    name="sustainable rate",
    axis="sustained (tuples/s)",
    about="Tuples a second at which the most loaded worker would be busy all the time: more cannot be sustained.",
)
