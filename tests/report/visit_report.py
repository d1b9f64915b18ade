"""A visit to a report in a browser: all that a reader would see go wrong, in every width and in light and dark."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

from tests.report.headless_browser import Page

__all__ = ["WIDTHS", "Visit", "visit"]

WIDTHS = (1280, 400)

_DRAWN = "document.documentElement.dataset.drawn === String(document.querySelectorAll('figure[data-chart]').length)"
# What is wrong with how the page lies in the window; a chart without a mark is no chart.
_LOOK = """(() => {
  const found = [];
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) {
    const out = [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth
      && !one.closest(".scroll")).map((one) => `${one.tagName}.${one.className}`).slice(0, 3);
    found.push(`the page scrolls sideways: ${wide} of ${innerWidth} pixels (${out.join(", ")})`);
  }
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const [name, view] = [figure.dataset.chart, figure.querySelector(".view")];
    const svg = view.querySelector("svg"), canvas = view.querySelector("canvas");
    if (svg) {
      const marks = [...svg.querySelectorAll("[class*='mark-'][class*='role-mark'] path, [class*='role-mark'] text")];
      if (!marks.length) found.push(`${name} has no mark`);
      if (marks.some((mark) => (mark.getAttribute("d") || "").includes("NaN"))) found.push(`${name} draws NaN`);
    } else if (canvas) {
      const dots = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      const colours = new Set();
      for (let at = 0; at < dots.length; at += 4) colours.add(dots[at] << 16 | dots[at + 1] << 8 | dots[at + 2]);
      if (colours.size < 8) found.push(`${name} is an empty canvas`);
    } else found.push(`${name} is not drawn`);
    const drawn = (svg || canvas || view).getBoundingClientRect(), place = view.getBoundingClientRect();
    if (drawn.right > place.right + 1) found.push(`${name} is ${Math.ceil(drawn.right - place.right)} pixels too wide`);
    if (figure.querySelector("figcaption").textContent.trim().length < 20) found.push(`${name} has no caption`);
  }
  const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  if ((red + green + blue < 384) !== dark) found.push(`its ground is rgb(${red}, ${green}, ${blue})`);
  return found;
})()"""
_CELLS = """[...document.querySelectorAll("table")[%d].tBodies[0].rows].map((row) => row.cells[%d].textContent)"""
_HEAD = """document.querySelectorAll("table")[%d].tHead.rows[0].cells[%d]"""


class Visit(NamedTuple):
    """What went wrong, a line each, and the files that the page gave, by name."""

    faults: list[str]
    files: dict[str, bytes]


def visit(page: Page, report: Path, pictures: Path | None = None) -> Visit:
    """Look at a report in 1280 and 400 pixels, light and dark, sort its tables and take all that it offers.

    `pictures` is a directory that gets a picture of each look. TimeoutError when the charts are not drawn.
    """
    faults: list[str] = []
    files: dict[str, bytes] = {}
    for dark in (False, True):
        for width in WIDTHS:
            look = f"{width}-{'dark' if dark else 'light'}"
            page.open(report, width, dark=dark)
            page.until(_DRAWN)
            found = page.ask(_LOOK)
            if pictures is not None:
                page.picture(pictures / f"{look}.png")
            if not files:
                files, offered = _offered(page)
                found += [*_sorted(page), *offered]
            faults += [f"{look}: {fault}" for fault in [*found, *page.faults()]]
    return Visit(faults, files)


def _sorted(page: Page) -> list[str]:
    """Sort each table by each column, up and down."""
    faults = []
    tables = page.ask("[...document.querySelectorAll('table')].map((table) => table.tHead.rows[0].cells.length)")
    for table, columns in enumerate(tables):
        for column in range(columns):
            head = _HEAD % (table, column)
            for way in ("ascending", "descending"):
                page.ask(f"{head}.querySelector('button').click()")
                values = page.ask(_CELLS % (table, column))
                known = [value for value in values if value]
                keys = [_number(value) for value in known] if page.ask(f"{head}.className") == "number" else known
                if page.ask(f"{head}.getAttribute('aria-sort')") != way:
                    faults.append(f"table {table}, column {column} does not say that it is {way}")
                if values[: len(known)] != known or keys != sorted(keys, reverse=way == "descending"):
                    faults.append(f"table {table}, column {column} is not {way}: {values[:5]}")
    return faults


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _offered(page: Page) -> tuple[dict[str, bytes], list[str]]:
    """Take each file that the page offers."""
    faults = []
    files: dict[str, bytes] = {}
    for at in range(page.ask("document.querySelectorAll('button[data-offer]').length")):
        button = f"document.querySelectorAll('button[data-offer]')[{at}]"
        kind, file = page.ask(f"[{button}.dataset.offer, {button}.dataset.file]")
        name, content = page.download(button)
        if name != f"{file}.{kind}" or name in files:
            faults.append(f"{file} as {kind} comes as {name}")
        files[name] = content
        fault = _unreadable(kind, content)
        if fault:
            faults.append(f"{name}: {fault}")
    return files, faults


def _unreadable(kind: str, content: bytes) -> str:
    try:
        match kind:
            case "csv":
                head, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
                return "" if rows and all(len(row) == len(head) for row in rows) else "no row, or rows of other lengths"
            case "json":
                return "" if json.loads(content) else "nothing in it"
            case "svg":
                marks = ET.fromstring(content).iter("{http://www.w3.org/2000/svg}path")
                return "" if len(list(marks)) > 1 else "no mark in it"
    except ValueError as error:
        return str(error)
    except ET.ParseError as error:
        return str(error)
    return f"a file of kind {kind}"
