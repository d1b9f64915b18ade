"""Renders a chart as a Vega-Lite specification, as SVG and as PNG, without the network."""

import re
import struct
import zlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import altair as alt
import polars as pl
import vl_convert

from streamgroup.base import modules_by_name
from streamgroup.report.charts.protocol import PACKAGE, Chart
from streamgroup.report.report_data import ReportData
from streamgroup.report.theme import Look

__all__ = ["Drawn", "chart_names", "load_chart", "png", "specification", "svg"]

# An id that carries a number, where it is given and where it is used.
_COUNTED = re.compile(r'(\bid="|="url\(#)(gradient_|clip)\d+')
_SECTIONS = ("trace", "groupings", "time")


@dataclass(frozen=True, eq=False)
class Drawn:
    """A chart with something to show: its name, its module and its numbers."""

    name: str
    chart: Chart
    frame: pl.DataFrame

    @classmethod
    def of(cls, name: str, data: ReportData) -> "Drawn | None":
        """Make the numbers of a chart; None where it has nothing to show."""
        chart = load_chart(name)
        if data.runs.is_empty() and chart.SECTION != "trace":
            return None
        frame = chart.frame(data)
        return None if frame.is_empty() else cls(name, chart, frame)


def load_chart(name: str) -> Chart:
    """Import a chart by its name, with `-` or `_`; UsageError for an unknown one, with the nearest."""
    module: ModuleType = modules_by_name.load(PACKAGE, name, "chart")
    return cast(Chart, module)


def chart_names() -> list[str]:
    """Name all charts in the order of a report."""
    charts = {name: load_chart(name) for name in modules_by_name.names(PACKAGE)}
    return sorted(charts, key=lambda name: (_SECTIONS.index(charts[name].SECTION), charts[name].ORDER, name))


def specification(drawn: Drawn, look: Look, *, validate: bool = False) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart, its data in `datasets`, without a configuration.

    `validate` holds it against the schema of Vega-Lite, which takes longer than all else.
    """
    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = drawn.chart.draw(drawn.frame, look).to_dict(validate=validate)
    # What the library puts there is of no theme.
    spec.pop("config", None)
    return spec


def svg(spec: dict[str, Any], look: Look) -> str:
    """Draw a specification as SVG."""
    return _numbered(vl_convert.vegalite_to_svg({**spec, "config": look.config()}))


def _numbered(text: str) -> str:
    """Number gradients and clip paths from 0 on: what draws them counts on from one picture to the next."""
    numbers: dict[str, int] = {}

    def renamed(found: re.Match[str]) -> str:
        name = found[0].removeprefix(found[1])
        return f"{found[1]}{found[2]}{numbers.setdefault(name, len(numbers))}"

    return _COUNTED.sub(renamed, text)


def png(spec: dict[str, Any], look: Look, scale: float = 2) -> bytes:
    """Draw a specification as PNG, `scale` pixels for each point of the SVG."""
    return _squeezed(vl_convert.vegalite_to_png({**spec, "config": look.config()}, scale=scale))


def _squeezed(data: bytes) -> bytes:
    """Compress the pixels of a PNG once more, to about a quarter: what draws it is in a hurry."""
    head: list[bytes] = [data[:8]]
    ends: list[bytes] = []
    pixels = b""
    at = 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        if kind == b"IDAT":
            pixels += content
        else:
            (ends if pixels else head).append(data[at : at + 12 + size])
        at += 12 + size
    packed = b"IDAT" + zlib.compress(zlib.decompress(pixels), 6)
    chunk = struct.pack(">I", len(packed) - 4) + packed + struct.pack(">I", zlib.crc32(packed))
    return b"".join([*head, chunk, *ends])
