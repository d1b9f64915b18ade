"""The tables within a page: each stored once, as JSON that cannot end its script element."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

__all__ = ["PageData", "as_script"]


class PageData:
    """Tables by name; two of equal content are one."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}

    def add(self, frame: pl.DataFrame) -> str:
        """Store a frame and return its name in the page."""
        return self._add({name: frame[name].to_list() for name in frame.columns}, frame.height)

    def add_rows(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """Store rows as a specification holds them and return their name in the page."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        return self._add({name: [row.get(name) for row in rows] for name in names}, len(rows))

    def _add(self, columns: Mapping[str, Sequence[Any]], rows: int) -> str:
        made = {"rows": rows, "columns": {name: _packed(values) for name, values in columns.items()}}
        text = json.dumps(made, allow_nan=False)
        if text not in self._names:
            self._names[text] = f"t{len(self._names)}"
            self.tables[self._names[text]] = made
        return self._names[text]


def _packed(values: Sequence[Any]) -> Any:
    """Write texts that repeat as distinct values and places among them; what is no number in JSON is null."""
    finite = [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
    texts = {value for value in finite if isinstance(value, str)}
    if not texts or len(texts) * 2 > len(finite):
        return finite
    distinct = list(dict.fromkeys(finite))
    place = {value: at for at, value in enumerate(distinct)}
    return {"values": distinct, "places": [place[value] for value in finite]}


def as_script(content: Any) -> str:
    """Write JSON for a script element: ASCII, and nothing in it that HTML could take for markup."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
