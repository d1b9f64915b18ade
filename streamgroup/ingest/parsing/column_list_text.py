"""Parses names of columns on the command line: one, or several with commas between."""

import re
from typing import NamedTuple

__all__ = ["NO_TIME", "Name", "column_names"]

# Value of --time for input without times.
NO_TIME = "none"

_PART = re.compile(r'"((?:[^"]|"")*)"(?=,|$)|([^,]*)(?=,|$)')


class Name(NamedTuple):
    """A column by its name, or by its number from 1 if it is all digits and not `quoted`."""

    text: str
    quoted: bool


def column_names(text: str) -> tuple[Name, ...]:
    """Split the names of columns at commas; a name with a comma is in quotes, `""` is a quote."""
    found: list[Name] = []
    at = 0
    while True:
        match = _PART.match(text, at)
        assert match is not None
        quoted = match[1] is not None
        found.append(Name(match[1].replace('""', '"') if quoted else match[2], quoted))
        if match.end() == len(text):
            return tuple(found)
        at = match.end() + 1
