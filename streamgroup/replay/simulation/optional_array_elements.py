"""Gets and puts elements of arrays that may be None: functions, as numba drops such branches only for arguments."""

from typing import Any

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["get", "put"]


@njit(forceinline=True)
def get(array: Any, place: Any, otherwise: Any) -> Any:
    """Return the element at a place, `otherwise` if there is no array."""
    if array is not None:
        return array[place]
    return otherwise


@njit(forceinline=True)
def put(array: Any, place: Any, value: Any) -> None:
    """Set the element at a place, if there is an array."""
    if array is not None:
        array[place] = value
