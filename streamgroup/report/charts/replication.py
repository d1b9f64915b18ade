"""Replication factor against the number of workers."""

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_workers import curves_of

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "Replication against workers"
SECTION: Section = "groupings"
ORDER = 40

frame, draw, caption = curves_of(
    "replication_factor",
    "replication",
    name="replication",
    axis="replication (workers a key)",
    about="Replicas: on how many workers a key lives, on average over keys.",
)
