"""The base of readers of lines: plans splits, opens files and cuts them into blocks of whole lines."""

import codecs
from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.files.byte_streams import SPLITTABLE_ENCODINGS, Source, compression_of, open_sources
from streamgroup.ingest.parsing.column_list_text import NO_TIME
from streamgroup.ingest.parsing.times import KNOWN, guess_format, resolve_format
from streamgroup.ingest.readers.options import LineOptions, ReaderOptions
from streamgroup.ingest.readers.protocol import Layout, Parsed, Reader, Split

__all__ = ["BLOCK_BYTES", "SPLIT_BYTES", "Block", "LineReader"]

SPLIT_BYTES = 64 << 20
BLOCK_BYTES = 8 << 20
# A line longer than this is taken for a file that has no lines.
MAX_LINE = 256 << 20
HEAD_BYTES = 1 << 20
HEAD_ROWS = 1000

# Bytes searched for the first time of a file in which many rows have none.
MAX_HEAD = 16 << 20
# A file with more zero bytes than both of these at its beginning is not a text.
_MIN_ZEROS, _ZERO_SHARE = 20, 0.2
_SNIFF_BYTES = 64 << 10
_BOM = b"\xef\xbb\xbf"


def _decode_c1(error: UnicodeError) -> tuple[str, int]:
    """Map the five bytes that cp1252 leaves undefined to the control characters of that number, as WHATWG does."""
    assert isinstance(error, UnicodeDecodeError)
    return "".join(map(chr, error.object[error.start : error.end])), error.end


codecs.register_error("streamgroup-c1", _decode_c1)


class Block(NamedTuple):
    """Whole lines of an input, as array and as buffer; `at_start`, `final`: at the start, the end of the file."""

    data: NDArray[np.uint8]
    buffer: pa.Buffer
    at_start: bool
    final: bool


def _to_utf8(data: bytes, encoding: str, *, doubled: bool) -> bytes:
    """Return whole lines as UTF-8, without the byte order marks at the start of files, and within joined ones."""
    if doubled:
        data = data.replace(b"\r\r\n", b"\r\n")
    if data.isascii():
        return data
    if _BOM in data:
        data = data.removeprefix(_BOM).replace(b"\n" + _BOM, b"\n")
    if encoding not in ("latin-1", "cp1252"):
        return data
    return data.decode(encoding, errors="streamgroup-c1").encode()


def _check_text(data: bytes, label: str) -> None:
    """Raise a DataError if the beginning of a file is UTF-16, or no text at all; the hint says how it can be read."""
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        raise DataError(f"{label}: text in UTF-32", "read it with --encoding utf-32")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{label}: text in UTF-16", "read it with --encoding utf-16")
    if data.startswith(b"PAR1\x15"):
        raise DataError(f"{label}: a Parquet file", "read it with the parquet reader")
    head = np.frombuffer(data[:_SNIFF_BYTES], np.uint8)
    even, odd = (int(np.count_nonzero(half == 0)) for half in (head[::2], head[1::2]))
    if even + odd <= max(_MIN_ZEROS, _ZERO_SHARE * len(head)):
        return
    for more, fewer, order in ((odd, even, "le"), (even, odd, "be")):
        if more > 10 * fewer:
            raise DataError(f"{label}: zeros at every second byte, as of UTF-16", f"try --encoding utf-16-{order}")
    raise DataError(
        f"{label}: not a text, {(even + odd) / len(head):.0%} of its first bytes are zeros",
        "name a text's --encoding; of binary formats, parquet and oracle-general (libCacheSim) have readers",
    )


class LineReader(Reader):
    """A reader of lines: the subclass lays out the head of a file and parses blocks of whole lines."""

    Options: ClassVar[type[ReaderOptions]] = LineOptions

    @property
    def splittable(self) -> bool:
        """Report whether a line can be parsed without those before it."""
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
        """Cut a file every SPLIT_BYTES; one that is compressed, or has records of several lines, stays whole."""
        size = locate(path).size()
        whole = not self.splittable or self.options.encoding not in SPLITTABLE_ENCODINGS
        if whole or size <= SPLIT_BYTES or compression_of(path) is not None:
            return [(0, None)]
        return [(start, min(start + SPLIT_BYTES, size)) for start in range(0, size, SPLIT_BYTES)]

    def layout(self, path: str) -> Layout:
        """Lay out a file from its first 1,000 rows, an archive from those of its first member."""
        with closing(cast(Any, open_sources(path, encoding=self.options.encoding))) as found:
            return self._layout_of(next(found))

    def _layout_of(self, source: Source) -> Layout:
        size = HEAD_BYTES
        while True:
            head = _head(source, size, self.options.encoding)
            layout = self.look(head, source.label)
            form = KNOWN if self.options.time == NO_TIME else resolve_format(self.options.time_format)
            if form is not None:
                return layout._replace(time_format=form)
            parsed = self.parse(head, layout, HEAD_ROWS + 10)
            timeless = len(parsed.time) == parsed.time.null_count
            if parsed.rows >= HEAD_ROWS + 10 and (len(parsed.line) < HEAD_ROWS or timeless):
                # Some are blank, comments or cannot be read, or have no time: those that follow in this head will do.
                parsed = self.parse(head, layout, None)
            elif len(parsed.line) < HEAD_ROWS and not head.final and size < MAX_LINE:
                # A larger head is only for longer rows,
                size *= 4
                continue
            if len(parsed.time) > parsed.time.null_count or head.final or size >= MAX_HEAD:
                break
            # or for rows without a time.
            size *= 4
        first = parsed.time.drop_null().slice(0, HEAD_ROWS)
        if not pa.types.is_binary(first.type):
            return layout._replace(time_format=KNOWN)
        form = guess_format(first)
        return layout._replace(time_format=form, inferred=(*layout.inferred, f"times are {form.name}"))

    def batches(self, split: Split, layout: Layout) -> Iterator[Parsed]:
        """Read a split block by block; `line` counts from the start of the split, through all members of an archive.

        Each member has a layout of its own, but all must have times of one form.
        """
        line, left, first = 0, split.rows, True
        with closing(cast(Any, open_sources(split.path, max(split.start - 1, 0), self.options.encoding))) as found:
            for source in found:
                own_layout = layout if first else self._layout_of(source)
                stream = self._parsed(source, split, own_layout, left)
                first = False
                for parsed in stream:
                    if own_layout is not layout and len(parsed.line):
                        _check_same_format(own_layout, layout, source)
                    yield parsed._replace(line=parsed.line + line, rejects=_shift_rejects(parsed, line))
                    line += parsed.lines
                    if left is not None:
                        left -= parsed.rows
                        if left <= 0:
                            return

    def _parsed(self, source: Source, split: Split, layout: Layout, left: int | None) -> Iterator[Parsed]:
        """Parse a source block by block, at most `left` rows of it; lines are those of the block."""
        begun = split.start > 0
        leftover: bytes = b""
        for block in _line_blocks(source, split.start, split.end, self.options.encoding, BLOCK_BYTES):
            data = leftover + block.buffer.to_pybytes() if leftover else None
            whole = block._replace(**_as_arrays(data)) if data is not None else block
            parsed = self.parse(whole._replace(at_start=not begun), layout, left)
            begun = begun or parsed.lines > 0
            leftover = whole.buffer.to_pybytes()[parsed.consumed :] if parsed.consumed < len(whole.data) else b""
            left = None if left is None else left - parsed.rows
            yield parsed
        if leftover:
            # The file ended with the block before: what that one cut off is whole.
            whole = Block(**_as_arrays(leftover), at_start=not begun, final=True)
            yield self.parse(whole, layout, left)


def _check_same_format(own_layout: Layout, first: Layout, source: Source) -> None:
    names = [form.name if form else "" for form in (first.time_format, own_layout.time_format)]
    if names[0] != names[1]:
        raise DataError(
            f"{source.path}: times of its files differ: {names[0]} in the first, {names[1]} in {source.member}",
            "say what they are with --time-format, or unpack it",
        )


def _shift_rejects(parsed: Parsed, line: int) -> list[Any]:
    return [reject._replace(line=reject.line + line) for reject in parsed.rejects]


def _as_arrays(data: bytes) -> dict[str, Any]:
    return {"data": np.frombuffer(data, np.uint8), "buffer": pa.py_buffer(data)}


def _head(source: Source, size: int, encoding: str) -> Block:
    """Return the whole lines among the next `size` bytes of a source, or among more if there is none."""
    while True:
        data = source.peek(size)
        final = len(data) < size
        cut = len(data) if final else data.rfind(b"\n") + 1
        if cut or final:
            _check_text(data, source.label)
            return Block(
                **_as_arrays(_to_utf8(data[:cut], encoding, doubled=source.doubled)), at_start=True, final=final
            )
        if len(data) > MAX_LINE:
            raise _too_long(source)
        size *= 4


def _too_long(source: Source) -> DataError:
    return DataError(f"{source.label}: a line is longer than {MAX_LINE >> 20} MiB", "is it a file of lines?")


def _line_blocks(source: Source, start: int, end: int | None, encoding: str, size: int) -> Generator[Block]:
    """Yield the lines that start in [start, end) of a file, in blocks of about `size` bytes; at least one block from 0.

    The source begins at the byte before `start`, if that is not 0.
    """
    at = start
    rest = b""
    if start:
        # A line belongs to the split in which it starts: skip the one that runs into this split.
        rest, at, ended = _skip_line(source, start - 1)
        if ended or (end is not None and at >= end):
            return
    first = start == 0
    # `at` is the place in the file of the first byte of `rest`.
    while True:
        chunk = source.read(size)
        data = rest + chunk
        final = len(chunk) < size
        cut = len(data) if final else data.rfind(b"\n") + 1
        done = final
        if end is not None and at + len(data) >= end:
            # The last line is the one that holds byte end - 1.
            feed = data.find(b"\n", max(end - at - 1, 0))
            if feed >= 0:
                cut, done = feed + 1, True
        if cut or (final and first):
            yield Block(
                **_as_arrays(_to_utf8(data[:cut], encoding, doubled=source.doubled)), at_start=first, final=done
            )
            first = False
        elif len(data) > MAX_LINE:
            raise _too_long(source)
        if done:
            return
        rest, at = data[cut:], at + cut


def _skip_line(source: Source, at: int) -> tuple[bytes, int, bool]:
    while True:
        data = source.read(1 << 20)
        if not data:
            return b"", at, True
        feed = data.find(b"\n")
        if feed >= 0:
            return data[feed + 1 :], at + feed + 1, False
        at += len(data)
