"""The columns that name a run in its row: the trace and every option, before the metrics."""

import dataclasses
from typing import Any

from streamgroup.replay.scenario.options import ReplayOptions

__all__ = ["DEFAULTS", "KINDS", "OPTION_COLUMNS", "readable"]

_FIRST = ("grouping", "workers", "sources", "seed", "hash_seed")
_FIELDS = {field.name: field for field in dataclasses.fields(ReplayOptions)}
_PLAIN: dict[Any, type] = {bool: bool, int: int, int | None: int}

OPTION_COLUMNS = ("trace", *_FIRST, *(name for name in _FIELDS if name not in _FIRST))


def readable(value: Any) -> Any:
    """Return an option as it stands in a table: several texts are one, with spaces between; none at all are None.

    Bytes of a file name that are not UTF-8 are escaped: neither JSON nor Parquet can hold them.
    """
    if isinstance(value, tuple):
        value = " ".join(value) or None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value


# A column has its type (bool, int or str) also where nothing was given.
KINDS: dict[str, type] = {
    name: _PLAIN.get(_FIELDS[name].type, str) if name in _FIELDS else str for name in OPTION_COLUMNS
}
_PLAINEST = ReplayOptions("", 1)
# What an option is where it is not given; those without an entry always are.
DEFAULTS: dict[str, Any] = {
    name: readable(getattr(_PLAINEST, name))
    for name, field in _FIELDS.items()
    if field.default is not dataclasses.MISSING
}
