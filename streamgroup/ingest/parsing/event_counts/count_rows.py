"""Rows that count events in an hour, day or month: their fields and counts, and how events spread over the period."""

import datetime as dt
import re
from collections import Counter
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.lines import Block
from streamgroup.ingest.readers.protocol import Reject
from streamgroup.kernels import random_draws
from streamgroup.kernels.hash_placement import mix64
from streamgroup.traces.hash_and_show_keys import hash_keys

__all__ = [
    "HOUR",
    "MAX_COUNT",
    "Period",
    "Rows",
    "decode_once",
    "equals",
    "even_offsets",
    "find_period",
    "random_offsets",
    "whole_numbers",
]

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

HOUR = 3_600_000_000
# Larger counts are mistakes; up to here, `even_offsets` stays within 64 bits.
MAX_COUNT = 1_000_000_000
_MAX_DIGITS = 18


class Period(NamedTuple):
    """An interval of time in UTC: hour, day or month, its start in us since 1970 and its length in us."""

    kind: str
    start: int
    length: int


_NAMES = {
    "hour": re.compile(r"(?<!\d)(\d{4})(\d{2})(\d{2})-(\d{2})\d{4}(?!\d)"),
    "day": re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)"),
    "month": re.compile(r"(?<!\d)((?:19|20)\d{2})[-_]?(\d{2})(?!\d)"),
}
_TEXTS = {
    "hour": (re.compile(r"(\d{4})-(\d{2})-(\d{2})[T ](\d{2})(?::00(?::00)?)?Z?"), "2024-08-03T06"),
    "day": (re.compile(r"(\d{4})-(\d{2})-(\d{2})"), "2021-01-31"),
    "month": (re.compile(r"(\d{4})-(\d{2})"), "2018-01"),
}


def _period(kind: str, match: re.Match[str]) -> Period | None:
    year, month, *rest = map(int, match.groups())
    day, hour = (*rest, 1, 0)[:2] if len(rest) != 1 else (rest[0], 0)
    try:
        start = dt.datetime(year, month, day, hour, tzinfo=dt.UTC)
        following = dt.datetime(year + month // 12, month % 12 + 1, 1, tzinfo=dt.UTC)
    except ValueError:
        return None
    length = {"hour": HOUR, "day": 24 * HOUR, "month": (following - start) // dt.timedelta(microseconds=1)}[kind]
    return Period(kind, int(start.timestamp()) * 1_000_000, length)


def find_period(path: str, kinds: tuple[str, ...], given: dict[str, str | None]) -> Period:
    """Return the period of a file: the one `given` (by kind, as text), else that in its name, the first kind that fits.

    UsageError when the name has none, or the one given cannot be read.
    """
    asked = [(kind, text) for kind, text in given.items() if text is not None]
    if len(asked) > 1:
        raise UsageError(f"--{asked[0][0]} and --{asked[1][0]}: a file has one of them", "leave one out")
    for kind, text in asked:
        form, example = _TEXTS[kind]
        match = form.fullmatch(text)
        found = _period(kind, match) if match else None
        if found is None:
            raise UsageError(f"--{kind}: {text!r} is none", f"write --{kind} {example} (UTC)")
        return found
    name = locate(path).name
    for kind in kinds:
        for match in _NAMES[kind].finditer(name):
            if (found := _period(kind, match)) is not None:
                return found
    hints = " or ".join(f"--{kind} {_TEXTS[kind][1]}" for kind in kinds)
    raise UsageError(f"{path}: its name does not tell the {' or '.join(kinds)}", f"give it, as in {hints}")


def even_offsets(place: I64, count: I64, length: int) -> I64:
    """Return the offsets of tuples `place` = 0, 1, ... of `count` that are spread evenly over `length` us.

    Tuple j of c comes at floor((j + 1/2) / c * length). `count` is at most MAX_COUNT.
    """
    # In two steps, as (2 j + 1) * length may pass 64 bits.
    twice, odd = 2 * count, 2 * place + 1
    whole, rest = np.divmod(length, twice)
    return whole * odd + rest * odd // twice


def random_offsets(hashes: tuple[I64, I64], place: I64, length: int, seed: int) -> I64:
    """Draw the offsets, below `length` us, of tuples `place` = 0, 1, ... of rows with these hashes.

    Uniform; depends on seed, row and place alone, not on the position of the row in the input.
    """
    low, high = (half.view(np.uint64) for half in hashes)
    index = mix64(low + (place.view(np.uint64) + np.uint64(1)) * (high | np.uint64(1)))
    return (random_draws.uniform(seed, "time within a period", index.view(np.int64)) * length).astype(np.int64)


def decode_once(texts: pa.Array) -> pa.Array:
    """Decode percent-encoded texts, once: the percent sign of a `%25` is not decoded again."""
    coded = np.flatnonzero(pc.match_substring(texts, b"%").to_numpy(zero_copy_only=False))
    if not len(coded):
        return texts
    decoded = pa.array(list(map(unquote_to_bytes, texts.take(pa.array(coded)).to_pylist())), pa.binary())
    place = np.arange(len(texts))
    place[coded] = len(texts) + np.arange(len(coded))
    return pa.concat_arrays([texts, decoded]).take(pa.array(place))


_DOMAIN_BYTES = 253
_DOMAIN = np.zeros(256, bool)
_DOMAIN[[*b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"]] = True


class Rows:
    """The rows of a block that passed all checks so far, cut at a delimiter; `at` numbers them among all lines.

    A row is a line, unless lines were joined. `records` counts all rows, `physical` the lines of `consumed` bytes.
    """

    def __init__(self, block: Block, delimiter: bytes, rows: int | None = None) -> None:
        """Cut lines into fields; with `rows`, no more lines than that."""
        self.block = block
        self.lines = fields.find_lines(block.data)
        self.physical, self.consumed = len(self.lines.start), len(block.data)
        self.cut = fields.split_fields(block.data, self.lines, delimiter, quoting=False, blank_after=False)
        self.at = np.arange(self.physical if rows is None else min(rows, self.physical))
        self.records = len(self.at)
        self.rejects: list[Reject] = []
        self.filtered: Counter[str] = Counter()

    def blank(self) -> None:
        """Filter lines without a byte."""
        self.filter((self.lines.start == self.lines.end)[self.at], "blank")

    def join(self, records: list[tuple[int, int, str]], stop: int, rows: int | None) -> None:
        """Reject records of several lines (first, last, reason), once each; lines from `stop` on are left over.

        With `rows`, all records beyond that are left out.
        """
        inside = np.zeros(len(self.lines.start), bool)
        for first, last, _ in records:
            inside[first + 1 : last + 1] = True
        number = np.cumsum(~inside)[:stop]
        if rows is not None:
            number = number[number <= rows]
        alone = ~inside
        for first, last, reason in records:
            if first < len(number):
                alone[first] = False
                text = self.block.data[int(self.lines.start[first]) : int(self.lines.end[last])].tobytes()
                self.rejects.append(Reject(int(self.lines.number[first]), reason, text))
        self.at = np.flatnonzero(alone[: len(number)])
        self.records = int(number[-1]) if len(number) else 0
        if stop < self.physical:
            self.physical, self.consumed = stop, int(self.lines.start[stop])

    def line(self, number: int) -> bytes:
        """Return line `number` (from 0) as it was written."""
        return self.lines.text(self.block.data, number)

    def text(self, entry: int) -> bytes:
        """Return the line of a good row."""
        return self.line(int(self.at[entry]))

    def hashes(self) -> tuple[I64, I64]:
        """Hash the lines of the good rows, as they were written."""
        return hash_keys(fields.column(self.block.buffer, self.lines.start[self.at], self.lines.end[self.at]))

    def filter(self, out: Mask, reason: str) -> None:
        """Filter some of the good rows, for a reason."""
        if out.any():
            self.filtered[reason] += int(out.sum())
            self.at = self.at[~out]

    def reject(self, bad: Mask, reason: str) -> None:
        """Reject some of the good rows, for a reason."""
        for row in self.at[bad].tolist():
            self.rejects.append(Reject(int(self.lines.number[row]), reason, self.line(row)))
        self.at = self.at[~bad]

    @property
    def width(self) -> I64:
        """The number of fields of each good row."""
        return self.cut.count[self.at]

    def bounds(self, column: int | I64) -> tuple[I64, I64]:
        """Return start and end of a field of each good row, in the block."""
        place = self.cut.first[self.at] + column
        return self.cut.start[place], self.cut.end[place]

    def column(self, column: int | I64, last: int | None = None) -> Any:
        """Return a field of each good row, or what lies from it to the end of field `last`."""
        start, end = self.bounds(column)
        if last is not None:
            end = self.bounds(last)[1]
        return fields.column(self.block.buffer, start, end)

    def whole(self, column: int | I64) -> tuple[I64, Mask]:
        """Read a field as a whole number: digits, at most 18 of them; and mark the rows that have one."""
        return whole_numbers(self.block.data, *self.bounds(column))

    def is_domain(self, column: int) -> Mask:
        """Mark the fields that can be a domain: letters, digits, dots, hyphens, 1 to 253 of them."""
        start, end = self.bounds(column)
        length = end - start
        good: Mask = (length >= 1) & (length <= _DOMAIN_BYTES)
        for place in range(int(length[good].max(initial=0))):
            live = np.flatnonzero(good & (place < length))
            good[live] = _DOMAIN[self.block.data[start[live] + place]]
        return good

    def are(self, column: int | I64, text: bytes) -> Mask:
        """Mark the fields that equal a text."""
        return equals(self.block.data, *self.bounds(column), text)

    def ends_with(self, column: int, text: bytes) -> Mask:
        """Mark the fields that end with a text."""
        start, end = self.bounds(column)
        return equals(self.block.data, np.maximum(start, end - len(text)), end, text)


def whole_numbers(data: NDArray[np.uint8], start: I64, end: I64) -> tuple[I64, Mask]:
    """Read slices of a block as whole numbers of 1 to 18 digits, and mark those that are."""
    length = end - start
    good = (length >= 1) & (length <= _MAX_DIGITS)
    value = np.zeros(len(start), np.int64)
    for place in range(int(length[good].max(initial=0))):
        live = good & (place < length)
        digit = data[np.where(live, start + place, 0)] - np.uint8(ord("0"))
        good &= ~live | (digit <= 9)
        value = np.where(live, value * 10 + digit, value)
    return np.where(good, value, 0), good


def equals(data: NDArray[np.uint8], start: I64, end: I64, text: bytes) -> Mask:
    """Mark the slices of a block that equal a text."""
    same: Mask = end - start == len(text)
    for place, byte in enumerate(text):
        same &= data[np.where(same, start + place, 0)] == byte
    return same
