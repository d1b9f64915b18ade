"""Draws the figures of papers from the numbers of a reproduction, with the axes of the paper."""

from collections.abc import Mapping
from typing import Any

import altair as alt

from streamgroup.report.claims.page import FIGURES
from streamgroup.report.render_chart import svg
from streamgroup.report.theme import Look
from streamgroup.study.claims.reproduce import Drawing, Reproduction

__all__ = ["claims_figures"]

_WIDTH, _HEIGHT, _PANEL, _ACROSS = 520, 260, 220, 3


def claims_figures(made: Reproduction) -> dict[str, bytes]:
    """Return the figures as SVG, by path beside the page."""
    names = {finding.paper.number: finding.paper.name for finding in made.findings}
    return {
        f"{FIGURES}/{names[number]}-{drawing.name}.svg": _drawn(drawing).encode()
        for number, drawings in made.drawings.items()
        for drawing in drawings
    }


def _drawn(drawing: Drawing) -> str:
    figure, series = drawing.figure, drawing.series
    rows = [
        {**dict(zip(series.columns, map(_plain, key), strict=True)), "y": float(value)}
        for key, value in series.values.items()
        # A logarithmic axis has no place for zeros.
        if value > 0 or not figure.log_y
    ]
    # What no axis shows names a line together with the colour.
    shown = {figure.x, figure.panel}
    lines = [name for name in series.columns if name not in shown]
    for row in rows:
        row["grouping"] = ", ".join(str(row[name]) for name in lines) or "here"
    groupings = tuple(dict.fromkeys(row["grouping"] for row in rows))
    look = Look("light", groupings)
    named = all(isinstance(row[figure.x], str) for row in rows)
    x = alt.X(
        f"{figure.x}:{'N' if named else 'Q'}", title=figure.x_title,
        scale=alt.Undefined if named else alt.Scale(type="log" if figure.log_x else "linear", zero=False, nice=False),
    )  # fmt: skip
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            x=x,
            y=alt.Y("y:Q", title=figure.y_title, scale=alt.Scale(type="log" if figure.log_y else "linear")),
            color=look.colour(groupings, legend=len(groupings) > 1),
            strokeDash=look.dash(groupings),
        )
    )
    title = f"{figure.where}: {figure.title}"
    if figure.panel is not None and figure.panel in series.columns:
        whole: Any = chart.properties(width=_PANEL, height=_PANEL).facet(
            facet=alt.Facet(f"{figure.panel}:N", title=figure.panel), columns=_ACROSS, title=title
        )
    else:
        whole = chart.properties(width=_WIDTH, height=_HEIGHT, title=title)
    spec: Mapping[str, Any] = whole.to_dict(validate=False)
    return svg({key: value for key, value in spec.items() if key != "config"}, look)


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) else str(value)
