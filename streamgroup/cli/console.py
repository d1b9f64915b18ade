"""Output of a command: results to stdout, everything else to stderr."""

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from streamgroup.base.output_formats import PEOPLE, Format, Row, render

__all__ = ["Bar", "Console", "listed"]


class Layout(TypedDict):
    """How a table is rendered: see `render`."""

    form: Format
    width: int | None
    encoding: str


@dataclass(frozen=True)
class Console:
    """The output of one command: its format, how much goes to stderr, and which of its options were `asked` for."""

    form: Format = "table"
    quiet: bool = False
    verbose: bool = False
    asked: frozenset[str] = frozenset()

    def rows(self, rows: Sequence[Row], columns: Sequence[str] | None = None, *, exact: bool = False) -> None:
        """Print a table in the chosen format; `exact`: fractions with all digits for people, too."""
        self._write(rows, self.form, columns, exact=exact)

    def record(self, record: Row, shown: Sequence[Row] | None = None) -> None:
        """Print one object: a line for each value for people, one object or one row for programs.

        `shown` are the rows that people see instead of all values.
        """
        if self.form in PEOPLE:
            rows = [{"name": name, "value": value} for name, value in record.items()] if shown is None else shown
            self._write(rows, self.form, None)
        elif self.form == "json":
            ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
            self.text(json.dumps(record, indent=2, ensure_ascii=ascii_only, allow_nan=False))
        else:
            self._write([record], self.form, None)

    @property
    def layout(self) -> "Layout":
        """Return how a table is to be rendered."""
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return {"form": self.form, "width": width, "encoding": sys.stdout.encoding or "utf-8"}

    def write(self, text: str) -> None:
        """Print a rendered result as it is."""
        sys.stdout.write(text)

    def text(self, text: str) -> None:
        """Print a line of the result."""
        sys.stdout.write(f"{text}\n")

    def note(self, text: str) -> None:
        """Print a note on stderr, unless --quiet."""
        if not self.quiet:
            sys.stderr.write(f"{text}\n")

    def warn(self, text: str) -> None:
        """Warn on stderr, unless --quiet."""
        self.note(f"warning: {text}")

    def detail(self, text: str) -> None:
        """Print a detail on stderr, with --verbose only."""
        if self.verbose and not self.quiet:
            sys.stderr.write(f"{text}\n")

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Print on stderr what follows from a grouping's parameters for the number of workers, if anything."""
        if facts:
            parts = (f"{name} {value if isinstance(value, int) else f'{value:.4g}'}" for name, value in facts.items())
            self.note(f"whatever the keys: {', '.join(parts)}")

    def bar(self, unit: str) -> "Bar":
        """Return a progress bar, which shows itself only on a terminal."""
        return Bar(unit, self.note, shown=not self.quiet and sys.stderr.isatty())

    def _write(self, rows: Sequence[Row], form: Format, columns: Sequence[str] | None, *, exact: bool = False) -> None:
        layout: Layout = {**self.layout, "form": form}
        sys.stdout.write(render(rows, columns=columns, exact=exact, **layout))


class Bar:
    """Progress in steps, each of a number of things; counts also where it shows nothing. `note` receives notes."""

    def __init__(self, unit: str, note: Callable[[str], None], *, shown: bool) -> None:
        self.note = note
        self.done = 0
        self._unit = unit
        self._shown = shown
        self._begun = time.perf_counter()
        self._bar: Any = None

    def start(self, total: int | None, text: str) -> None:
        """Begin a step; the one before ends."""
        self.close()
        self.done = 0
        self._begun = time.perf_counter()
        if self._shown:
            from tqdm import tqdm

            self._bar = tqdm(
                total=total, desc=text, unit=self._unit, unit_scale=True, ascii=True, leave=False, file=sys.stderr
            )

    def describe(self, text: str) -> None:
        """Change the text in front of the bar."""
        if self._bar is not None:
            self._bar.set_description(text)

    def advance(self, done: int) -> None:
        """Count what is done."""
        self.done += done
        if self._bar is not None:
            self._bar.update(done)

    @property
    def seconds(self) -> float:
        """Return how long the step has lasted."""
        return time.perf_counter() - self._begun

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def listed(record: Mapping[str, Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """Turn some values of a record into rows of name and value; what is null is left out."""
    return [{"name": name, "value": record[name]} for name in names if record.get(name) is not None]
