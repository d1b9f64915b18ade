"""From Python values to the texts of options, which the parts that use them read and check."""

import numbers
import os
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

__all__ = ["columns_text", "grouping_text", "is_number", "is_several", "listed", "spark_values", "text"]


def text(value: Any) -> Any:
    """Write a number, a path, a time or a length of time as an option has it; leave all else as it is."""
    if isinstance(value, Path):
        return os.fspath(value)
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)}us"
    if isinstance(value, date):
        return value.isoformat()
    if is_number(value):
        return str(int(value)) if isinstance(value, numbers.Integral) else repr(float(value))
    return value


def listed(value: Any) -> list[Any]:
    """Return one value or several as a list of texts; None is none."""
    if value is None:
        return []
    return [text(one) for one in value] if is_several(value) else [text(value)]


def grouping_text(value: str | Path) -> str:
    """Return a grouping as `-g` has it: a name with parameters, or the path of a file."""
    return str(text(value))


def columns_text(value: Any) -> Any:
    """Join the names of columns, in quotes where a name has a comma; one text is taken as it stands."""
    if not is_several(value):
        return text(value)
    return ",".join(f'"{name}"' if "," in str(name) else str(name) for name in value)


def spark_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of Spark's that were given, settings as `K=V`."""
    found = {name: given[name] for name in ("master", "remote", "driver_memory") if given.get(name) is not None}
    conf = given.get("spark_conf")
    if conf:
        pairs = [f"{name}={value}" for name, value in conf.items()] if isinstance(conf, Mapping) else listed(conf)
        found["spark_conf"] = tuple(pairs)
    return found


def is_number(value: Any) -> bool:
    """Report whether a value is a real number, and no bool."""
    return not isinstance(value, bool) and isinstance(value, numbers.Real)


def is_several(value: Any) -> bool:
    """Report whether a value is several ones, and no text."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)
