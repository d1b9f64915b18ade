"""A report as one HTML page that works offline: numbers, pictures, and the program that draws them."""

import base64
import contextlib
import hashlib
import importlib.metadata
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import Any

import polars as pl
import vl_convert

import streamgroup
from streamgroup.base.errors import StreamgroupError
from streamgroup.base.storage.atomic_files import write_files
from streamgroup.base.storage.cache_directory import cache_root
from streamgroup.report import findings
from streamgroup.report.formatting import number
from streamgroup.report.page_data import PageData, as_script
from streamgroup.report.render import Drawn, chart_names, png, specification, svg
from streamgroup.report.report_data import ReportData
from streamgroup.report.tables import all_runs, hot_keys, side_by_side, varying
from streamgroup.report.theme import THEMES, Look

__all__ = ["page"]

_SECTIONS = {
    "trace": ("The trace at a glance", "trace"),
    "groupings": ("Groupings side by side", "groupings"),
    "time": ("Over time", "time"),
}
# Nothing but what is in the page: a browser that obeys this asks no network for anything.
_POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"
# A picture for pages without scripts is SVG unless its chart has more rows, or it more bytes, than this.
_MOST_ROWS = 4000
_MOST_BYTES = 120_000
_END = r"<\/script"
_WIDE = {"load_map", "latency", "frontier"}


def page(data: ReportData) -> str:
    """Write the page; the same runs give the same bytes. DataError when a table of a run is damaged."""
    drawn = [found for name in chart_names() if (found := Drawn.of(name, data)) is not None]
    stored = PageData()
    charts, figures = [], {name: [] for name in _SECTIONS}  # type: ignore[var-annotated]
    looks = {theme: Look(theme, data.groupings) for theme in THEMES}
    for one in drawn:
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
    body = [
        _head(data, stored),
        *(_charts(section, found) for section, found in figures.items() if found),
        _tables(data, stored),
    ]
    content = {
        "tables": stored.tables,
        "charts": charts,
        "config": {theme: look.config() for theme, look in looks.items()},
    }
    return _document(_title(data), "\n".join(body), content)


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
    """Draw a chart for those who run no scripts, as the address of an image."""
    drawing = svg(spec, look).encode() if one.frame.height <= _MOST_ROWS else b""
    kind, content = ("svg+xml", drawing) if 0 < len(drawing) <= _MOST_BYTES else ("png", png(spec, look, 1))
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _figure(one: Drawn, table: str, picture: str) -> str:
    name, title, said = one.name, escape(one.chart.TITLE), escape(one.chart.caption(one.frame))
    wide = " wide" if one.name in _WIDE or ("panel" in one.frame.columns and one.frame["panel"].n_unique() > 1) else ""
    return f"""<figure class="card{wide}" id="chart-{name}" data-chart="{name}">
<h3>{title}</h3>
<div class="view"></div>
<noscript><img src="{picture}" alt="{title}. {said}"></noscript>
<figcaption>{said}
<div class="tools">{_offer("csv", name, table)}{_offer("svg", name, table, name)}</div></figcaption>
</figure>"""


def _offer(kind: str, file: str, table: str, chart: str = "") -> str:
    what = escape(f"{file.replace('_', ' ')} as {kind.upper()}")
    return (
        f'<button type="button" hidden data-offer="{kind}" data-file="{file}" data-table="{table}" '
        f'data-chart="{chart}" aria-label="Save {what}">{kind.upper()}</button>'
    )


def _charts(section: str, figures: Sequence[str]) -> str:
    title, anchor = _SECTIONS[section]
    return (
        f'<section id="{anchor}">\n<h2>{title}</h2>\n<div class="charts">\n' + "\n".join(figures) + "\n</div></section>"
    )


def _head(data: ReportData, stored: PageData) -> str:
    if data.runs.is_empty():
        return f'<section id="summary">\n<h2>Summary</h2>\n{_failed(data)}</section>'
    table = stored.add(all_runs(data))
    verdict = "Best and worst" if data.runs["grouping"].n_unique() > 1 else "In short"
    parts = [
        f'<section id="summary">\n<h2>Summary</h2>\n<div class="card">{_list(findings.compared(data))}',
        f"<h3>{verdict}</h3>{_list(findings.verdicts(data))}",
        f'<div class="tools">{_offer("csv", "summary", table)}{_offer("json", "summary", table)}</div></div>',
    ]
    if data.failed:
        parts.append(_failed(data))
    caveats = findings.caveats(data)
    if caveats:
        parts.append(f'<div class="card"><h3>To know before believing the figures</h3>{_list(caveats)}</div>')
    return "\n".join([*parts, "</section>"])


def _failed(data: ReportData) -> str:
    failed = [f"{one.cell}: {one.error}" for one in data.failed]
    return f'<div class="card alarm"><h3>{len(failed)} failed</h3>{_list(failed)}</div>'


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>\n" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _tables(data: ReportData, stored: PageData) -> str:
    parts = ['<section id="tables">\n<h2>Tables</h2>']
    titles = (
        ("means", "Means over seeds, each beside its maximum", side_by_side(data)),
        ("hot-keys", "The hottest keys, and how many workers each was sent to", hot_keys(data)),
        ("runs", "All runs", varying(all_runs(data))),
    )
    for name, title, frame in titles:
        if frame.height:
            parts.append(_table(name, title, frame, stored.add(frame)))
    return "\n".join([*parts, "</section>"]) if len(parts) > 1 else ""


def _table(name: str, title: str, frame: pl.DataFrame, table: str) -> str:
    numeric = [frame[column].dtype.is_numeric() for column in frame.columns]
    heads = "".join(
        f'<th scope="col" aria-sort="none" data-column="{escape(column)}"{_number(is_number)}>'
        f'<button type="button">{escape(_heading(column))}</button></th>'
        for column, is_number in zip(frame.columns, numeric, strict=True)
    )
    rows = "\n".join(
        f'<tr data-row="{at}">'
        + "".join(_cell(value, is_number) for value, is_number in zip(row, numeric, strict=True))
        + "</tr>"
        for at, row in enumerate(frame.iter_rows())
    )
    return f"""<div class="card"><h3 id="{name}">{escape(title)}</h3>
<div class="scroll" tabindex="0" role="region" aria-labelledby="{name}"><table data-table="{table}">
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table></div>
<div class="tools">{_offer("csv", name, table)}</div></div>"""


def _heading(column: str) -> str:
    return column.replace("_", " ")


def _number(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(value: Any, is_number: bool) -> str:
    if value is None:
        return "<td></td>"
    if is_number:
        return f'<td class="number">{number(value)}</td>'
    return f"<td><bdi>{escape(str(value))}</bdi></td>"


def _title(data: ReportData) -> str:
    if data.runs.is_empty():
        return "No run: every cell failed"
    traces = data.runs["trace"].unique(maintain_order=True).to_list()
    groupings = data.runs["grouping"].n_unique()
    what = data.runs["grouping"][0] if groupings == 1 else f"{groupings} groupings"
    on = ", ".join(traces[:3]) + (f" and {len(traces) - 3} more" if len(traces) > 3 else "")
    return f"{what} on {on}"


def _document(title: str, body: str, content: dict[str, Any]) -> str:
    anchors = [("summary", "Summary"), *((anchor, name) for name, anchor in _SECTIONS.values()), ("tables", "Tables")]
    links = " ".join(f'<a href="#{anchor}">{name}</a>' for anchor, name in anchors if f'id="{anchor}"' in body)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{_asset("page.css")}</style>
</head>
<body>
<header><h1>{escape(title)}</h1>
<button type="button" id="theme" hidden>Light or dark</button>
<nav aria-label="Sections">{links}</nav></header>
<main>
{body}
</main>
<footer>Made by streamgroup {escape(streamgroup.__version__)}. All of this page is in this file.</footer>
<script type="application/json" id="content">{as_script(content)}</script>
<script>{_library()}</script>
<script>{_asset("page.js")}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return (resources.files("streamgroup.report") / "assets" / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Return the program that draws Vega-Lite, which comes with what draws it here."""
    # In a block of its own its names stay its own; within a string `\\/` is `/`.
    return f"{{{_bundle().replace('</script', _END)}}}"


def _bundle() -> str:
    """Bundle the program, or read it from the cache: bundling takes seconds."""
    kept = cache_root() / f"vega-{importlib.metadata.version('vl-convert-python')}.js"
    with contextlib.suppress(OSError, ValueError):
        digest, _, known = kept.read_bytes().partition(b"\n")
        if hashlib.sha256(known).hexdigest().encode() == digest:
            return known.decode()
    made: str = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;")
    with contextlib.suppress(OSError, StreamgroupError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        content = made.encode()
        write_files({kept: hashlib.sha256(content).hexdigest().encode() + b"\n" + content}, overwrite=True)
    return made
