"""Throughput limit against the number of workers."""

import altair as alt
import polars as pl

from streamgroup.report.charts.protocol import Section
from streamgroup.report.curves import draw_curves, over_seeds, spread_in_words
from streamgroup.report.material import Material
from streamgroup.report.theme import Look

__all__ = ["ORDER", "SECTION", "TITLE", "caption", "draw", "frame"]

TITLE = "What the fullest worker sustains, against workers"
SECTION: Section = "groupings"
ORDER = 50

_WHAT = "Tuples a second at which the fullest worker would be busy all the time: more cannot be sustained."
_NAME = "sustainable rate"

_WHAT = "Tuples a second at which the fullest worker would be busy all the time: more cannot be sustained."


def frame(material: Material) -> pl.DataFrame:
    """Give `throughput_limit_tps`: see `over_seeds`."""
    return over_seeds(material.charted, {"throughput_limit_tps": "capacity"})


def draw(frame: pl.DataFrame, look: Look) -> alt.TopLevelMixin:
    """Draw a line for each grouping."""
    return draw_curves(frame, look, "sustained (tuples/s)")


def caption(frame: pl.DataFrame) -> str:
    """Name the least and the most."""
    return f"{_WHAT} {spread_in_words(frame, _NAME)}"
