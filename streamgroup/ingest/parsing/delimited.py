"""The base of readers of delimited fields: csv, text and most logs only declare their delimiter, header and quotes."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.column_list_text import column_names
from streamgroup.ingest.parsing.condition_text import parse_where
from streamgroup.ingest.parsing.fields import Fields, Lines
from streamgroup.ingest.parsing.lines import Block, LineReader
from streamgroup.ingest.readers.options import DelimitedOptions, ReaderOptions
from streamgroup.ingest.readers.protocol import Layout, Parsed, Reject, find_columns

__all__ = ["DelimitedReader", "header_names"]

# The delimiter that stands for runs of blanks and tabs.
BLANKS = b""
_MAX_COLUMNS = 10_000
# The first line of a file that declares the delimiter for Excel.
_DECLARED_DELIMITER = re.compile(rb'"?sep=([^\r\n"])"?', re.IGNORECASE)


def header_names(pieces: Sequence[bytes]) -> tuple[str, ...]:
    """Return the names of the columns by the fields of a header, which may begin with `#` as a comment does."""
    names = [piece.decode(errors="replace").strip(" ") for piece in pieces]
    return (names[0].lstrip("# "), *names[1:])


class DelimitedReader(LineReader):
    """Rows of fields between delimiters; a subclass says which delimiter, whether there is a header,
    quotes.
    """

    Options: ClassVar[type[ReaderOptions]] = DelimitedOptions
    joins: ClassVar[tuple[str, ...]] = ("time", "key")
    delimiter: ClassVar[bytes | None] = b","
    quoting: ClassVar[bool] = False
    header: ClassVar[bool] = False
    names: ClassVar[tuple[str, ...]] = ()
    # The key is the rest of the line from its field on.
    key_to_end: ClassVar[bool] = False

    @property
    def splittable(self) -> bool:
        """Report whether no field goes over several lines."""
        return not self.options.multiline

    def _comment(self) -> bytes | None:
        comment = getattr(self.own, "comment", None)
        return comment.encode() if comment else None

    @property
    def _escape(self) -> bytes:
        return (getattr(self.own, "escape", None) or "").encode()

    def _empty_is_null(self) -> bool:
        return bool(getattr(self.own, "empty_is_null", False))

    def _delimiter(self, line: bytes) -> bytes:
        if self.options.delimiter is not None:
            return self.options.delimiter.encode()
        if self.delimiter is not None:
            return self.delimiter
        return b"\t" if b"\t" in line else BLANKS

    def look(self, head: Block, path: str) -> Layout:
        """Lay out a file by its first line that is neither blank nor a comment."""
        lines = fields.find_lines(head.data)
        number, line = self._first_line(head, lines)
        if not number:
            raise DataError(f"{path}: no rows in it", "give a file that has some")
        declared = _DECLARED_DELIMITER.fullmatch(line) if self.quoting else None
        skip = number if declared else 0
        if declared:
            number, line = self._first_line(head, lines, skip)
        delimiter = declared[1] if declared and self.options.delimiter is None else self._delimiter(line)
        if self.options.multiline and self.quoting:
            records, _ = fields.merge_records(
                head.data, lines, delimiter, blank_after=False, final=head.final, escape=self._escape
            )
            number, line = self._first_line(head, records, skip)
        inferred, fault = [], ""
        if self.delimiter is None and self.options.delimiter is None:
            inferred.append("fields end at tabs" if delimiter == b"\t" else "fields end at runs of blanks")
        pieces = line.split(delimiter) if delimiter else line.split()
        blank_after = self.quoting and delimiter.strip() != b"" and len(pieces) > 1
        blank_after = blank_after and all(piece.startswith(b" ") for piece in pieces[1:])
        if blank_after:
            inferred.append("a blank follows each delimiter")
        if self.quoting:
            pieces, fault = fields.parse_quoted(line, delimiter, blank_after=blank_after, escape=self._escape)
        names = self.names
        has_header = self.header if self.options.header is None else self.options.header
        if has_header:
            if fault == fields.NEVER_CLOSED:
                hint = "--multiline lets quoted fields hold line breaks; the text reader knows no quotes"
                raise DataError(f"{path}: line {number}, the header: {fault}", hint)
            names = header_names(pieces)
        elif not names:
            names = tuple(str(number) for number in range(1, len(pieces) + 1))
        width = 0 if self._ragged or self._key_to_end(delimiter) else len(names)
        names = self._with_numbers_beyond(names)
        return Layout(
            names=names,
            **self._columns(head, names, path),
            width=width,
            header=number if has_header else 0,
            delimiter=delimiter,
            blank_after=blank_after,
            inferred=tuple(inferred),
            skip=skip,
        )

    def _columns(self, head: Block, names: tuple[str, ...], path: str) -> dict[str, Any]:
        try:
            return find_columns(self.options, self.defaults, names, path)
        except UsageError as error:
            comment = self._comment()
            if comment and head.data[: len(comment)].tobytes() == comment:
                message = f"{error.message} (the first line was left out: --comment {comment.decode()})"
                raise UsageError(message, error.hint) from None
            raise

    @property
    def _ragged(self) -> bool:
        return bool(getattr(self.own, "ragged", False))

    def _with_numbers_beyond(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Add the numbers of columns up to the last one asked for, where rows may be longer than the first line."""
        if not self._ragged:
            return names
        opts = self.options
        asked = [opts.time, opts.key, opts.cost, opts.value, opts.weight]
        asked += [one.column for one in parse_where(opts.where)] if opts.where is not None else []
        parts = [name for text in asked if text for name in column_names(text) if not name.quoted]
        numbers = [int(text) for text, _ in parts if text.isdecimal() and text not in names]
        last = max((number for number in numbers if number <= _MAX_COLUMNS), default=0)
        return (*names, *map(str, range(len(names) + 1, last + 1)))

    def _key_to_end(self, delimiter: bytes) -> bool:
        return self.key_to_end or (delimiter == BLANKS and self.options.split_words)

    def _first_line(self, head: Block, lines: Lines, after: int = 0) -> tuple[int, bytes]:
        """Return number and text of the first line (or record) after `after` that is neither a comment nor blank."""
        comment = self._comment()
        for row, number in enumerate(lines.number.tolist()):
            line = lines.text(head.data, row) if number > after else b""
            if line.strip(b" \t") and not (comment and line.startswith(comment)):
                return number, line
        return 0, b""

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Parse a block: blank lines, comments and the header are filtered, malformed rows rejected."""
        data = block.data
        every = lines = fields.find_lines(data)
        consumed = len(data)
        if self.options.multiline and self.quoting:
            lines, consumed = fields.merge_records(
                data, every, layout.delimiter, blank_after=layout.blank_after, final=block.final, escape=self._escape
            )
        lines = lines.take(slice(rows))
        filtered, used = self._filter_lines(block, lines, layout)
        if layout.delimiter == BLANKS:
            cut = fields.split_blanks(data, lines)
        else:
            cut = fields.split_fields(
                data, lines, layout.delimiter, quoting=self.quoting, blank_after=layout.blank_after
            )
        rejects: list[Reject] = []
        odd = self._odd(data, lines, cut, used) if self.quoting else {}
        parts = (*layout.time_parts, *layout.key_parts, *layout.where)
        needed = max(layout.time, layout.key, layout.cost, layout.value, layout.weight, *parts) + 1
        fits = (cut.count == layout.width) if layout.width else (cut.count >= needed)
        good = used & fits
        parsed_rows: dict[int, list[bytes | None]] = {}
        for row in odd:
            bare: set[int] = set()
            pieces, fault = fields.parse_quoted(
                lines.text(data, row),
                layout.delimiter,
                blank_after=layout.blank_after,
                bare=bare,
                escape=self._escape,
            )
            enough = len(pieces) == layout.width if layout.width else len(pieces) >= needed
            good[row] = not fault and enough
            if good[row]:
                parsed_rows[row] = [*pieces]
                for place in (layout.key, *layout.key_parts) if self._empty_is_null() else ():
                    if place in bare and not pieces[place]:
                        parsed_rows[row][place] = None
            elif fault:
                odd[row] = fault
        for row in np.flatnonzero(used & ~good).tolist():
            reason = odd.get(row) or "wrong number of fields"
            rejects.append(Reject(int(lines.number[row]), reason, lines.text(data, row)))
        keep = np.flatnonzero(good)
        source = _Columns(block, lines, cut, keep, parsed_rows, quoting=self.quoting)
        key_column = partial(
            source.column, to_end=self._key_to_end(layout.delimiter), empty_is_null=self._empty_is_null()
        )
        return Parsed(
            rows=len(lines.start),
            lines=int(np.searchsorted(every.start, consumed)),
            consumed=consumed,
            line=lines.number[keep],
            time=layout.time_of(source.column, len(keep)),
            key=layout.key_of(key_column),
            **layout.optional_of(
                source.column, lambda number: (key_column if number == layout.key else source.column)(number)
            ),
            text=lambda entry: lines.text(data, int(keep[entry])),
            rejects=rejects,
            filtered=filtered,
        )

    def _filter_lines(self, block: Block, lines: Lines, layout: Layout) -> tuple[dict[str, int], NDArray[np.bool_]]:
        """Count blank lines, comments and the header, and mark the other lines."""
        data = block.data
        blank = fields.blank_lines(data, lines, layout.delimiter)
        filtered = {"blank": int(blank.sum())}
        used = ~blank
        if block.at_start and (layout.header or layout.skip):
            header = (lines.number == layout.header) | (lines.number <= layout.skip)
            filtered["header"] = int((header & used).sum())
            used &= ~header
        comment = self._comment()
        if comment:
            marked = used & fields.starts_with(data, lines, comment)
            filtered["comment"] = int(marked.sum())
            used &= ~marked
        return {name: count for name, count in filtered.items() if count}, used

    def _odd(self, data: NDArray[np.uint8], lines: Lines, cut: Fields, used: NDArray[np.bool_]) -> dict[int, str]:
        """Find the rows whose quotes do more than enclose whole fields: they are parsed one by one."""
        quotes = np.flatnonzero(data == ord('"'))
        if not len(quotes):
            return {}
        per_line = np.searchsorted(quotes, lines.end) - np.searchsorted(quotes, lines.start)
        filled = cut.end - cut.start >= 2
        last = len(data) - 1
        opens = (data[np.minimum(cut.start, last)] == ord('"')) & filled
        closes = (data[np.maximum(cut.end - 1, 0)] == ord('"')) & filled
        enclosed = np.concatenate([[0], np.cumsum(opens & closes)])
        simple = 2 * (enclosed[cut.first + cut.count] - enclosed[cut.first])
        odd = per_line != simple
        if self._escape:
            escapes = np.flatnonzero(data == self._escape[0])
            odd |= (per_line > 0) & (np.searchsorted(escapes, lines.end) > np.searchsorted(escapes, lines.start))
        return dict.fromkeys(np.flatnonzero(used & odd).tolist(), "")


class _Columns:
    """The columns of a block, made on demand from the positions of the fields of the rows kept."""

    def __init__(
        self,
        block: Block,
        lines: Lines,
        cut: Fields,
        keep: NDArray[np.int64],
        parsed_rows: dict[int, list[bytes | None]],
        *,
        quoting: bool,
    ) -> None:
        self._block, self._lines, self._cut, self._keep = block, lines, cut, keep
        self._parsed_rows, self._quoting = parsed_rows, quoting

    def column(self, number: int, *, to_end: bool = False, empty_is_null: bool = False) -> Any:
        plain = self._keep
        if self._parsed_rows:
            plain = plain[~np.isin(plain, np.fromiter(self._parsed_rows, np.int64))]
        place = self._cut.first[plain] + number
        start, end = self._cut.start[place], self._cut.end[place]
        if to_end:
            end = self._lines.end[plain]
        empty = start == end
        if self._quoting and len(start):
            data = self._block.data
            quoted = (end - start >= 2) & (data[np.minimum(start, len(data) - 1)] == ord('"'))
            start, end = start + quoted, end - quoted
        values = fields.column(self._block.buffer, start, end)
        if empty_is_null and empty.any():
            values = pc.if_else(pa.array(empty), pa.scalar(None, values.type), values)
        if not self._parsed_rows:
            return values
        rows = np.concatenate([plain, np.fromiter(self._parsed_rows, np.int64)])
        odd = pa.array([pieces[number] for pieces in self._parsed_rows.values()], pa.binary())
        return pa.concat_arrays([values, odd]).take(pa.array(np.argsort(rows, kind="stable")))
