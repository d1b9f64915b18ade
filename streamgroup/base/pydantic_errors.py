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
    place = ".".join(str(part) for part in first["loc"] if not isinstance(part, str) or "[" not in part)
    return Problem(place, first["msg"].removeprefix("Value error, "), first["type"] == "extra_forbidden")
