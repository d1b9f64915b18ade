"""The fields of a grouping's state and of the states within it: listed by their paths, read, replaced."""

from collections.abc import Iterator
from typing import Any

from streamgroup.groupings.fish.candidate_workers import Shortlists
from streamgroup.kernels.least_loaded_of_many import Cursors

__all__ = ["Path", "field_at", "is_cache", "leaves", "replaced"]

# A field of a state, through the states within it.
Path = tuple[str, ...]
_CACHES: dict[type, tuple[str, ...]] = {Cursors: ("lists", "kept", "search"), Shortlists: ("lists", "kept")}


def leaves(state: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the fields of a state, and of the states within it, with their paths."""
    for name, value in zip(state._fields, state, strict=True):
        if hasattr(value, "_fields"):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def field_at(state: Any, path: Path) -> Any:
    """Return the field of a state at a path."""
    for name in path:
        state = getattr(state, name)
    return state


def is_cache(state: Any, path: Path) -> bool:
    """Return whether a field is of a cache, on which no choice depends; what it holds at first may be anything."""
    return path[-1] in _CACHES.get(type(field_at(state, path[:-1])), ())


def replaced(state: Any, found: dict[Path, Any]) -> Any:
    """Return a state with other values in some fields."""
    by_field: dict[str, Any] = {}
    for name in {path[0] for path in found}:
        inner = {path[1:]: value for path, value in found.items() if path[0] == name}
        by_field[name] = inner[()] if () in inner else replaced(getattr(state, name), inner)
    return state._replace(**by_field)
