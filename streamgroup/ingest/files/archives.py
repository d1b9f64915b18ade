"""The members of zip and tar files, in the order of their names."""

import itertools
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamgroup.base.errors import DataError, EnvironmentFault
from streamgroup.ingest.files import compression
from streamgroup.ingest.files.compression import READ_BYTES, ArrowFile, decompressed

__all__ = ["tar_members", "zip_members"]

# Passes through a compressed tar file to read its members by name; if it takes more, it is unpacked to disk.
_MAX_PASSES = 2


class _ZipInput:
    """A file as zipfile needs it: a seek before its beginning raises OSError, which pyarrow's does not."""

    def __init__(self, file: Any) -> None:
        self.read, self.tell, self.seekable = file.read, file.tell, file.seekable
        self._seek = file.seek

    def seek(self, place: int, whence: int = 0) -> int:
        try:
            return int(self._seek(place, whence))
        except ValueError as error:
            raise OSError(str(error)) from None


def _is_data(name: str) -> bool:
    """Report whether a member is data; the Finder of macOS adds files of its own."""
    parts = name.split("/")
    return "__MACOSX" not in parts and not parts[-1].startswith("._")


def _check_members(path: str, kind: str, names: list[str]) -> None:
    if not names:
        raise DataError(f"{path}: a {kind} file with no file in it", "give a file that has some")
    if "[Content_Types].xml" in names:
        raise DataError(f"{path}: a file of Excel or another office program", "save it as CSV there")


def zip_members(raw: Any, path: str) -> Iterator[tuple[str, Any, int]]:
    """Yield the members of a zip file by name: the name, an open file, and how many there are."""
    file: Any = _ZipInput(raw)
    with zipfile.ZipFile(file) as archive:
        members = [
            member for member in archive.infolist() if not member.filename.endswith("/") and _is_data(member.filename)
        ]
        _check_members(path, "zip", [member.filename for member in members])
        for member in sorted(members, key=lambda member: os.fsencode(member.filename)):
            if member.flag_bits & 1:
                raise DataError(f"{path}: {member.filename} in it is encrypted", "unpack it")
            with archive.open(member) as content:
                yield member.filename, content, len(members)


def tar_members(path: str, plain: Any) -> Iterator[tuple[str, Any, int]]:
    """Yield the members of a tar file by name; a compressed one is unpacked to disk if that takes many passes."""
    if plain is not None:
        plain.seek(0)
        with tarfile.open(fileobj=plain, mode="r:") as archive:
            yield from _sorted_members(path, archive)
        return
    with _stream(path) as archive:
        names = _names(archive)
    order = _order(path, names)
    passes = 1 + sum(following < place for place, following in itertools.pairwise(order))
    done = 0
    # One pass at least: to detect the layout of an archive takes its first member only.
    for _ in range(passes if passes <= _MAX_PASSES else 1):
        with _stream(path) as archive:
            for place, member in enumerate(archive):
                if place == order[done]:
                    yield member.name, archive.extractfile(member), len(order)
                    done += 1
                if done == len(order) or order[done] < place:
                    break
    if done < len(order):
        with _on_disk(path) as file, tarfile.open(fileobj=file, mode="r:") as archive:
            yield from _sorted_members(path, archive, done)


def _names(archive: tarfile.TarFile) -> list[str]:
    """List the names of the members; those that are not read are ""."""
    return [member.name if member.isreg() and _is_data(member.name) else "" for member in archive]


def _order(path: str, names: list[str]) -> list[int]:
    """Return the places of the members that are read, in the order of their names."""
    order = sorted((place for place, name in enumerate(names) if name), key=lambda place: os.fsencode(names[place]))
    _check_members(path, "tar", [names[place] for place in order])
    return order


def _sorted_members(path: str, archive: tarfile.TarFile, done: int = 0) -> Iterator[tuple[str, Any, int]]:
    order, members = _order(path, _names(archive)), archive.getmembers()
    for place in order[done:]:
        yield members[place].name, archive.extractfile(members[place]), len(order)


@contextmanager
def _on_disk(path: str) -> Iterator[Any]:
    """Unpack a file to an unnamed temporary one, which is removed when the process ends at the latest."""
    with tempfile.TemporaryFile(prefix="streamgroup-") as file:
        with compression.open_raw(path) as raw:
            content = decompressed(raw)
            while piece := content.read(READ_BYTES):
                _write(file, piece, path)
        file.seek(0)
        yield file


def _write(file: Any, piece: bytes, path: str) -> None:
    try:
        file.write(piece)
    except OSError as error:
        raise EnvironmentFault(
            f"cannot unpack {path} in {tempfile.gettempdir()}: {error.strerror}", "set TMPDIR to a larger disk"
        ) from None


@contextmanager
def _stream(path: str) -> Iterator[tarfile.TarFile]:
    with compression.open_raw(path) as raw:
        file: Any = ArrowFile(decompressed(raw))
        with tarfile.open(fileobj=file, mode="r|", bufsize=READ_BYTES) as archive:
            yield archive
