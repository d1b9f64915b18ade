"""Files of bytes as they were before they were packed: compressed, in an archive, or in another encoding than UTF-8."""

import codecs
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import zstandard

from streamgroup.base.errors import DataError
from streamgroup.base.storage.places import locate
from streamgroup.ingest.files.archives import of_tar, of_zip
from streamgroup.ingest.files.compression import (
    FAR,
    HEAD,
    TAR,
    Ahead,
    Pieces,
    compression_of,
    open_raw,
    packed_as,
    unpacked,
    whole,
)

__all__ = ["ANY_PLACE", "Source", "compression_of", "open_raw", "sources"]

# Encodings of which lines can be found without reading what is before: a byte 10 is always a line feed.
ANY_PLACE = frozenset({"utf-8", "latin-1", "cp1252"})

_OTHERS = ((b"\x1f\x9d", "compress (.Z)"), (b"7z\xbc\xaf\x27\x1c", "7-Zip"), (b"Rar!\x1a\x07", "RAR"))
_LINE_ENDS = 64 << 10
_DAMAGE = (
    OSError, EOFError, ValueError, struct.error, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError,
    zstandard.ZstdError,
)  # fmt: skip


def _recoded(file: Any, encoding: str) -> Pieces:
    """Write a text in another encoding as UTF-8; what cannot be decoded becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    ended = False

    def following() -> bytes:
        nonlocal ended
        while not ended:
            data = file.read(FAR)
            ended = not data
            if piece := decoder.decode(data, final=ended).encode(errors="replace"):
                return piece
        return b""

    return Pieces(following)


class Source:
    """The bytes of a file, or of one member of an archive: unpacked, as UTF-8 or in an encoding of single bytes.

    `label` names it for people, `member` within its archive ("" for any other file). DataError names what is damaged.
    """

    def __init__(self, file: Any, path: str, member: str, label: str) -> None:
        """Take a file with `read`."""
        self.path, self.member, self.label = path, member, label
        self._file = Ahead(file)
        # Whether lines end with carriage returns alone, or with two of them before the line feed.
        self.returns = self.doubled = False

    def peek(self, size: int) -> bytes:
        """Look at the next `size` bytes, fewer only at the end."""
        with damage_reported(self.path):
            return self._ended(self._file.peek(size))

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end."""
        with damage_reported(self.path):
            return self._ended(whole(self._file, size))

    def _ended(self, data: bytes) -> bytes:
        return data.replace(b"\r", b"\n") if self.returns else data


@contextmanager
def damage_reported(path: str) -> Iterator[None]:
    """Raise errors of damaged packed data as a DataError that names the file."""
    try:
        yield
    except NotImplementedError as error:
        raise DataError(f"{path}: {_line(error)}", "unpack it") from None
    except _DAMAGE as error:
        locate(path).blame(error)
        raise DataError(
            f"{path}: the compressed data are cut off or damaged ({_line(error)})", "get the file again"
        ) from None


def _line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def sources(path: str, start: int = 0, encoding: str | None = None) -> Iterator[Source]:
    """Yield the content of a file from a byte on: decompressed, or the members of an archive by name.

    With an `encoding` they are text: as UTF-8, unless of single bytes, and with line feeds. `start` is for files that
    are not packed. Each source ends with the next one. DataError when the archive holds no file, or is damaged, or
    packed in a way that is not known here.
    """
    kind = None if start else compression_of(path)
    with open_raw(path) as raw, damage_reported(path):
        if kind == "zip":
            yield from _made(of_zip(raw, path), path, encoding)
            return
        if start:
            ends = _ends(Ahead(raw).peek) if encoding else None
            raw.seek(start)
            yield _source(raw, path, "", path, encoding, ends=ends)
            return
        file = unpacked(raw)
        head = file.peek(HEAD)
        if head[TAR] == b"ustar":
            yield from _made(of_tar(path, raw if kind == "tar" else None), path, encoding)
            return
        _check_known(head, path)
        yield _source(file, path, "", path, encoding)


def _check_known(head: bytes, label: str) -> None:
    """Raise a DataError for what begins as a packed file that is not unpacked here."""
    other = next((name for magic, name in _OTHERS if head.startswith(magic)), None)
    if other is not None:
        raise DataError(f"{label}: packed by {other}, which is not known here", "unpack it")
    kind = packed_as(head)
    if kind in ("zip", "tar"):
        raise DataError(f"{label}: a {kind} file in another file", "unpack it")


def _made(members: Iterator[tuple[str, Any, int]], path: str, encoding: str | None) -> Iterator[Source]:
    """Open the members of an archive that hold something; one alone goes by the name of the archive."""
    number = 0
    for name, file, count in members:
        content = unpacked(file)
        _check_known(content.peek(HEAD), f"{path}/{name}")
        if content.peek(1):
            number += 1
            label = path if count == 1 else f"{path}/{name}"
            yield _source(content, path, name, label, encoding)
    if not number:
        raise DataError(f"{path}: no rows in it", "give a file that has some")


def _source(
    file: Any,
    path: str,
    member: str,
    label: str,
    encoding: str | None,
    *,
    ends: tuple[bool, bool] | None = None,
) -> Source:
    plain = encoding is None or encoding in ANY_PLACE
    made = Source(file if plain else _recoded(file, str(encoding)), path, member, label)
    if encoding is not None:
        made.returns, made.doubled = ends or _ends(made.peek)
    return made


def _ends(peek: Callable[[int], bytes]) -> tuple[bool, bool]:
    """Detect lines that end with a carriage return alone, as on old Macs, or with two and a line feed."""
    head = peek(_LINE_ENDS)
    feed = head.find(b"\n")
    if feed >= 0:
        return False, head[max(feed - 2, 0) : feed] == b"\r\r"
    return b"\r" in head and b"\n" not in peek(FAR), False
