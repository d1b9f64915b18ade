"""Lines and fields as positions in a block of bytes: only rows with unusual quotes become Python objects."""

import re
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = [
    "NEVER_CLOSED",
    "TEXT_AFTER_QUOTE",
    "Fields",
    "Lines",
    "blank_lines",
    "column",
    "find_lines",
    "merge_records",
    "parse_quoted",
    "split_blanks",
    "split_fields",
    "starts_with",
]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

_LF, _CR, _BLANK, _TAB, _QUOTE = 10, 13, 32, 9, 34
# A quote of a record over several lines that is longer counts as never closed.
MAX_RECORD = 16 << 20
NEVER_CLOSED = "quote is never closed"
TEXT_AFTER_QUOTE = "text after a closing quote"


class Lines(NamedTuple):
    """Lines of a block: first byte, end (without line feed and a carriage return before it), 1-based
    number.
    """

    start: I64
    end: I64
    number: I64

    def text(self, data: U8, line: int) -> bytes:
        """Return a line of a block as it was written."""
        return data[int(self.start[line]) : int(self.end[line])].tobytes()

    def take(self, chosen: Any) -> "Lines":
        """Keep the lines of a slice, or at some indexes."""
        return Lines(*(column[chosen] for column in self))


class Fields(NamedTuple):
    """Fields of lines: bounds of all fields one after the other; line i has `count[i]` from `first[i]` on."""

    start: I64
    end: I64
    first: I64
    count: I64  # type: ignore[assignment]


def find_lines(data: U8) -> Lines:
    """Find the lines of a block; only a line feed ends one. The last may lack it."""
    feeds = np.flatnonzero(data == _LF)
    ends = feeds if len(data) == 0 or data[-1] == _LF else np.append(feeds, len(data))
    starts = np.concatenate([[0], feeds + 1])[: len(ends)].astype(np.int64)
    returns = (ends > starts) & (data[np.maximum(ends - 1, 0)] == _CR) if len(data) else np.zeros(0, bool)
    return Lines(starts, ends - returns, np.arange(1, len(ends) + 1))


def blank_lines(data: U8, lines: Lines, delimiter: bytes = b"") -> NDArray[np.bool_]:
    """Mark the lines that are empty, or hold only blanks and tabs none of which is a delimiter."""
    blank: NDArray[np.bool_] = lines.start == lines.end
    if len(data):
        maybe = np.flatnonzero(~blank & np.isin(data[np.minimum(lines.start, len(data) - 1)], (_BLANK, _TAB)))
        for line in maybe.tolist():
            text = lines.text(data, line)
            blank[line] = not text.strip(b" \t") and not (delimiter and delimiter in text)
    return blank


def starts_with(data: U8, lines: Lines, prefix: bytes) -> NDArray[np.bool_]:
    """Mark the lines that start with a text."""
    found = lines.end - lines.start >= len(prefix)
    candidates = np.flatnonzero(found)
    for offset, byte in enumerate(prefix):
        same = data[lines.start[candidates] + offset] == byte
        found[candidates[~same]] = False
        candidates = candidates[same]
    return found


def split_fields(data: U8, lines: Lines, delimiter: bytes, *, quoting: bool, blank_after: bool) -> Fields:
    """Cut lines at a delimiter, not inside of quotes when `quoting`.

    With `blank_after` one blank after each delimiter is skipped. Quotes stay part of the fields.
    """
    width = len(delimiter)
    at = _find_delimiter(data, delimiter) if len(lines.start) else np.empty(0, np.int64)
    if quoting:
        quotes = np.flatnonzero(data == _QUOTE)
        if len(quotes):
            owner = np.searchsorted(lines.start, at, "right") - 1
            before = np.searchsorted(quotes, lines.start)
            at = at[(np.searchsorted(quotes, at) - before[owner]) % 2 == 0]
    first = np.searchsorted(at, lines.start)
    last = np.searchsorted(at, lines.end)
    count = last - first + 1
    if len(at) != int((last - first).sum()):
        inside = np.zeros(len(at) + 1, np.int64)
        np.add.at(inside, first, 1)
        np.add.at(inside, last, -1)
        at = at[np.cumsum(inside)[:-1] > 0]
    index = np.concatenate([[0], np.cumsum(count)])
    starts = np.empty(int(index[-1]), np.int64)
    ends = np.empty(int(index[-1]), np.int64)
    heads = np.zeros(int(index[-1]), bool)
    heads[index[:-1]] = True
    tails = np.zeros(int(index[-1]), bool)
    tails[index[1:] - 1] = True
    starts[heads], starts[~heads] = lines.start, at + width
    ends[tails], ends[~tails] = lines.end, at
    if blank_after:
        skip = ~heads & (starts < ends)
        starts += skip & (data[np.minimum(starts, len(data) - 1)] == _BLANK)
    return Fields(starts, ends, index[:-1], count)


def _find_delimiter(data: U8, delimiter: bytes) -> I64:
    """Find a delimiter; where it overlaps with itself, as :: in :::, the first counts."""
    at = np.flatnonzero(data == delimiter[0])
    for offset, byte in enumerate(delimiter[1:], 1):
        at = at[at < len(data) - offset]
        at = at[data[at + offset] == byte]
    if len(delimiter) > 1 and (np.diff(at) < len(delimiter)).any():
        free, kept = 0, []
        for place in at.tolist():
            if place >= free:
                kept.append(place)
                free = place + len(delimiter)
        at = np.array(kept, np.int64)
    return at


def split_blanks(data: U8, lines: Lines) -> Fields:
    """Cut lines at runs of blanks and tabs; those at either end of a line do not count."""
    blank = (data == _BLANK) | (data == _TAB) | (data == _LF)
    inside = np.zeros(len(data) + 2, np.int8)
    inside[1:-1] = ~blank
    # A carriage return that belongs to the end of its line is no field.
    ended = lines.end[(lines.end < len(data))]
    inside[ended[data[ended] == _CR] + 1] = 0
    steps = np.diff(inside)
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    first = np.searchsorted(starts, lines.start)
    return Fields(starts, ends, first, np.searchsorted(starts, lines.end) - first)


def column(data: pa.Buffer, start: I64, end: I64) -> pa.Array:
    """Make a binary array of the slices [start, end) of a block, which must be in ascending order.

    The slices and the gaps between them alternate in one array over the block itself; taking every second
    entry copies the bytes once, in compiled code.
    """
    if not len(start):
        return pa.array([], pa.binary())
    bounds = np.empty(2 * len(start), np.int32)
    bounds[0::2], bounds[1::2] = start, end
    both = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), data])
    return both.take(pa.array(np.arange(0, len(bounds) - 1, 2)))


def parse_quoted(
    line: bytes, delimiter: bytes, *, blank_after: bool, bare: set[int] | None = None, escape: bytes = b""
) -> tuple[list[bytes], str]:
    """Parse one record strictly by RFC 4180; returns its fields and what is wrong ("" if nothing).

    A quote in the middle of an unquoted field is an ordinary character. In quotes, `escape` makes a quote or an escape
    that follows it a character. The numbers of the fields without quotes are added to `bare`.
    """
    fields: list[bytes] = []
    at, fault = 0, ""
    closed, escaped = _quoted_patterns(escape)
    while True:
        if blank_after and fields and line[at : at + 1] == b" ":
            at += 1
        if line[at : at + 1] == b'"':
            match = closed.match(line, at)
            if match is None:
                return fields, NEVER_CLOSED
            value = escaped.sub(rb"\1\2", match[1])
            end = line.find(delimiter, match.end())
            junk = line[match.end() : end if end >= 0 else len(line)]
            if junk.strip(b" "):
                fault = TEXT_AFTER_QUOTE
        else:
            end = line.find(delimiter, at)
            value = line[at : end if end >= 0 else len(line)]
            if bare is not None:
                bare.add(len(fields))
        fields.append(value)
        if end < 0:
            return fields, fault
        at = end + len(delimiter)


@cache
def _quoted_patterns(escape: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the patterns of a quoted field, and of an escaped character in it (in one of two groups)."""
    if not escape:
        return re.compile(rb'"((?:[^"]+|"")*+)"'), re.compile(rb'"(")()')
    sign = re.escape(escape)
    pair = sign + rb'([" ])'.replace(b" ", sign)
    return re.compile(rb'"((?:[^"%b]+|%b.|"")*+)"' % (sign, sign), re.DOTALL), re.compile(rb'%b|"(")' % pair)


def merge_records(
    data: U8, lines: Lines, delimiter: bytes, *, blank_after: bool, final: bool, escape: bytes = b""
) -> tuple[Lines, int]:
    """Join lines into records where a quoted field continues; returns records, and the bytes they take.

    A record that the block cuts off is left for the next block. A quote that is never closed ends with its line, as
    does one after a backslash, which escapes nothing here, if the lines that follow would be malformed.
    """

    def fault(record: bytes) -> str:
        return parse_quoted(record, delimiter, blank_after=blank_after, escape=escape)[1]

    quotes = np.flatnonzero(data == _QUOTE)
    owners = np.unique(np.searchsorted(lines.start, quotes, "right") - 1).tolist()
    raw = data.tobytes()
    keep = np.ones(len(lines.start), bool)
    end = lines.end.copy()
    stop = len(data)
    position = 0
    while position < len(owners):
        line = owners[position]
        position += 1
        start = int(lines.start[line])
        if fault(raw[start : int(lines.end[line])]) != NEVER_CLOSED:
            continue
        last, found = position, ""
        while last < len(owners) and (found := fault(raw[start : int(lines.end[owners[last]])])) == NEVER_CLOSED:
            last = last + 1 if int(lines.end[owners[last]]) - start < MAX_RECORD else len(owners)
        if last < len(owners) and found and not escape and b'\\"' in raw[start : int(lines.end[line])]:
            continue
        if last < len(owners):
            keep[line + 1 : owners[last] + 1] = False
            end[line] = lines.end[owners[last]]
            position = last + 1
        elif not final and len(data) - start < MAX_RECORD:
            keep[line:] = False
            stop = start
            break
    return Lines(lines.start[keep], end[keep], lines.number[keep]), stop
