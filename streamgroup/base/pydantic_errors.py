"""The first error that pydantic found, as a place and a reason; the caller turns it into its own kind of error."""

import json
from typing import Any, NamedTuple

from pydantic import ValidationError

__all__ = ["Problem", "first_problem"]

# What is wrong with a value, by pydantic's type of error, in the words of a command line.
_REASONS = {
    "greater_than": "not above {gt}",
    "greater_than_equal": "below {ge}",
    "less_than": "not below {lt}",
    "less_than_equal": "above {le}",
    "finite_number": "not a finite number",
    "literal_error": "none of {expected}",
    "string_pattern_mismatch": "not of the form {pattern}",
    "string_type": "not a text",
    "list_type": "not a list",
    "tuple_type": "not a list",
    "dict_type": "not a table",
    "model_type": "not a table",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "not a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "decimal_type", "decimal_parsing"), "not a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "neither true nor false"),
}
_BOUNDS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")
# What is wrong where the value need not be shown.
_WHOLE = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such option",
    "string_too_short": "it is empty",
    "too_short": "too few: at least {min_length}",
    "decimal_max_places": "more than {decimal_places} decimals",
    "decimal_max_digits": "more than {max_digits} digits",
}


class Problem(NamedTuple):
    """What is wrong: the dotted `place` ("" for the whole), the `reason`, and whether the place `is_unknown`."""

    place: str
    reason: str
    is_unknown: bool


def first_problem(error: ValidationError) -> Problem:
    """Return the first error. Alternatives of a union, which pydantic adds to the place, are left out."""
    first = error.errors()[0]
    is_unknown = first["type"] == "extra_forbidden"
    # The last part of an unknown place is the user's text.
    last = len(first["loc"]) - 1
    parts = [
        str(part)
        for number, part in enumerate(first["loc"])
        if (is_unknown and number == last) or not isinstance(part, str) or "[" not in part
    ]
    return Problem(".".join(parts), _reason(first), is_unknown)


def _reason(error: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _WHOLE:
        return _WHOLE[kind].format(**context)
    if kind in _REASONS:
        value = error["input"]
        if kind in _BOUNDS:
            shown = str(value)
            if shown.strip().lower().lstrip("+-") == "nan":
                # No comparison with it holds.
                return f"{shown} is not a number"
        else:
            shown = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
        limits = {name: f"{limit:g}" if isinstance(limit, float) else limit for name, limit in context.items()}
        return f"{shown} is {_REASONS[kind].format(**limits)}"
    return str(error["msg"]).removeprefix("Value error, ")
