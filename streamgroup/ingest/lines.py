"""Inputs made of lines: opening them (compressed or not), cutting them into blocks of whole lines, splits."""

import codecs
import lzma
import struct
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.base.storage import locate
from streamgroup.ingest.readers.protocol import Layout, Parsed, Reader, Split
from streamgroup.ingest.times import KNOWN, guess_format, resolve_format

__all__ = ["BLOCK_BYTES", "SPLIT_BYTES", "Block", "LineReader", "compression_of"]

SPLIT_BYTES = 64 << 20
BLOCK_BYTES = 8 << 20
# A line longer than this is taken for a file that has no lines.
MAX_LINE = 256 << 20
HEAD_BYTES = 1 << 20
HEAD_ROWS = 1000

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
)
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError)
_BOM = b"\xef\xbb\xbf"


def _keep_c1(error: UnicodeError) -> tuple[str, int]:
    """Map the five bytes that cp1252 leaves undefined to the control characters of the same number (as
    WHATWG).
    """
    assert isinstance(error, UnicodeDecodeError)
    return "".join(map(chr, error.object[error.start : error.end])), error.end


codecs.register_error("streamgroup-c1", _keep_c1)


class Block(NamedTuple):
    """A stretch of whole lines of an input: its bytes as array and as buffer; `at_start`, `final` of the
    file.
    """

    data: NDArray[np.uint8]
    buffer: pa.Buffer
    at_start: bool
    final: bool


def compression_of(path: str) -> str | None:
    """Tell how a file is compressed, by its first bytes: gzip, bz2, zstd, zip or None."""
    with locate(path).open_input() as file:
        head = file.read(4)
    return next((name for magic, name in _MAGIC if head.startswith(magic)), None)


class _Source:
    """Bytes of a file from a place on, decompressed, with errors that name the file."""

    def __init__(self, path: str, start: int) -> None:
        self.path = path
        with ExitStack() as closing:
            self._file = self._opened(closing, start)
            self._closing = closing.pop_all()

    def _opened(self, closing: ExitStack, start: int) -> Any:
        compression, place = compression_of(self.path), locate(self.path)
        if compression == "zip":
            with self._told():
                return _open_zip(self.path, closing)
        if compression is not None:
            packed = closing.enter_context(place.open_stream())
            return closing.enter_context(pa.CompressedInputStream(packed, compression))
        file = closing.enter_context(place.open_input())
        if start:
            file.seek(start)
        return file

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end."""
        pieces = []
        with self._told():
            while size and (piece := bytes(self._file.read(size))):
                pieces.append(piece)
                size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except NotImplementedError as error:
            raise DataError(f"{self.path}: {_line(error)}", "unpack it") from None
        except (OSError, EOFError, ValueError, struct.error, *_ZIP_ERRORS) as error:
            locate(self.path).blame(error)
            raise DataError(
                f"{self.path}: the compressed data are cut off or damaged ({_line(error)})",
                "get the file again",
            ) from None

    def close(self) -> None:
        self._closing.close()


def _open_zip(path: str, closing: ExitStack) -> Any:
    """Open the one file in a zip file; DataError when there is none or several, or it cannot be opened."""
    archive = closing.enter_context(zipfile.ZipFile(closing.enter_context(locate(path).open_seekable())))
    names = [member.filename for member in archive.infolist() if not member.filename.endswith("/")]
    # The Finder of macOS puts files of its own beside those meant.
    names = [name for name in names if not name.startswith("__MACOSX/")]
    if len(names) != 1:
        some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        what = f"{len(names)} files in it ({some})" if names else "no file in it"
        raise DataError(f"{path}: a zip file with {what}", "unpack it, and name its files")
    if archive.getinfo(names[0]).flag_bits & 1:
        raise DataError(f"{path}: {names[0]} in it is encrypted", "unpack it")
    return closing.enter_context(archive.open(names[0]))


def _line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _transcode(data: bytes, encoding: str) -> bytes:
    if encoding == "utf-8" or data.isascii():
        return data
    return data.decode(encoding, errors="streamgroup-c1").encode()


class LineReader(Reader):
    """A reader of lines: the subclass lays out the head of a file and parses blocks of whole lines."""

    unused: ClassVar[tuple[str, ...]] = ("delimiter", "header", "multiline")

    @property
    def splittable(self) -> bool:
        """Tell whether a line can be read without those before it."""
        return True

    @abstractmethod
    def look(self, head: Block, path: str) -> Layout:
        """Lay out a file from a block at its start (whole lines, unless the file is one long line)."""

    @abstractmethod
    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Turn a block into columns: at most `rows` records; `consumed` may leave a cut-off record for
        later.
        """

    def plan(self, path: str) -> list[tuple[int, int | None]]:
        """Cut a file every SPLIT_BYTES; one that is compressed, or whose lines hang together, stays whole."""
        size = locate(path).size()
        if not self.splittable or compression_of(path) is not None or size <= SPLIT_BYTES:
            return [(0, None)]
        return [(start, min(start + SPLIT_BYTES, size)) for start in range(0, size, SPLIT_BYTES)]

    def layout(self, path: str) -> Layout:
        """Lay out a file from its first 1,000 rows."""
        size = HEAD_BYTES
        while True:
            head = next(_blocks(path, 0, None, self.options.encoding, size))
            layout = self.look(head, path)
            form = resolve_format(self.options.time_format)
            if form is not None:
                return layout._replace(time_format=form)
            parsed = self.parse(head, layout, HEAD_ROWS + 10)
            if parsed.rows >= HEAD_ROWS + 10 and len(parsed.line) < HEAD_ROWS:
                # Some are blank, comments or cannot be read: those that follow in this head will do.
                parsed = self.parse(head, layout, None)
                break
            # A larger head is only for longer rows.
            if len(parsed.line) >= HEAD_ROWS or head.final or size >= MAX_LINE:
                break
            size *= 4
        first = parsed.time.slice(0, HEAD_ROWS)
        if not pa.types.is_binary(first.type):
            return layout._replace(time_format=KNOWN)
        form = guess_format(first)
        return layout._replace(time_format=form, inferred=(*layout.inferred, f"times are {form.name}"))

    def batches(self, split: Split, layout: Layout) -> Iterator[Parsed]:
        """Read a split block by block; `line` counts from the start of the split."""
        line, left = 0, split.rows
        stream = _blocks(split.path, split.start, split.end, self.options.encoding, BLOCK_BYTES)
        with closing(stream):
            held: bytes = b""
            for block in stream:
                data = held + block.buffer.to_pybytes() if held else None
                whole = block._replace(**_arrays(data)) if data is not None else block
                parsed = self.parse(whole._replace(at_start=split.start == 0 and line == 0), layout, left)
                held = whole.buffer.to_pybytes()[parsed.consumed :] if parsed.consumed < len(whole.data) else b""
                yield parsed._replace(line=parsed.line + line, rejects=_moved(parsed, line))
                line += parsed.lines
                if left is not None:
                    left -= parsed.rows
                    if left <= 0:
                        return
            if held:
                # The file ended with the block before: what that one cut off is whole.
                whole = Block(**_arrays(held), at_start=split.start == 0 and line == 0, final=True)
                parsed = self.parse(whole, layout, left)
                yield parsed._replace(line=parsed.line + line, rejects=_moved(parsed, line))


def _moved(parsed: Parsed, line: int) -> list[Any]:
    return [reject._replace(line=reject.line + line) for reject in parsed.rejects]


def _arrays(data: bytes) -> dict[str, Any]:
    return {"data": np.frombuffer(data, np.uint8), "buffer": pa.py_buffer(data)}


def _blocks(path: str, start: int, end: int | None, encoding: str, size: int) -> Generator[Block]:
    """Give the lines that start in [start, end) of a file, in blocks of about `size` bytes; at least one
    block.
    """
    source = _Source(path, max(start - 1, 0))
    with closing(source):
        at = start
        rest = b""
        if start:
            # A line belongs to the split in which it starts: skip the one that runs into this split.
            rest, at, ended = _after_feed(source, start - 1)
            if ended or (end is not None and at >= end):
                return
        first = start == 0
        # `at` is the place in the file of the first byte of `rest`.
        while True:
            chunk = source.read(size)
            data = rest + chunk
            if first and len(data) >= 3 and data.startswith(_BOM):
                data, at = data[3:], at + 3
            final = len(chunk) < size
            cut = len(data) if final else data.rfind(b"\n") + 1
            done = final
            if end is not None and at + len(data) >= end:
                # The last line is the one that holds byte end - 1.
                feed = data.find(b"\n", max(end - at - 1, 0))
                if feed >= 0:
                    cut, done = feed + 1, True
            if cut or (final and first):
                yield Block(**_arrays(_transcode(data[:cut], encoding)), at_start=first, final=done)
                first = False
            elif len(data) > MAX_LINE:
                raise DataError(f"{path}: a line is longer than {MAX_LINE >> 20} MiB", "is it a file of lines?")
            if done:
                return
            rest, at = data[cut:], at + cut


def _after_feed(source: _Source, at: int) -> tuple[bytes, int, bool]:
    while True:
        data = source.read(1 << 20)
        if not data:
            return b"", at, True
        feed = data.find(b"\n")
        if feed >= 0:
            return data[feed + 1 :], at + feed + 1, False
        at += len(data)
