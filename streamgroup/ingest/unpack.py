"""Files of bytes as they were before they were packed: compressed, in an archive, or in another encoding than UTF-8."""

import bz2
import codecs
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import zstandard

from streamgroup.base.errors import DataError
from streamgroup.base.storage import locate

__all__ = ["ANY_PLACE", "Source", "compression_of", "open_raw", "sources"]

# Encodings of which lines can be found without reading what is before: a byte 10 is always a line feed.
ANY_PLACE = frozenset({"utf-8", "latin-1", "cp1252"})

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    # Frames to skip, of which zstd knows 16 kinds; pzstd begins with one.
    *((bytes([0x50 + kind]) + b"\x2a\x4d\x18", "zstd") for kind in range(16)),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
)
_OTHERS = ((b"\x1f\x9d", "compress (.Z)"), (b"7z\xbc\xaf\x27\x1c", "7-Zip"), (b"Rar!\x1a\x07", "RAR"))
_TAR = slice(257, 262)
_HEAD = 512
# A server that compresses what it sends makes a .gz in a .gz.
_LAYERS = 2
# Compressed bytes unpacked at a time; little, as they may be thousands of times as many.
_PACKED = 16 << 10
# Memory that zstd may take for what matches reach back to: that of `--long=31`, the largest.
_WINDOW = 1 << 31
_LINE_ENDS = 64 << 10
_FAR = 1 << 20
_DAMAGE = (
    OSError, EOFError, ValueError, struct.error, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError,
    zstandard.ZstdError,
)  # fmt: skip


def open_raw(path: str) -> Any:
    """Open the bytes of a file (a path or URL) as they are; what an object store sends is held by megabytes."""
    place = locate(path)
    return place.open_input() if place.is_local else place.open_seekable()


def _packed_as(head: bytes) -> str | None:
    found = next((name for magic, name in _MAGIC if head.startswith(magic)), None)
    return "tar" if found is None and head[_TAR] == b"ustar" else found


def compression_of(path: str) -> str | None:
    """Tell how a file is packed, by its first bytes: gzip, bz2, zstd, xz, lz4, zip, tar or None."""
    with open_raw(path) as file:
        return _packed_as(bytes(file.read(_HEAD)))


class _Pieces:
    """A file made of pieces of any size that come one after the other; `next_piece` gives b"" at the end."""

    def __init__(self, next_piece: Callable[[], bytes]) -> None:
        self._next = next_piece
        self._held = memoryview(b"")

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, none only at the end."""
        if not len(self._held):
            self._held = memoryview(self._next())
        piece, self._held = self._held[:size], self._held[size:]
        return bytes(piece)


def _frames(file: Any, start: Callable[[], Any]) -> _Pieces:
    """Unpack frames (members, streams) one after the other, with zeros between and behind them, as tapes have them."""
    state: list[Any] = [None, b""]

    def following() -> bytes:
        while True:
            unpacker, rest = state
            rest = rest or bytes(file.read(_PACKED))
            if unpacker is None:
                padded, rest = bool(rest), rest.lstrip(b"\0")
                if not rest and padded:
                    state[1] = b""
                    continue
                if not rest:
                    return b""
                unpacker = start()
            elif not rest:
                raise EOFError("it ends too early")
            piece = unpacker.decompress(rest)
            state[:] = [None, unpacker.unused_data] if unpacker.eof else [unpacker, b""]
            if piece:
                return bytes(piece)

    return _Pieces(following)


def _zstd() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()


_FRAMES: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(31),
    "bz2": bz2.BZ2Decompressor,
    "zstd": _zstd,
    "xz": lzma.LZMADecompressor,
}


def _recoded(file: Any, encoding: str) -> _Pieces:
    """Write a text in another encoding as UTF-8; what cannot be decoded becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    ended = False

    def following() -> bytes:
        nonlocal ended
        while not ended:
            data = file.read(_FAR)
            ended = not data
            if piece := decoder.decode(data, final=ended).encode(errors="replace"):
                return piece
        return b""

    return _Pieces(following)


class _Ahead:
    """A file of which the next bytes can be looked at before they are read."""

    def __init__(self, file: Any) -> None:
        self._file, self._held = file, b""

    def peek(self, size: int) -> bytes:
        """Give the next `size` bytes, fewer only at the end, and keep them to be read."""
        missing = size - len(self._held)
        if missing > 0:
            self._held += _whole(self._file, missing)
        return self._held[:size]

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, none only at the end."""
        if self._held:
            piece, self._held = self._held[:size], self._held[size:]
            return piece
        return bytes(self._file.read(size))


def _whole(file: Any, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := bytes(file.read(size))):
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _unpacked(file: Any) -> _Ahead:
    """Unpack a compressed file, packed twice at need, or give it as it is."""
    ahead = _Ahead(file)
    for _ in range(_LAYERS):
        kind = _packed_as(ahead.peek(_HEAD))
        if kind in _FRAMES:
            ahead = _Ahead(_frames(ahead, _FRAMES[kind]))
        elif kind == "lz4":
            ahead = _Ahead(pa.CompressedInputStream(pa.PythonFile(_Readable(ahead), "r"), "lz4"))
    return ahead


class _Readable:
    """What pyarrow takes for a Python file."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        return _whole(self._file, size)

    def close(self) -> None:
        """Leave the file to whoever opened it."""


class _Places:
    """What zipfile takes for a file: a place before its beginning is an OSError, which pyarrow's is not."""

    def __init__(self, file: Any) -> None:
        self.read, self.tell, self.seekable = file.read, file.tell, file.seekable
        self._seek = file.seek

    def seek(self, place: int, whence: int = 0) -> int:
        try:
            return int(self._seek(place, whence))
        except ValueError as error:
            raise OSError(str(error)) from None


class Source:
    """The bytes of a file, or of one member of an archive: unpacked, as UTF-8 or in an encoding of single bytes.

    `label` names it for people, `member` within its archive ("" for any other file). DataError names what is damaged.
    """

    def __init__(self, file: Any, path: str, member: str, label: str) -> None:
        """Take a file with `read`."""
        self.path, self.member, self.label = path, member, label
        self._file = _Ahead(file)
        # Whether lines end with carriage returns alone, or with two of them before the line feed.
        self.returns = self.doubled = False

    def peek(self, size: int) -> bytes:
        """Look at the next `size` bytes, fewer only at the end."""
        with told(self.path):
            return self._ended(self._file.peek(size))

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end."""
        with told(self.path):
            return self._ended(_whole(self._file, size))

    def _ended(self, data: bytes) -> bytes:
        return data.replace(b"\r", b"\n") if self.returns else data


@contextmanager
def told(path: str) -> Iterator[None]:
    """Turn what goes wrong with packed data into a DataError that names the file."""
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
    """Give what a file holds from a byte on: itself, unpacked, or the members of an archive by name.

    With an `encoding` they are text: as UTF-8, unless of single bytes, and with line feeds. `start` is for files that
    are not packed. Each source ends with the next one. DataError when the archive holds no file, or is damaged, or
    packed in a way that is not known here.
    """
    kind = compression_of(path)
    with open_raw(path) as raw, told(path):
        if kind == "zip":
            yield from _made(_of_zip(raw, path), path, encoding)
            return
        if start:
            raw.seek(start)
            yield _source(raw, path, "", path, encoding, ends=_first_ends(path) if encoding else None)
            return
        file = _unpacked(raw)
        head = file.peek(_HEAD)
        if head[_TAR] == b"ustar":
            yield from _made(_of_tar(path, raw if kind == "tar" else None), path, encoding)
            return
        other = next((name for magic, name in _OTHERS if head.startswith(magic)), None)
        if other is not None:
            raise DataError(f"{path}: packed by {other}, which is not known here", "unpack it")
        yield _source(file, path, "", path, encoding)


def _made(members: Iterator[tuple[str, Any, int]], path: str, encoding: str | None) -> Iterator[Source]:
    """Open the members of an archive that hold something; one alone goes by the name of the archive."""
    number = 0
    for name, file, count in members:
        content = _unpacked(file)
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
    """Tell by the beginning whether lines end with carriage returns alone, as on old Macs, or with two and a feed."""
    head = peek(_LINE_ENDS)
    feed = head.find(b"\n")
    if feed >= 0:
        return False, head[max(feed - 2, 0) : feed] == b"\r\r"
    return b"\r" in head and b"\n" not in peek(_FAR), False


def _first_ends(path: str) -> tuple[bool, bool]:
    with open_raw(path) as file:
        return _ends(_Ahead(file).peek)


def _meant(name: str) -> bool:
    """Tell whether a member is one that people put there: the Finder of macOS puts files of its own beside those."""
    parts = name.split("/")
    return "__MACOSX" not in parts and not parts[-1].startswith("._")


def _check_members(path: str, kind: str, names: list[str]) -> None:
    if not names:
        raise DataError(f"{path}: a {kind} file with no file in it", "give a file that has some")
    if "[Content_Types].xml" in names:
        raise DataError(f"{path}: a file of Excel or another office program", "save it as CSV there")


def _of_zip(raw: Any, path: str) -> Iterator[tuple[str, Any, int]]:
    file: Any = _Places(raw)
    with zipfile.ZipFile(file) as archive:
        members = [
            member for member in archive.infolist() if not member.filename.endswith("/") and _meant(member.filename)
        ]
        _check_members(path, "zip", [member.filename for member in members])
        for member in sorted(members, key=lambda member: os.fsencode(member.filename)):
            if member.flag_bits & 1:
                raise DataError(f"{path}: {member.filename} in it is encrypted", "unpack it")
            with archive.open(member) as content:
                yield member.filename, content, len(members)


def _of_tar(path: str, plain: Any) -> Iterator[tuple[str, Any, int]]:
    """Give the members of a tar file by name; of a compressed one in as many passes as it takes."""
    if plain is not None:
        plain.seek(0)
        with tarfile.open(fileobj=plain, mode="r:") as archive:
            members = [member for member in archive if member.isreg() and _meant(member.name)]
            _check_members(path, "tar", [member.name for member in members])
            for member in sorted(members, key=lambda member: os.fsencode(member.name)):
                yield member.name, archive.extractfile(member), len(members)
        return
    with _stream(path) as archive:
        names = [member.name if member.isreg() and _meant(member.name) else "" for member in archive]
    order = sorted((place for place, name in enumerate(names) if name), key=lambda place: os.fsencode(names[place]))
    _check_members(path, "tar", [names[place] for place in order])
    done = 0
    while done < len(order):
        with _stream(path) as archive:
            for place, member in enumerate(archive):
                if done < len(order) and place == order[done]:
                    yield member.name, archive.extractfile(member), len(order)
                    done += 1


@contextmanager
def _stream(path: str) -> Iterator[tarfile.TarFile]:
    with open_raw(path) as raw:
        file: Any = _Readable(_unpacked(raw))
        with tarfile.open(fileobj=file, mode="r|", bufsize=_FAR) as archive:
            yield archive
