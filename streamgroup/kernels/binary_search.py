"""Binary search in a sorted array: the last place that is not above a value."""

from typing import Any

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["phase_of"]


@njit(forceinline=True)
def phase_of(begins: Any, at: Any) -> Any:
    """Give the phase that `at` lies in: the last place of `begins` (int64[p], ascending) that is not above, else 0."""
    phase, end = 0, begins.shape[0]
    while end - phase > 1:
        middle = (phase + end) // 2
        if begins[middle] <= at:
            phase = middle
        else:
            end = middle
    return phase
