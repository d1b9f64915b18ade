"""Makes the options of a replay from Python values, and refuses options that a function does not have."""

import dataclasses
import numbers
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from streamgroup.api.option_texts import grouping_text, is_number, is_several, listed, text
from streamgroup.base.errors import UsageError
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.spelling_hint import suggest
from streamgroup.replay.scenario.options import ReplayOptions

__all__ = ["known_only", "made_options"]

_TEXTS = tuple[str, ...]


def known_only(function: str, given: Collection[str], known: Iterable[str]) -> None:
    """Refuse options that a function does not have; UsageError names the nearest."""
    known = set(known)
    for name in given:
        if name not in known:
            raise UsageError(f"{function}() has no option {name!r}", suggest(name, known))


def made_options(grouping: str | Path, workers: int, given: Mapping[str, Any]) -> ReplayOptions:
    """Make the options of a replay; UsageError for an unknown name or a value of a wrong type."""
    fields = {field.name: field for field in dataclasses.fields(ReplayOptions)}
    known_only("replay", given, fields.keys() - {"grouping", "workers"})
    values: dict[str, Any] = {"grouping": grouping_text(grouping), "workers": workers}
    for name, value in given.items():
        if value is None:
            # As if it were not given: the default.
            continue
        values[name] = _as_field(fields[name].type, value)
    try:
        return _adapter().validate_python(values)
    except ValidationError as error:
        name = first_problem(error).place.partition(".")[0]
        raise UsageError(f"{name}: {given.get(name, workers)!r} is not {_kind(fields[name].type)}") from None


def _kind(field: Any) -> str:
    """Name what an option takes, for people."""
    if field in (int, int | None):
        return "a whole number"
    return "True or False" if field is bool else "a text"


def _as_field(kind: Any, value: Any) -> Any:
    if kind == _TEXTS:
        return tuple(listed(value))
    if kind in (str, str | None):
        return ",".join(map(str, listed(value))) if is_several(value) else text(value)
    # NumPy's numbers are no int to pydantic.
    return int(value) if is_number(value) and isinstance(value, numbers.Integral) else value


@cache
def _adapter() -> TypeAdapter[ReplayOptions]:
    return TypeAdapter(ReplayOptions)
