"""What several of the twins need: a place in a sketch, a delay that may be left open, loads through a change."""

from functools import cache
from typing import Any

from tests.naive.groupings.simple_groupings import WorkersChange, smallest_of_survivors
from tests.naive.kernels.hashes_and_draws import hash_key, mix64
from tests.naive.option_texts import time_ns

__all__ = ["carried", "delay_ns", "sketch_column"]

Key = bytes | None


@cache
def sketch_column(key: Key, row: int, columns: int) -> int:
    """Where a key is in a row of a sketch; rows count from 0."""
    h1, _ = hash_key(key)
    return ((mix64(h1 ^ mix64(row + 1)) >> 32) * columns) >> 32


def delay_ns(given: int | str | None, otherwise: int) -> int:
    """A text with a unit, a number of ns, or None for what holds otherwise."""
    if given is None or given == "None":
        return otherwise
    return given if isinstance(given, int) else time_ns(given)


def carried(loads: list[Any], change: WorkersChange) -> list[Any]:
    """By worker that ever was: the old ones keep theirs, who joins starts with the least of who was there before."""
    start = smallest_of_survivors(loads, change)
    return [*loads, *[start for _ in change.joined]]
