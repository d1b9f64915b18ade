"""Compressed files as streams of the bytes that were packed."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import zstandard

from streamgroup.base.storage.places import locate
from streamgroup.ingest.pipeline.interrupt import check_stopped

__all__ = [
    "FAR",
    "HEAD",
    "TAR",
    "Ahead",
    "Pieces",
    "Readable",
    "compression_of",
    "open_raw",
    "packed_as",
    "unpacked",
    "whole",
]

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
TAR = slice(257, 262)
HEAD = 512
# A server that compresses what it sends makes a .gz in a .gz.
_LAYERS = 2
# Compressed bytes unpacked at a time; little, as they may be thousands of times as many.
_PACKED = 16 << 10
# Memory that zstd may take for what matches reach back to: that of `--long=31`, the largest.
_WINDOW = 1 << 31
# Bytes that are read at once.
FAR = 1 << 20


def open_raw(path: str) -> Any:
    """Open the bytes of a file (a path or URL) as they are; what an object store sends is held by megabytes."""
    place = locate(path)
    return place.open_input() if place.is_local else place.open_seekable()


def packed_as(head: bytes) -> str | None:
    """Detect the compression or archive format by the first HEAD bytes of a file; None if it is not known here."""
    found = next((name for magic, name in _MAGIC if head.startswith(magic)), None)
    return "tar" if found is None and head[TAR] == b"ustar" else found


def compression_of(path: str) -> str | None:
    """Detect how a file is packed, by its first bytes: gzip, bz2, zstd, xz, lz4, zip, tar or None."""
    with open_raw(path) as file:
        return packed_as(bytes(file.read(HEAD)))


class Pieces:
    """A file made of pieces of any size; `next_piece` returns the next one, b"" at the end."""

    def __init__(self, next_piece: Callable[[], bytes]) -> None:
        self._next = next_piece
        self._held = memoryview(b"")

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, none only at the end."""
        if not len(self._held):
            self._held = memoryview(self._next())
        piece, self._held = self._held[:size], self._held[size:]
        return bytes(piece)


def _frames(file: Any, start: Callable[[], Any]) -> Pieces:
    """Unpack frames (members, streams) one after the other, with zeros between and behind them, as tapes have them."""
    state: list[Any] = [None, b""]

    def following() -> bytes:
        while True:
            check_stopped()
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

    return Pieces(following)


def _zstd() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()


_FRAMES: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(31),
    "bz2": bz2.BZ2Decompressor,
    "zstd": _zstd,
    "xz": lzma.LZMADecompressor,
}


class Ahead:
    """A file of which the next bytes can be looked at before they are read."""

    def __init__(self, file: Any) -> None:
        self._file, self._held = file, b""

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end, and keep them to be read."""
        missing = size - len(self._held)
        if missing > 0:
            self._held += whole(self._file, missing)
        return self._held[:size]

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, none only at the end."""
        if self._held:
            piece, self._held = self._held[:size], self._held[size:]
            return piece
        return bytes(self._file.read(size))


def whole(file: Any, size: int) -> bytes:
    """Read `size` bytes, fewer only at the end."""
    pieces = []
    while size > 0 and (piece := bytes(file.read(size))):
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def unpacked(file: Any) -> Ahead:
    """Unpack a compressed file, also one that is compressed twice; any other is returned as it is."""
    ahead = Ahead(file)
    for _ in range(_LAYERS):
        kind = packed_as(ahead.peek(HEAD))
        if kind in _FRAMES:
            ahead = Ahead(_frames(ahead, _FRAMES[kind]))
        elif kind == "lz4":
            ahead = Ahead(pa.CompressedInputStream(pa.PythonFile(Readable(ahead), "r"), "lz4"))
    return ahead


class Readable:
    """What pyarrow takes for a Python file."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end."""
        check_stopped()
        return whole(self._file, size)

    def close(self) -> None:
        """Do nothing: the caller that opened the file closes it."""
