"""Random draws in compiled code, the same as those of `random_draws`."""

from typing import Any

import numpy as np

from streamgroup.kernels.compiled_hash_placement import place
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["draw_below"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(forceinline=True)
def draw_below(stream: Any, index: Any, n: Any) -> Any:
    """Draw an integer in 0..n-1: the word at place `index` of a stream of draws (`random_draws.words`), n < 2^32."""
    return np.int64(place(stream + np.uint64(index + 1) * _GOLDEN, n))
