"""A report as one HTML page that works offline: numbers, pictures, and the program that draws them."""

import base64
import contextlib
import hashlib
import importlib.metadata
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import vl_convert
from jinja2 import Environment

from streamgroup.base.errors import StreamgroupError
from streamgroup.base.storage.atomic_files import write_files
from streamgroup.base.storage.cache_directory import cache_root
from streamgroup.base.version import VERSION
from streamgroup.metrics.metric_names import METRICS
from streamgroup.report import findings
from streamgroup.report.charts_over_workers import CURVES, title_of
from streamgroup.report.formatting import bare, number
from streamgroup.report.render_chart import Drawn, chart_names, png, specification, svg
from streamgroup.report.report_data import ReportData
from streamgroup.report.report_tables import all_runs, hot_keys, side_by_side, varying
from streamgroup.report.tables_in_page import PageData, as_script
from streamgroup.report.theme import THEMES, Look

__all__ = ["page"]

# Sections of charts: titles, and what links to them.
_SECTIONS = {
    "trace": {"title": "The trace at a glance", "anchor": "trace"},
    "groupings": {"title": "Groupings side by side", "anchor": "groupings"},
    "time": {"title": "Over time", "anchor": "time"},
}
# A picture for pages without scripts is SVG unless its chart has more rows, or it more bytes, than this.
_MOST_ROWS = 4000
_MOST_BYTES = 120_000
_END = r"<\/script"
_WIDE = {"load_map", "latency", "frontier"}


def page(data: ReportData, title: str | None = None, *, curves: ReportData | None = None) -> str:
    """Write the page, with a title of its own if none is given; the same runs give the same bytes.

    `curves`: the same runs over another `x`, for the charts of curves. DataError when a table of a run is damaged.
    """
    shown = {name: curves if curves is not None and name in CURVES else data for name in chart_names()}
    drawn = [found for name, of in shown.items() if (found := Drawn.of(name, of)) is not None]
    stored = PageData()
    charts: list[dict[str, Any]] = []
    figures: dict[str, list[dict[str, Any]]] = {name: [] for name in _SECTIONS}
    for one in drawn:
        looks = {theme: Look(theme, shown[one.name].groupings) for theme in THEMES}
        specs = {theme: specification(one, look) for theme, look in looks.items()}
        picture = _picture(one, specs["light"], looks["light"])
        names = {name: stored.add_rows(rows) for name, rows in specs["light"]["datasets"].items()}
        charts.append(
            {
                "name": one.name,
                "data": sorted(set(names.values())),
                "specs": {theme: _named(spec, names) for theme, spec in specs.items()},
            }
        )
        figures[one.chart.SECTION].append(_figure(one, stored.add(one.frame), picture))
    values = {
        "title": _title(data) if title is None else bare(title),
        "summary": _summary(data, stored),
        "failed": [f"{one.cell}: {one.error}" for one in data.failed],
        "sections": [{**_SECTIONS[name], "figures": found} for name, found in figures.items() if found],
        "tables": list(_tables(data, stored)),
        "version": VERSION,
    }
    content = {
        "tables": stored.tables,
        "charts": charts,
        "config": {theme: Look(theme, data.groupings).config() for theme in THEMES},
    }
    environment = Environment(autoescape=True, trim_blocks=True, keep_trailing_newline=True)
    environment.filters["number"] = number
    return environment.from_string(_asset("page.html")).render(
        **values, content=as_script(content), library=_library(), style=_asset("page.css"), script=_asset("page.js")
    )


def _named(spec: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Let a specification refer to the tables of the page instead of data of its own."""

    def renamed(part: Any) -> Any:
        if isinstance(part, dict):
            if set(part) == {"name"} and part["name"] in names:
                return {"name": names[part["name"]]}
            return {key: renamed(value) for key, value in part.items()}
        return [renamed(value) for value in part] if isinstance(part, list) else part

    found: dict[str, Any] = renamed({key: value for key, value in spec.items() if key != "datasets"})
    return found


def _picture(one: Drawn, spec: dict[str, Any], look: Look) -> str:
    """Draw a chart for browsers without scripts, as the address of an image."""
    drawing = svg(spec, look).encode() if one.frame.height <= _MOST_ROWS else b""
    kind, content = ("svg+xml", drawing) if 0 < len(drawing) <= _MOST_BYTES else ("png", png(spec, look, 1))
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _figure(one: Drawn, table: str, picture: str) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": title_of(one.chart.TITLE, one.frame),
        "caption": one.chart.caption(one.frame),
        "wide": one.name in _WIDE or ("panel" in one.frame.columns and one.frame["panel"].n_unique() > 1),
        "table": table,
        "picture": picture,
    }


def _summary(data: ReportData, stored: PageData) -> dict[str, Any] | None:
    if data.runs.is_empty():
        return None
    return {
        "compared": findings.compared(data),
        "several": data.runs["grouping"].n_unique() > 1,
        "verdicts": findings.verdicts(data),
        "caveats": findings.caveats(data),
        "table": stored.add(all_runs(data)),
    }


def _tables(data: ReportData, stored: PageData) -> Iterator[dict[str, Any]]:
    means = side_by_side(data)
    several = (means["runs"] > 1).any()
    titles = (
        ("means", "Means over seeds, each beside its maximum" if several else "Figures of each grouping", means),
        ("hot-keys", "The hottest keys, and how many workers each was sent to", hot_keys(data)),
        ("runs", "All runs", varying(all_runs(data))),
    )
    for name, title, frame in titles:
        if frame.height:
            columns = [(column, _heading(column), frame[column].dtype.is_numeric()) for column in frame.columns]
            yield {"name": name, "title": title, "columns": columns, "rows": frame.rows(), "table": stored.add(frame)}


def _heading(column: str) -> str:
    """Return a column as its heading, what is done with a metric after a comma."""
    metric, _, kind = column.rpartition("_")
    is_of_metric = metric in METRICS and column not in METRICS
    return f"{metric.replace('_', ' ')}, {kind}" if is_of_metric else column.replace("_", " ")


def _title(data: ReportData) -> str:
    if data.runs.is_empty():
        return "No run: every cell failed"
    traces = data.runs["trace"].unique(maintain_order=True).to_list()
    groupings = data.runs["grouping"].n_unique()
    what = data.runs["grouping"][0] if groupings == 1 else f"{groupings} groupings"
    on = ", ".join(traces[:3]) + (f" and {len(traces) - 3} more" if len(traces) > 3 else "")
    return f"{what} on {on}"


def _asset(name: str) -> str:
    return (resources.files("streamgroup.report") / "assets" / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Return the program that draws Vega-Lite, which comes with what draws it here."""
    # In a block of its own its names stay its own; within a string `\\/` is `/`.
    return f"{{{_bundle().replace('</script', _END)}}}"


def _bundle() -> str:
    """Bundle the program, or read it from the cache: bundling takes seconds."""
    name = f"vega-{importlib.metadata.version('vl-convert-python')}.js"
    with contextlib.suppress(OSError, ValueError):
        digest, _, known = (cache_root() / name).read_bytes().partition(b"\n")
        if hashlib.sha256(known).hexdigest().encode() == digest:
            return known.decode()
    made: str = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;")
    with contextlib.suppress(OSError, StreamgroupError):
        kept = cache_root() / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        content = made.encode()
        write_files({kept: hashlib.sha256(content).hexdigest().encode() + b"\n" + content}, overwrite=True)
    return made
