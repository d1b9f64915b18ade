"""Which of two workers scores lower by what a source sent to them in its window."""

from typing import Any

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["is_lower"]


@njit(forceinline=True)
def is_lower(windows: Any, source: Any, one: Any, other: Any, by_load: Any) -> Any:
    """Return whether one worker scores lower than another."""
    distinct = windows.distinct
    if by_load:
        return _load_is_lower(windows, source, one, other)
    return distinct[source, one] < distinct[source, other]


@njit
def _load_is_lower(windows: Any, source: Any, one: Any, other: Any) -> Any:
    tuples, distinct, live = windows.tuples, windows.distinct, windows.live
    most, least = tuples[source, live[0]], tuples[source, live[0]]
    most_keys, least_keys = distinct[source, live[0]], distinct[source, live[0]]
    for place in range(1, live.shape[0]):
        worker = live[place]
        most, least = max(most, tuples[source, worker]), min(least, tuples[source, worker])
        most_keys = max(most_keys, distinct[source, worker])
        least_keys = min(least_keys, distinct[source, worker])
    by_tuples, by_keys = most - least + 1, most_keys - least_keys + 1
    more_keys = distinct[source, one] - distinct[source, other]
    return more_keys * by_tuples + (tuples[source, one] - tuples[source, other]) * by_keys < 0
