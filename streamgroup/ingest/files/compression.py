"""Decompression of files, whatever the format, as streams of bytes."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import zstandard

from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.runners.stop_threads import check_stopped

__all__ = [
    "MAGIC_BYTES",
    "READ_BYTES",
    "TAR_MAGIC",
    "ArrowFile",
    "ChunkedFile",
    "PeekableFile",
    "compression_of",
    "decompressed",
    "detect_format",
    "open_raw",
    "read_full",
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
TAR_MAGIC = slice(257, 262)
MAGIC_BYTES = 512
# A server that compresses what it sends makes a .gz in a .gz.
_MAX_LAYERS = 2
# Compressed bytes decompressed at a time; few, as they may expand a thousandfold.
_CHUNK_BYTES = 16 << 10
# Largest window of zstd: that of `--long=31`.
_WINDOW = 1 << 31
# Bytes read at a time.
READ_BYTES = 1 << 20


def open_raw(path: str) -> Any:
    """Open the bytes of a file (a path or URL) as they are; those of an object store with a buffer."""
    place = locate(path)
    return place.open_input() if place.is_local else place.open_seekable()


def detect_format(head: bytes) -> str | None:
    """Detect the compression or archive format by the first HEAD bytes of a file; None if it is not known."""
    found = next((name for magic, name in _MAGIC if head.startswith(magic)), None)
    return "tar" if found is None and head[TAR_MAGIC] == b"ustar" else found


def compression_of(path: str) -> str | None:
    """Detect how a file is packed, by its first bytes: gzip, bz2, zstd, xz, lz4, zip, tar or None."""
    with open_raw(path) as file:
        return detect_format(bytes(file.read(MAGIC_BYTES)))


class ChunkedFile:
    """A file made of pieces of any size; `next_piece` returns the next one, b"" at the end."""

    def __init__(self, next_piece: Callable[[], bytes]) -> None:
        self._next = next_piece
        self._ahead = memoryview(b"")

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, none only at the end."""
        if not len(self._ahead):
            self._ahead = memoryview(self._next())
        piece, self._ahead = self._ahead[:size], self._ahead[size:]
        return bytes(piece)


def _decompress_frames(file: Any, start: Callable[[], Any]) -> ChunkedFile:
    """Decompress frames (members, streams) one after the other, skipping zeros between and after them, as on tapes."""
    state: list[Any] = [None, b""]

    def following() -> bytes:
        while True:
            check_stopped()
            unpacker, rest = state
            rest = rest or bytes(file.read(_CHUNK_BYTES))
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

    return ChunkedFile(following)


def _zstd() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()


_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(31),
    "bz2": bz2.BZ2Decompressor,
    "zstd": _zstd,
    "xz": lzma.LZMADecompressor,
}


class PeekableFile:
    """A file whose next bytes can be read without being consumed."""

    def __init__(self, file: Any) -> None:
        self._file, self._ahead = file, b""

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end, without consuming them."""
        missing = size - len(self._ahead)
        if missing > 0:
            self._ahead += read_full(self._file, missing)
        return self._ahead[:size]

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, none only at the end."""
        if self._ahead:
            piece, self._ahead = self._ahead[:size], self._ahead[size:]
            return piece
        return bytes(self._file.read(size))


def read_full(file: Any, size: int) -> bytes:
    """Read `size` bytes, fewer only at the end."""
    pieces = []
    while size > 0 and (piece := bytes(file.read(size))):
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def decompressed(file: Any) -> PeekableFile:
    """Unpack a compressed file, also one that is compressed twice; any other is returned as it is."""
    ahead = PeekableFile(file)
    for _ in range(_MAX_LAYERS):
        kind = detect_format(ahead.peek(MAGIC_BYTES))
        if kind in _DECOMPRESSORS:
            ahead = PeekableFile(_decompress_frames(ahead, _DECOMPRESSORS[kind]))
        elif kind == "lz4":
            ahead = PeekableFile(pa.CompressedInputStream(pa.PythonFile(ArrowFile(ahead), "r"), "lz4"))
    return ahead


class ArrowFile:
    """A file as pyarrow and tarfile need it: `read` returns all bytes asked for, and can be interrupted."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end."""
        check_stopped()
        return read_full(self._file, size)

    def close(self) -> None:
        """Do nothing: the caller that opened the file closes it."""
