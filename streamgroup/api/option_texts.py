"""From Python values to the texts of options, which the parts that use them read and check."""

import dataclasses
import numbers
import os
from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from streamgroup.base.errors import UsageError
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.spelling_hint import suggest
from streamgroup.replay.scenario.options import ReplayOptions

__all__ = ["columns_text", "grouping_text", "known_only", "listed", "made_options", "spark_values", "text"]

_TEXTS = tuple[str, ...]


def text(value: Any) -> Any:
    """Write a number, a path, a time or a length of time as an option has it; leave all else as it is."""
    if isinstance(value, Path):
        return os.fspath(value)
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)}us"
    if isinstance(value, date):
        return value.isoformat()
    if _is_number(value):
        return str(int(value)) if isinstance(value, numbers.Integral) else repr(float(value))
    return value


def listed(value: Any) -> list[Any]:
    """Return one value or several as a list of texts; None is none."""
    if value is None:
        return []
    return [text(one) for one in value] if _is_several(value) else [text(value)]


def grouping_text(value: str | Path) -> str:
    """Return a grouping as `-g` has it: a name with parameters, or the path of a file."""
    return str(text(value))


def columns_text(value: Any) -> Any:
    """Join the names of columns, in quotes where a name has a comma; one text is taken as it stands."""
    if not _is_several(value):
        return text(value)
    return ",".join(f'"{name}"' if "," in str(name) else str(name) for name in value)


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
        return ",".join(map(str, listed(value))) if _is_several(value) else text(value)
    # NumPy's numbers are no int to pydantic.
    return int(value) if _is_number(value) and isinstance(value, numbers.Integral) else value


def spark_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of Spark's that were given, settings as `K=V`."""
    found = {name: given[name] for name in ("master", "remote", "driver_memory") if given.get(name) is not None}
    conf = given.get("spark_conf")
    if conf:
        pairs = [f"{name}={value}" for name, value in conf.items()] if isinstance(conf, Mapping) else listed(conf)
        found["spark_conf"] = tuple(pairs)
    return found


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Real)


def _is_several(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


@cache
def _adapter() -> TypeAdapter[ReplayOptions]:
    return TypeAdapter(ReplayOptions)
