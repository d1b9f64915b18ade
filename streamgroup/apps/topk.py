"""The most frequent keys of each window, with their counts."""

from pydantic import Field

from streamgroup.apps.count import finish, merge, start, update
from streamgroup.apps.protocol import AppParams

__all__ = ["Params", "finish", "largest", "merge", "start", "update"]


class Params(AppParams):
    """How many keys."""

    k: int = Field(default=10, ge=1, le=1 << 40, description="keys of each window")


def largest(params: Params) -> int:
    """Return how many results are kept."""
    return params.k
