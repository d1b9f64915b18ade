"""Formats rows as text: a table for people, JSON, JSON lines and CSV for programs, Markdown for pages.

JSON and CSV hold every digit. The table and Markdown round fractions to five significant digits by default,
and never cut: a row that does not fit is written as a block of lines. Only ASCII is added to what the values say, and
what an output's encoding does not know is escaped.
"""

import csv
import io
import json
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

__all__ = ["FORMATS", "PEOPLE", "Format", "Row", "for_people", "render", "wrapped"]

Format = Literal["table", "json", "jsonl", "csv", "markdown", "latex"]
FORMATS: tuple[Format, ...] = get_args(Format)
# Those that show figures as people want to read them.
PEOPLE: tuple[Format, ...] = ("table", "markdown", "latex")

Row = Mapping[str, Any]

_GAP = 2
# What means something else to LaTeX.
_LATEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
# Columns of sentences.
_WIDTH = 110


def render(
    rows: Sequence[Row],
    form: Format,
    *,
    columns: Sequence[str] | None = None,
    width: int | None = None,
    encoding: str = "utf-8",
    exact: bool = False,
) -> str:
    """Write rows (dicts of None, bool, int, float, str, or lists and dicts of these) as text that ends in a newline.

    `columns` chooses and orders; else all, in the order they first appear. A value that a row lacks counts as None:
    null in JSON, nothing in CSV, `-` for people. `width` is the terminal's: a table that is wider becomes one block
    a row; None (not a terminal) leaves it as wide as it is. `exact` shows people all
    digits of fractions, too. No rows: `[]` in JSON, the names alone in CSV and Markdown, nothing else. ValueError for
    NaN or infinity in JSON.
    """
    names = list(columns) if columns is not None else list(dict.fromkeys(name for row in rows for name in row))
    if form == "json":
        listed = [f"  {_json(row, names, encoding)}" for row in rows]
        return "[\n" + ",\n".join(listed) + "\n]\n" if listed else "[]\n"
    if form == "jsonl":
        return "".join(f"{_json(row, names, encoding)}\n" for row in rows)
    if form == "csv":
        text = _csv(rows, names)
    else:
        texts = [[for_people(row.get(name), exact=exact) for name in names] for row in rows]
        right = [_numeric(rows, name) for name in names]
        if form == "latex":
            text = _latex(names, texts, right)
        else:
            text = _markdown(names, texts, right) if form == "markdown" else _table(names, texts, right, width)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _json(row: Row, names: list[str], encoding: str) -> str:
    picked = {name: row.get(name) for name in names}
    text = json.dumps(picked, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(picked, allow_nan=False)
    return text


def _csv(rows: Sequence[Row], names: list[str]) -> str:
    if not names:
        return ""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([[_exact(row.get(name)) for name in names] for row in rows])
    return out.getvalue()


def _exact(value: Any) -> str:
    """Write a value with all its digits, as CSV holds it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and not any(isinstance(item, list | tuple | Mapping) for item in value):
        return " ".join(_exact(item) for item in value)
    if isinstance(value, list | tuple | Mapping):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return repr(value)


def for_people(value: Any, *, exact: bool = False) -> str:
    """Write a value for people: fractions with five digits unless `exact`, nothing that moves the cursor."""
    if value is None:
        return "-"
    if isinstance(value, float) and exact:
        return repr(value).removesuffix(".0")
    if isinstance(value, float):
        return f"{value:.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:.5g}"
    if isinstance(value, list | tuple) and not any(isinstance(item, list | tuple | Mapping) for item in value):
        return " ".join(for_people(item, exact=exact) for item in value)
    return "".join(_visible(char) for char in _exact(value))


def _visible(char: str) -> str:
    # Control and format characters, line and paragraph separators, lone surrogates.
    if unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp", "Cs"}:
        return char.encode("unicode_escape", "surrogatepass").decode("ascii")
    return char


def _display_width(text: str) -> int:
    """Count the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numeric(rows: Sequence[Row], name: str) -> bool:
    values = [row.get(name) for row in rows]
    return any(map(_is_number, values)) and all(value is None or _is_number(value) for value in values)


def _pad(text: str, size: int, right: bool) -> str:
    space = " " * (size - _display_width(text))
    return space + text if right else text + space


def _table(names: list[str], texts: list[list[str]], right: list[bool], width: int | None) -> str:
    if not texts or not names:
        return ""
    heads = [for_people(name) for name in names]
    sizes = [max(_display_width(line[i]) for line in [heads, *texts]) for i in range(len(names))]
    if width is not None and sum(sizes) + _GAP * (len(sizes) - 1) > width:
        return _blocks(heads, texts)
    lines = [
        (" " * _GAP).join(_pad(*cell) for cell in zip(line, sizes, right, strict=True)).rstrip()
        for line in [heads, ["-" * size for size in sizes], *texts]
    ]
    return "\n".join(lines) + "\n"


def _blocks(heads: list[str], texts: list[list[str]]) -> str:
    """Write one block a row, a line for each value."""
    size = max(map(_display_width, heads))
    blocks = [
        "".join(f"{_pad(head, size, False)}{' ' * _GAP}{text}\n" for head, text in zip(heads, line, strict=True))
        for line in texts
    ]
    return "\n".join(blocks)


def _latex(names: list[str], texts: list[list[str]], right: list[bool]) -> str:
    """Write a `tabular`, with the rules of the package booktabs."""

    def line(cells: Sequence[str]) -> str:
        texts = ("".join(_LATEX.get(char, char) for char in cell) for cell in cells)
        return " & ".join(texts).replace("+-", r"$\pm$") + r" \\"

    columns = "".join("r" if each else "l" for each in right)
    rows = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", line(names), r"\midrule", *map(line, texts)]
    return "\n".join([*rows, r"\bottomrule", r"\end{tabular}", ""])


def _markdown(names: list[str], texts: list[list[str]], right: list[bool]) -> str:
    if not names:
        return ""
    heads = [for_people(name) for name in names]
    rule = ["---:" if number else "---" for number in right]
    return "".join(
        "| " + " | ".join(text.replace("\\", "\\\\").replace("|", "\\|") for text in line) + " |\n"
        for line in [heads, rule, *texts]
    )


def wrapped(text: str, form: Format) -> str:
    """Break a sentence into lines, the second one and those after it indented; not in Markdown or LaTeX."""
    if form in ("markdown", "latex"):
        return text
    # A number and its percent sign stay in one line.
    lines = textwrap.fill(
        text.replace(" %", "\0%"), _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0%", " %")
