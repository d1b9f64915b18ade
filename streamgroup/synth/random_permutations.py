"""Random permutations that are the same on every machine."""

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.random_draws import words

__all__ = ["shuffled"]


def shuffled(seed: int, purpose: str, items: int) -> NDArray[np.int64]:
    """Return 0, ..., items - 1 in an order drawn at random: by a 64-bit word for each, equal words in their order."""
    order: NDArray[np.int64] = np.argsort(words(seed, purpose, np.arange(items, dtype=np.int64)), kind="stable")
    return order
