"""Input files as streams of bytes: decompressed, taken out of archives, and re-encoded as UTF-8."""

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
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.files.archives import tar_members, zip_members
from streamgroup.ingest.files.compression import (
    MAGIC_BYTES,
    READ_BYTES,
    TAR_MAGIC,
    ChunkedFile,
    PeekableFile,
    compression_of,
    decompressed,
    detect_format,
    open_raw,
    read_full,
)

__all__ = ["SPLITTABLE_ENCODINGS", "Source", "compression_of", "open_raw", "open_sources"]

# Encodings in which a byte 10 is always a line feed, so that a file can be read from any place.
SPLITTABLE_ENCODINGS = frozenset({"utf-8", "latin-1", "cp1252"})

_UNSUPPORTED = ((b"\x1f\x9d", "compress (.Z)"), (b"7z\xbc\xaf\x27\x1c", "7-Zip"), (b"Rar!\x1a\x07", "RAR"))
_LINE_END_BYTES = 64 << 10
_DAMAGE = (
    OSError, EOFError, ValueError, struct.error, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError,
    zstandard.ZstdError,
)  # fmt: skip


def _as_utf8(file: Any, encoding: str) -> ChunkedFile:
    """Write a text in another encoding as UTF-8; what cannot be decoded becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    ended = False

    def following() -> bytes:
        nonlocal ended
        while not ended:
            data = file.read(READ_BYTES)
            ended = not data
            if piece := decoder.decode(data, final=ended).encode(errors="replace"):
                return piece
        return b""

    return ChunkedFile(following)


class Source:
    """The bytes of a file, or of one member of an archive: decompressed, in UTF-8 or an encoding of single bytes.

    `label` names it for people, `member` within its archive ("" for any other file). DataError names what is damaged.
    """

    def __init__(self, file: Any, path: str, member: str, label: str) -> None:
        """Take a file with `read`."""
        self.path, self.member, self.label = path, member, label
        self._file = PeekableFile(file)
        # Whether lines end with carriage returns alone, or with two of them before the line feed.
        self.returns = self.doubled = False

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end, without consuming them."""
        with damage_reported(self.path):
            return self._ended(self._file.peek(size))

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end."""
        with damage_reported(self.path):
            return self._ended(read_full(self._file, size))

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


def open_sources(path: str, start: int = 0, encoding: str | None = None) -> Iterator[Source]:
    """Yield the content of a file from a byte on: decompressed, or the members of an archive by name.

    With an `encoding` they are text: as UTF-8, unless of single bytes, and with line feeds. `start` is for files that
    are not packed. Each source ends with the next one. DataError when the archive holds no file, or is damaged, or
    packed in a way that is not supported.
    """
    kind = None if start else compression_of(path)
    with open_raw(path) as raw, damage_reported(path):
        if kind == "zip":
            yield from _open_members(zip_members(raw, path), path, encoding)
            return
        if start:
            ends = _line_ends(PeekableFile(raw).peek) if encoding else None
            raw.seek(start)
            yield _open_source(raw, path, "", path, encoding, ends=ends)
            return
        file = decompressed(raw)
        head = file.peek(MAGIC_BYTES)
        if head[TAR_MAGIC] == b"ustar":
            yield from _open_members(tar_members(path, raw if kind == "tar" else None), path, encoding)
            return
        _check_known(head, path)
        yield _open_source(file, path, "", path, encoding)


def _check_known(head: bytes, label: str) -> None:
    """Raise a DataError for a compressed file or an archive that is not supported."""
    other = next((name for magic, name in _UNSUPPORTED if head.startswith(magic)), None)
    if other is not None:
        raise DataError(f"{label}: packed by {other}, which is not supported", "unpack it")
    kind = detect_format(head)
    if kind in ("zip", "tar"):
        raise DataError(f"{label}: a {kind} file in another file", "unpack it")


def _open_members(members: Iterator[tuple[str, Any, int]], path: str, encoding: str | None) -> Iterator[Source]:
    """Open the members of an archive that are not empty; a single one has the name of the archive."""
    number = 0
    for name, file, count in members:
        content = decompressed(file)
        _check_known(content.peek(MAGIC_BYTES), f"{path}/{name}")
        if content.peek(1):
            number += 1
            label = path if count == 1 else f"{path}/{name}"
            yield _open_source(content, path, name, label, encoding)
    if not number:
        raise DataError(f"{path}: no rows in it", "give a file that has some")


def _open_source(
    file: Any,
    path: str,
    member: str,
    label: str,
    encoding: str | None,
    *,
    ends: tuple[bool, bool] | None = None,
) -> Source:
    plain = encoding is None or encoding in SPLITTABLE_ENCODINGS
    made = Source(file if plain else _as_utf8(file, str(encoding)), path, member, label)
    if encoding is not None:
        made.returns, made.doubled = ends or _line_ends(made.peek)
    return made


def _line_ends(peek: Callable[[int], bytes]) -> tuple[bool, bool]:
    """Detect lines that end with a carriage return alone, as on old Macs, or with two and a line feed."""
    head = peek(_LINE_END_BYTES)
    feed = head.find(b"\n")
    if feed >= 0:
        return False, head[max(feed - 2, 0) : feed] == b"\r\r"
    return b"\r" in head and b"\n" not in peek(READ_BYTES), False
