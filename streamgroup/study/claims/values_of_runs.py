"""Values of several runs, named by the options in which these differ: what expressions calculate with."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streamgroup.base.errors import UsageError

__all__ = ["Key", "Series", "Value", "combined", "mapped", "series_of"]

Key = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Series:
    """A value for each key; a key has an entry for each of `columns`, in their order. Keys are sorted."""

    columns: tuple[str, ...]
    values: Mapping[Key, float | bool]

    def along(self, column: str) -> "list[tuple[Key, list[tuple[Any, float | bool]]]]":
        """Group by all other columns: their entries, and the values with their entry of `column`, in its order.

        UsageError where there is no such column.
        """
        if column not in self.columns:
            raise UsageError(f"values do not differ in {column!r}", f"they differ in {', '.join(self.columns)}")
        place = self.columns.index(column)
        groups: dict[Key, list[tuple[Any, float | bool]]] = {}
        for key, value in self.values.items():
            groups.setdefault(key[:place] + key[place + 1 :], []).append((key[place], value))
        return list(groups.items())


Value = float | int | bool | str | Series


def series_of(columns: Iterable[str], values: Mapping[Key, float | bool]) -> Series | float | bool:
    """Sort values by their keys; a value alone is returned as it is.

    Columns in which no two differ are left out, and those that follow from an earlier one, as the scale of a stand-in
    does from its data set where each has its own.
    """
    names = list(columns)
    differ: list[int] = []
    for place in range(len(names)):
        constant = len({key[place] for key in values}) == 1
        if not constant and not any(_follows(place, other, values) for other in differ):
            differ.append(place)
    kept = {tuple(key[place] for place in differ): value for key, value in values.items()}
    if not differ:
        (value,) = kept.values()
        return value
    ordered = sorted(kept, key=lambda key: tuple((isinstance(one, str), one) for one in key))
    return Series(tuple(names[place] for place in differ), {key: kept[key] for key in ordered})


def _follows(place: int, other: int, keys: Iterable[Key]) -> bool:
    """Return whether the entries of a column are determined by those of another."""
    pairs = {(key[other], key[place]) for key in keys}
    return len({first for first, _ in pairs}) == len(pairs)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to a value, or to each of a series."""
    if isinstance(value, Series):
        return Series(value.columns, {key: function(one) for key, one in value.values.items()})
    return function(value)


def combined(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Apply a function to two values. A series goes with one that has some of its columns, and with a single value.

    UsageError where each of two series has a column that the other lacks, or a key has no partner.
    """
    if not isinstance(left, Series) and not isinstance(right, Series):
        return _checked(function, left, right)
    if not isinstance(right, Series):
        return mapped(lambda one: _checked(function, one, right), left)
    if not isinstance(left, Series):
        return mapped(lambda one: _checked(function, left, one), right)
    if set(right.columns) <= set(left.columns):
        return _joined(function, left, right)
    if set(left.columns) <= set(right.columns):
        return _joined(lambda one, other: function(other, one), right, left)
    raise UsageError(
        f"one series differs in {', '.join(left.columns)}, the other in {', '.join(right.columns)}",
        "choose one value of what only one of them has",
    )


def _joined(function: Callable[[Any, Any], Any], wide: Series, narrow: Series) -> Series:
    places = [wide.columns.index(name) for name in narrow.columns]
    found = {}
    for key, value in wide.values.items():
        partner = tuple(key[place] for place in places)
        if partner not in narrow.values:
            raise UsageError(f"no value to compare with for {dict(zip(narrow.columns, partner, strict=True))}")
        found[key] = _checked(function, value, narrow.values[partner])
    return Series(wide.columns, found)


def _checked(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    try:
        return function(left, right)
    except ZeroDivisionError:
        # As a ratio to nothing.
        return math.nan if left == 0 else math.inf
