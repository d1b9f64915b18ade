"""JSON texts with their numbers as they are written, and fields of them by path."""

import json
from typing import Any

__all__ = ["Fault", "Fraction", "decode", "get", "scalar"]


class Fraction(str):
    """A number with a fraction or exponent, as it was written."""

    __slots__ = ()


class Fault(str):
    """What is wrong with a text."""

    __slots__ = ()


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_int=str, parse_float=Fraction, parse_constant=_refuse)


def decode(text: bytes) -> Any:
    """Decode one JSON text; numbers become texts, and what is not JSON a `Fault`."""
    try:
        return _DECODER.decode(text.decode("utf-8"))
    except UnicodeDecodeError:
        return Fault("not UTF-8")
    except (ValueError, RecursionError):
        return Fault("not JSON")


def get(record: dict[str, Any], name: str) -> Any:
    """Give a field by its name or by its path (`user.name`); None when it is not there."""
    if name in record:
        return record[name]
    value: Any = record
    for step in name.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def scalar(value: Any) -> bytes | None:
    """Give a decoded value as bytes, null as None; TypeError for objects and lists."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if value is None:
        return None
    raise TypeError
