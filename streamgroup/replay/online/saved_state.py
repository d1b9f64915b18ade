"""The state of a source's grouping as bytes, from which another process goes on with the same decisions.

The arrays and numbers of the state are kept in the order of its fields, with the keys that were met. Arrays that are
views of one another stay so: a grouping may write through one and read through another. Caches begin anew.
"""

import pickle
from typing import Any, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.replay.online.decider import Decider
from streamgroup.replay.online.state_fields import is_cache, leaves, replaced

__all__ = ["restore", "save"]

# Of the layout below. Which code made the state is for the caller to check.
_FORMAT = 1


class _View(NamedTuple):
    """A view of the array at place `owner`: its type, shape and strides, and where it begins, in bytes."""

    owner: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    begins: int


def save(decider: Decider) -> bytes:
    """Return the state of a decider; the same state gives the same bytes."""
    owners: list[NDArray[Any]] = []
    place_of: dict[int, int] = {}
    state = decider.grouping.state
    values = [None if is_cache(state, path) else _kept(value, owners, place_of) for path, value in leaves(state)]
    content = (
        _FORMAT, decider.selection.text, decider.source, decider.capacity, decider.known.keys, decider.largest_entries,
        decider.grouping.most_entries, owners, values,
    )  # fmt: skip
    return zstandard.ZstdCompressor(level=1).compress(pickle.dumps(content, protocol=5))


def restore(decider: Decider, data: bytes) -> None:
    """Go on with a saved state in a decider that was made with the same options; DataError for one of another."""
    content = pickle.loads(zstandard.ZstdDecompressor().decompress(data))
    if content[:3] != (_FORMAT, decider.selection.text, decider.source):
        raise DataError(
            f"the saved state is of format {content[0]}, -g {content[1]} and source {content[2]}, and not of format "
            f"{_FORMAT}, -g {decider.selection.text} and source {decider.source}",
            "begin again, without the checkpoint",
        )
    capacity, keys, largest, most, owners, values = content[3:]
    # From a pickle, arrays that were read-only would stay so for ever.
    owners = [owner.copy() for owner in owners]
    state = decider.started(capacity)
    found = {}
    for (path, started), value in zip(leaves(state), values, strict=True):
        if is_cache(state, path):
            continue
        if isinstance(value, _View):
            value = _viewed(owners[value.owner], value)
            value.flags.writeable = started.flags.writeable
        found[path] = value
    decider.go_on(replaced(state, found), keys, capacity, largest)
    decider.grouping.most_entries = most


def _kept(value: Any, owners: list[NDArray[Any]], place_of: dict[int, int]) -> Any:
    """Return what is kept of a field: of an array where it is in its owner, which is added to `owners`."""
    if not isinstance(value, np.ndarray):
        return value
    owner = value
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not owner.flags.c_contiguous:
        raise UsageError("an array of the grouping's state is not contiguous, and cannot be saved", "make it so")
    place = place_of.setdefault(id(owner), len(owners))
    if place == len(owners):
        owners.append(owner)
    return _View(place, value.dtype.str, value.shape, value.strides, value.ctypes.data - owner.ctypes.data)


def _viewed(owner: NDArray[Any], view: _View) -> NDArray[Any]:
    if not owner.size:
        return np.zeros(view.shape, dtype=view.dtype)
    return np.ndarray(view.shape, view.dtype, buffer=owner.data, offset=view.begins, strides=view.strides)
