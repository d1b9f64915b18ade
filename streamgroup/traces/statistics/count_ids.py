"""Counts of ids, added up piece by piece."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["add_counts"]


def add_counts(count: NDArray[np.int64], ids: NDArray[Any]) -> None:
    """Add to `count[id]` how often each id comes among `ids`, all below its length."""
    if len(count) <= len(ids):
        count += np.bincount(ids, minlength=len(count))
    else:
        # bincount would pass over all ids of `count`, most of which are not in `ids`.
        np.add.at(count, ids, 1)
