"""Grows a grouping's state for new keys: what of it goes by keys is found by its shapes.

A grouping starts for a number of keys. Started for K and for 2 K keys, its state has

- arrays whose first axis is K and 2 K long: a row for each key, which `start` makes from that key alone, so that the
  rows of new keys are those of a state that is started for them;
- numbers that are K and 2 K: the most keys there can be, which are set to one that is never reached;
- arrays of caches (see `state_fields`), on which no choice depends: they are started anew when the state grows.

Everything else goes on as it is. A table that holds no more keys than there are has other shapes only below its
capacity: K is doubled until nothing else differs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.replay.online.state_fields import Path, field_at, is_cache, leaves, replaced

__all__ = ["KeyRows", "find_key_rows", "grown_state", "own_rows", "put_rows", "without_limit"]

_ENDLESS = 1 << 40
# Keys for which a state starts, at least and at most.
_LEAST, _MOST = 1 << 12, 1 << 22


class KeyRows(NamedTuple):
    """The fields that go by keys: arrays with a row for each, numbers of keys, and arrays that can be started anew."""

    rows: tuple[Path, ...]
    limits: tuple[Path, ...]
    caches: tuple[Path, ...]


def find_key_rows(start: Callable[[int], Any]) -> tuple[KeyRows, int]:
    """Find what goes by keys, and the least number of keys of which that is so; `start` makes a state for so many keys.

    UsageError for a grouping whose state has other shapes for any number of keys.
    """
    keys, smaller = _LEAST, start(_LEAST)
    while keys <= _MOST:
        larger = start(2 * keys)
        rows, limits, caches, others = [], [], [], False
        for (path, value), (_, other) in zip(leaves(smaller), leaves(larger), strict=True):
            if not isinstance(value, np.ndarray):
                if (value, other) == (keys, 2 * keys):
                    limits.append(path)
            elif value.shape != other.shape:
                if is_cache(smaller, path):
                    caches.append(path)
                elif value.shape[1:] == other.shape[1:] and (len(value), len(other)) == (keys, 2 * keys):
                    rows.append(path)
                else:
                    others = True
        if not others:
            return KeyRows(tuple(rows), tuple(limits), tuple(caches)), keys
        keys, smaller = 2 * keys, larger
    raise UsageError("the arrays of its state have no row for each key, and yet depend on how many keys there are")


def without_limit(state: Any, where: KeyRows) -> Any:
    """Return a state that expects more keys than will ever come."""
    return replaced(state, dict.fromkeys(where.limits, _ENDLESS))


def own_rows(state: Any, where: KeyRows) -> tuple[Any, list[NDArray[Any]]]:
    """Return a state whose rows by key can be written, and these arrays.

    A state keeps read-only arrays read-only: compiled code takes others for another type.
    """
    found, arrays = {}, []
    for path in where.rows:
        array = field_at(state, path)
        own = array.copy()
        view = own.view()
        view.flags.writeable = array.flags.writeable
        found[path] = view
        arrays.append(own)
    return replaced(state, found), arrays


def put_rows(arrays: list[NDArray[Any]], where: KeyRows, begin: int, fresh: Any) -> None:
    """Write the rows of new keys, the first of id `begin`, as a state has them that was started for these alone."""
    for array, path in zip(arrays, where.rows, strict=True):
        rows = field_at(fresh, path)
        array[begin : begin + len(rows)] = rows


def grown_state(state: Any, where: KeyRows, fresh: Any) -> Any:
    """Return a state with the rows, and the caches, of one that was started for more keys."""
    found = {path: field_at(fresh, path) for path in where.caches}
    for path in where.rows:
        old, new = field_at(state, path), field_at(fresh, path)
        whole = np.concatenate([old, new[len(old) :]])
        whole.flags.writeable = old.flags.writeable
        found[path] = whole
    return replaced(state, found)
