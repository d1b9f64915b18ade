"""Folders that a run writes: atomic on a local disk, and in an object store as nearly as possible.

An object store cannot rename. So files are written where they belong, and the file that makes a folder one of ours
(`trace.json`) comes last: without it the folder is none. While it is written it holds `_unfinished`, by which a
later run knows that what a killed one left there may go.
"""

import contextlib
import json
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from streamgroup.base.errors import EnvironmentFault, StreamgroupError, UsageError
from streamgroup.base.storage.atomic_local_directories import staged_directory
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.base.version import VERSION

__all__ = ["UNFINISHED", "is_unfinished", "remove_old", "staged_output"]

UNFINISHED = "_unfinished"


def is_unfinished(folder: StoragePath) -> bool:
    """Reports whether a folder is still written to, or what did so was interrupted."""
    return (folder / UNFINISHED).is_file()


@contextlib.contextmanager
def staged_output(
    output: StoragePath | Path, *, overwrite: bool, marker: str, keep_old: bool = False
) -> Iterator[StoragePath]:
    """Yields the place to write a folder's files into; `marker` is the file that makes it one of ours, written last.

    On a local disk that is a new folder beside, see `staged_directory`. Elsewhere it is `output` itself: what a folder
    of ours held goes first, its marker before all else, and when the block fails all that was written goes. With
    `keep_old` the caller calls `remove_old` before it writes the first file: a failure until then leaves the old.
    UsageError when the place is taken (without `overwrite`) or holds what is not ours.
    """
    place = locate(output)
    if not place.is_local:
        with _written_in_place(place, overwrite=overwrite, marker=marker):
            if not keep_old:
                remove_old(place, marker=marker)
            yield place
        return
    with staged_directory(place.local, overwrite=overwrite, marker=marker) as folder:
        yield locate(folder)
        for left in folder.rglob(".*.partial-*"):
            # A task that was killed, and run again by another process, has left it.
            left.unlink()


@contextlib.contextmanager
def _written_in_place(place: StoragePath, *, overwrite: bool, marker: str) -> Iterator[None]:
    _check_remote(place, overwrite=overwrite, marker=marker)
    try:
        # First, so that an incomplete folder is marked as such at any moment.
        _begin(place)
        yield
        if not (place / marker).is_file():
            raise EnvironmentFault(f"{place / marker} is not there though it was written", "is something removing it?")
        (place / UNFINISHED).remove()
    except BaseException:
        with contextlib.suppress(StreamgroupError):
            if (place / marker).is_file():  # the old folder, which nothing has touched, or a new one that is whole
                (place / UNFINISHED).remove()
            else:
                _remove_new(place, marker=marker)
        raise


def _remove_new(place: StoragePath, *, marker: str) -> None:
    """Removes what a failed block wrote, and `_unfinished` last of all.

    It stays when files were added meanwhile, by cancelled tasks that end a little later: without it the folder would
    not be known as ours.
    """
    remove_old(place, marker=marker)
    if all(entry.place.name == UNFINISHED for entry in place.entries()):
        place.remove_tree()


def remove_old(place: StoragePath, *, marker: str) -> None:
    """Removes what a folder that `staged_output` gave held before, its marker first; nothing on a local disk."""
    if place.is_local:
        return
    (place / marker).remove()
    for entry in place.entries():
        if entry.is_dir:
            entry.place.remove_tree()
        elif entry.place.name != UNFINISHED:
            entry.place.remove()


def _begin(place: StoragePath) -> None:
    note = {
        "program_version": VERSION,
        "host": platform.node(),
        "process": os.getpid(),
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with (place / UNFINISHED).writing() as file:
        file.write(json.dumps(note, indent=2).encode() + b"\n")


def _check_remote(place: StoragePath, *, overwrite: bool, marker: str) -> None:
    """Raises a UsageError when the place may not be taken."""
    names = {entry.place.name for entry in place.entries()}
    if not names:
        if place.is_file():
            raise UsageError(f"{place} is a file", "name another output")
        return
    if marker not in names and UNFINISHED not in names:
        raise UsageError(f"{place} holds no {marker}, so it is not ours to replace", "name another output")
    if overwrite:
        return
    if marker in names:
        raise UsageError(f"{place} exists already", "name another output, or add --overwrite")
    raise UsageError(
        f"{place} holds what an interrupted run left, or another run writes there",
        "add --overwrite to replace it, or name another output",
    )
