"""The 99th percentile of latency of each window over time."""

from streamgroup.report.charts.protocol import Section
from streamgroup.report.charts_over_time import lines_of

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "p99 latency over time"
SECTION: Section = "time"
ORDER = 30

frame, draw, caption = lines_of({"latency_p99_ms": "p99"}, "a p99 latency of", axis="p99 latency (ms)", unit=" ms")
