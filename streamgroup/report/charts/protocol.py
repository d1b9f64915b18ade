"""What a chart is: a module, found by its file name, that makes a table of numbers and draws it."""

from collections.abc import Callable
from typing import Any, Protocol

import altair as alt
import polars as pl

__all__ = ["PACKAGE", "Chart"]

PACKAGE = "streamgroup.report.charts"


class Chart(Protocol):
    """A module that holds a chart; its file name is the name for `plot`.

    `TITLE` says what it shows; `frame(material)` gives every number of it, a row a mark, with names and units that
    stand alone as CSV, and no row where there is nothing to show; `draw(frame, look)` is the picture of just that
    frame; `caption(frame)` says in a sentence or two what is to be seen, with figures from the frame.
    """

    __name__: str
    TITLE: str
    frame: Callable[[Any], pl.DataFrame]
    draw: Callable[[pl.DataFrame, Any], alt.TopLevelMixin]
    caption: Callable[[pl.DataFrame], str]
