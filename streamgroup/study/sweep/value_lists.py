"""Expands lists and ranges in texts: `16,32`, `8..64..8`, `fish:alpha=0.1..0.3..0.1,epoch=1000`."""

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from streamgroup.base.errors import UsageError
from streamgroup.replay.scenario.grouping_text import split_text

__all__ = ["arrivals_of", "as_text", "combinations_of", "groupings_of", "values_of", "whole_numbers"]

_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"\s*({_NUMBER})\.\.({_NUMBER})(?:\.\.({_NUMBER}))?\s*")
# A typing error in the step would make millions.
_MOST = 10_000


def values_of(texts: Iterable[str], where: str) -> list[str]:
    """Return the values that texts list: pieces between commas, ranges `a..b` and `a..b..step` with both ends in them.

    Steps are exact decimals, 1 where none is given; a range may fall. `where` names the option in errors. UsageError
    for no value at all, and for a range that is none, never ends, or has more than 10,000 values.
    """
    found = [value for text in texts for piece in text.split(",") for value in _values(piece, where)]
    if not found:
        raise UsageError(f"{where} has no value", "write values with commas between them")
    return found


def _values(piece: str, where: str) -> list[str]:
    piece = piece.strip()
    if not piece:
        raise UsageError(f"{where}: there is an empty value", "write values with one comma between them")
    match = _RANGE.fullmatch(piece)
    if match is None:
        if re.match(r"[+-]?\d.*\.\.", piece):
            raise UsageError(f"{where}: {piece!r} is not a range", "write first..last or first..last..step")
        return [piece]
    first, last = Decimal(match[1]), Decimal(match[2])
    step = Decimal(match[3] or 1)
    if step == 0 or (last - first) * step < 0:
        raise UsageError(f"{where}: {piece!r} never gets to {last}", "write first..last..step")
    count = int((last - first) / step) + 1
    if count > _MOST:
        raise UsageError(f"{where}: {piece!r} has {count} values, and at most {_MOST} are taken", "take a larger step")
    return [format((first + step * place).normalize(), "f") for place in range(count)]


def whole_numbers(texts: Iterable[str], where: str, least: int, most: int) -> list[int]:
    """Return the whole numbers that texts list; UsageError for anything else, and outside of `least`..`most`."""
    found = []
    for text in values_of(texts, where):
        try:
            number = int(text)
        except ValueError:
            raise UsageError(f"{where}: {text!r} is not a whole number") from None
        if not least <= number <= most:
            raise UsageError(f"{where}: {number} is not between {least} and {most}")
        found.append(number)
    return found


def arrivals_of(texts: Iterable[str]) -> list[str]:
    """Return the kinds of arrivals that texts list: `utilization=0.5..0.9..0.2,saturate` is four.

    A number behind a comma goes on with the list of the kind before it. UsageError as in `values_of`; whether there is
    such a kind is not looked at.
    """
    found, kind = [], ""
    for text in texts:
        for piece in text.split(","):
            name, equals, value = piece.strip().rpartition("=")
            kind = name if equals else kind if re.match(r"\d", value) else ""
            found += [f"{kind}={one}" if kind else one for one in _values(value, f"--arrivals {text}")]
    return found


def groupings_of(text: str) -> list[str]:
    """Return the groupings that a text with lists stands for: all combinations, the last parameter changing fastest.

    UsageError for a text that names no grouping or gives a parameter twice; what it names is not looked at.
    """
    found = []
    for name, given in combinations_of(text, "-g"):
        pieces = ",".join(f"{key}={value}" for key, value in given.items())
        found.append(f"{name}:{pieces}" if pieces else name)
    return found


def combinations_of(text: str, flag: str) -> list[tuple[str, dict[str, str]]]:
    """Return name and parameters of each combination that `name:a=1,2,b=1..3` stands for, the last changing fastest."""
    name, given = split_text(text, flag)
    lists = [values_of(pieces, f"{flag} {text!r}: {key}") for key, pieces in given]
    count = math.prod(map(len, lists))
    if count > _MOST:
        raise UsageError(f"{flag} {text!r} is {count} combinations, and at most {_MOST} are taken", "list less")
    names = [key for key, _ in given]
    return [(name, dict(zip(names, combination, strict=True))) for combination in itertools.product(*lists)]


def as_text(table: Mapping[str, Any], where: str) -> str:
    """Write a table with `name`, perhaps `label`, and parameters, each a value or a list, as the text for it."""
    if not isinstance(table.get("name"), str):
        raise UsageError(f"{where}: a grouping has a name", 'write { name = "fish", alpha = [0.1, 0.2] }')
    pieces = []
    for key, value in table.items():
        values = value if isinstance(value, list) else [value]
        if any(not isinstance(one, str | int | float) for one in values) or not values:
            raise UsageError(f"{where}: {key} is neither a value nor a list of some", "write numbers, texts or truths")
        if key not in ("name", "label"):
            pieces.append(
                f"{key}=" + ",".join(str(one).lower() if isinstance(one, bool) else str(one) for one in values)
            )
    name = f"{table['label']}={table['name']}" if "label" in table else str(table["name"])
    return f"{name}:{','.join(pieces)}" if pieces else name
