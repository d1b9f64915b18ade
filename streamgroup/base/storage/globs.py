"""Glob patterns in paths and URLs: `*`, `**`, `[...]`, and `?` in paths only (in a URL it starts the parameters)."""

import fnmatch
import glob
from collections.abc import Iterable, Iterator
from pathlib import Path

from streamgroup.base.storage.storage_path import Entry, StoragePath, locate

__all__ = ["has_magic", "matching"]

_ANY_FOLDERS = "**"


def has_magic(place: StoragePath) -> bool:
    """Reports whether a path is a pattern."""
    return glob.has_magic(place.path)


def matching(pattern: StoragePath) -> list[Entry]:
    """Finds the files and folders that match, sorted by the bytes of their paths.

    Names that begin with a dot match only a piece of the pattern that begins with one.
    """
    if pattern.is_local and _ANY_FOLDERS in pattern.text.split("/"):
        # Python's own follows links back to the folders that they lie in, dozens of times.
        root = StoragePath("/", "/") if pattern.text.startswith("/") else StoragePath(str(Path.cwd()), "")
        found = _once(_below(root, pattern.text.strip("/").split("/")))
    elif pattern.is_local:
        # As text, so that relative patterns find relative paths.
        places = map(locate, glob.glob(pattern.text, recursive=True))  # noqa: PTH207 (the pattern may be absolute)
        found = [Entry(place, place.is_dir(), *place.sizes()) for place in places]
    else:
        pieces = pattern.path.split("/")
        root = pattern
        for _ in pieces:
            root = root.parent
        found = _once(_below(root, pieces))
    return sorted(found, key=lambda entry: entry.place.path.encode("utf-8", "surrogateescape"))


def _once(entries: Iterable[Entry]) -> list[Entry]:
    return list({entry.place: entry for entry in entries}.values())


def _below(folder: StoragePath, pieces: list[str], above: tuple[StoragePath, ...] = ()) -> Iterator[Entry]:
    """Finds what matches the pieces of a pattern from a folder on; `above` are the folders that `**` stands for."""
    first, *rest = pieces
    if first == _ANY_FOLDERS:
        own = folder.resolved()
        if own in above:  # a link back to a folder that it lies in
            return
        if rest:
            yield from _below(folder, rest)
        for entry in folder.entries():
            if not entry.place.name.startswith("."):
                if not rest:
                    yield entry
                if entry.is_dir:
                    yield from _below(entry.place, pieces, (*above, own))
    elif not glob.has_magic(first):
        place = folder / first
        if rest:
            yield from _below(place, rest)
        elif place.exists():
            yield Entry(place, place.is_dir(), *place.sizes())
    else:
        for entry in folder.entries():
            name = entry.place.name
            if fnmatch.fnmatchcase(name, first) and (first.startswith(".") or not name.startswith(".")):
                if not rest:
                    yield entry
                elif entry.is_dir:
                    yield from _below(entry.place, rest)
