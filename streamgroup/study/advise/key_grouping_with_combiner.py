"""What a combiner in each source makes of key grouping: the usual remedy beside another grouping."""

from collections.abc import Sequence
from typing import NamedTuple

from streamgroup.study.advise.recommendation import Row, Targets, meets

__all__ = ["COMBINER_SIZES", "Combined", "find_combiner"]

# Tuples of a source that are merged by key: each takes longer to fill, and merges more.
COMBINER_SIZES = (100, 300, 1000)


class Combined(NamedTuple):
    """Key grouping with a combiner of `size` tuples in each source, whose merged tuples cost what one tuple does."""

    size: int
    row: Row


def find_combiner(tried: Sequence[tuple[int, Row | None]], targets: Targets) -> Combined | None:
    """Return the smallest combiner with which key grouping meets the targets, else the smallest with which it keeps up,
    else the largest; None without any.
    """
    found = [Combined(size, row) for size, row in tried if row is not None]
    enough = [one for one in found if meets(one.row, targets)] or [one for one in found if one.row.keeps_up]
    return next(iter(enough or found[-1:]), None)
