"""The first error that pydantic found, as a place and a reason; the caller turns it into its own kind of error."""

from typing import NamedTuple

from pydantic import ValidationError

__all__ = ["Problem", "first_problem"]


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
    return Problem(".".join(parts), first["msg"].removeprefix("Value error, "), is_unknown)
