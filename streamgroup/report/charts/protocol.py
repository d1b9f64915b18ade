"""What a chart is: a module, found by its file name, that makes a table of numbers and draws it."""

from collections.abc import Callable
from typing import Literal, Protocol

import altair as alt
import polars as pl

from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["PACKAGE", "Chart", "Section"]

PACKAGE = "streamgroup.report.charts"

Section = Literal["trace", "groupings", "time"]


class Chart(Protocol):
    """A module that holds a chart; its file name is the name for `plot`.

    `TITLE` says what it shows; `SECTION` and `ORDER` where it stands in a report. `frame(data)` gives every number
    of it, a row a mark, with names and units that stand alone as CSV, and no row where there is nothing to show;
    `draw(frame, look)` is the picture of just that frame, as one view, layers, or facets (a page makes it as wide as
    there is room); `caption(frame)` says in a sentence or two what is to be seen, with figures from the frame.
    """

    __name__: str
    TITLE: str
    SECTION: Section
    ORDER: int
    frame: Callable[[ReportData], pl.DataFrame]
    draw: Callable[[pl.DataFrame, Look], alt.TopLevelMixin]
    caption: Callable[[pl.DataFrame], str]
