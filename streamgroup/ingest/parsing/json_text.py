"""JSON texts with their numbers as they are written, and fields of them by path."""

import json
import re
from typing import Any

__all__ = ["Fault", "Fraction", "decode", "decode_all", "get", "scalar"]

# Between and around texts: blanks, zeros that crashed writers leave, and the separator of JSON text sequences.
_SEPARATORS = re.compile("[ \\t\\r\\n\\0\\x1e]*")


class Fraction(str):
    """A number with a fraction or exponent, as it was written, or NaN or an infinity."""

    __slots__ = ()


class Fault(str):
    """What is wrong with a text."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=str, parse_float=Fraction, parse_constant=Fraction)


def decode_all(line: bytes) -> list[Any]:
    """Decode the JSON texts of a line, mostly one; numbers become texts. A line that is no JSON is one `Fault`.

    NaN and infinities, which many programs write, are taken for numbers.
    """
    try:
        text = line.decode("utf-8")
        found = []
        at = _skip_separators(text, 0)
        while at < len(text):
            value, at = _DECODER.raw_decode(text, at)
            found.append(value)
            at = _skip_separators(text, at)
    except UnicodeDecodeError:
        return [Fault("not UTF-8")]
    except (ValueError, RecursionError):
        return [Fault("not JSON")]
    return found


def _skip_separators(text: str, at: int) -> int:
    match = _SEPARATORS.match(text, at)
    assert match is not None
    return match.end()


def decode(line: bytes) -> Any:
    """Decode the one JSON text of a line; a `Fault` when it is none, or there are several."""
    found = decode_all(line)
    if len(found) == 1:
        return found[0]
    return Fault("more than one JSON text in the line" if found else "not JSON")


def get(record: dict[str, Any], name: str) -> Any:
    """Return a field by its name or by its path (`user.name`); None when it is not there."""
    if name in record:
        return record[name]
    value: Any = record
    for step in name.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def scalar(value: Any) -> bytes | None:
    """Return a decoded value as bytes, null as None; TypeError for objects and lists."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if value is None:
        return None
    raise TypeError
