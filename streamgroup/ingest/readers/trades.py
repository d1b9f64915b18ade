"""Trades of stocks and coins: CSV with a header, `time,price,amount` lines, or the zip files of Lean."""

import datetime as dt
import re
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.delimited import DelimitedReader, header_names
from streamgroup.ingest.parsing.lines import Block
from streamgroup.ingest.parsing.numbers import OK, to_fixed, to_float
from streamgroup.ingest.readers.options import Trades
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, find_columns

__all__ = ["Reader"]

_LEAN = ("time", "price", "size", "exchange", "condition", "suspicious")
_LEAN_ZONE = "America/New_York"
_LEAN_PRICE = 10_000
_DAY = 86_400_000_000
_PLAIN = ("time", "price", "amount")

_NUMBER = re.compile(rb"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_WHOLE = re.compile(rb"\d+")
_DATE = re.compile(r"(?<!\d)(?:19|20)\d{6}(?!\d)")
_ENDINGS = re.compile(r"(\.(csv|tsv|txt|zip|gz|bz2|zst|zstd))+$", re.IGNORECASE)
# What a file name holds besides its symbol.
_DATES = re.compile(r"(?<!\d)(?:19|20)\d\d([-_.]?)(?:0[1-9]|1[0-2])(?:\1(?:0[1-9]|[12]\d|3[01]))?(?!\d)")
_WORDS = re.compile(r"(?<![a-z])(?:(?:agg)?trades?|ticks?)(?![a-z])", re.IGNORECASE)


class Reader(DelimitedReader):
    """Trades: the symbol is the key, the price the value, the size the weight. Lines that are alike are trades, too."""

    Options: ClassVar = Trades
    joins: ClassVar[tuple[str, ...]] = ()
    about = "trades: CSV with a header, `time,price,amount`, or zips of Lean; price as value, size as weight"
    defaults: ClassVar = Defaults(
        time=("timestamp", "time", "unixtime", "unix_time", "datetime", "date"),
        key=("symbol", "ticker", "sym"),
        value=("price",),
        weight=("size", "volume", "qty", "quantity", "amount"),
    )
    delimiter = b","
    quoting = True

    def look(self, head: Block, path: str) -> Layout:
        """Lay out a file by its first line: a header, or numbers, and then by how many there are and by the path."""
        number, line = self._first_line(head, fields.find_lines(head.data))
        if not number:
            raise DataError(f"{path}: no rows in it", "give a file that has some")
        opts, delimiter = self.options, self._delimiter(line)
        pieces, fault = fields.parse_quoted(line, delimiter, blank_after=False)
        if fault == fields.NEVER_CLOSED:
            raise DataError(f"{path}: line {number}, the first: {fault}", "is this a CSV file?")
        blank_after = len(pieces) > 1 and all(piece.startswith(b" ") for piece in pieces[1:])
        header = opts.header if opts.header is not None else not any(map(_NUMBER.fullmatch, pieces))
        day = None if header else _lean_day(pieces, path)
        if header:
            names = header_names(pieces)
        elif day is not None:
            names = _LEAN
        else:
            names = _PLAIN if len(pieces) == len(_PLAIN) else tuple(map(str, range(1, len(pieces) + 1)))
        width = 0 if self._ragged else len(names)
        names = self._with_numbers_beyond(names)
        given = getattr(self.own, "symbol", None)
        symbol, keys, inferred = "", names, []
        at = _default(self.defaults.key, names)
        if at >= 0 and given:
            raise UsageError(f"{path}: --symbol: the file has a column {names[at]!r}", "leave it out")
        if at < 0:
            symbol, keys = given or _symbol_of(path), (*names, "symbol")
            at = len(names)
            inferred = ["the symbol is that of the path"] if not given and opts.key in (None, "symbol") else []
        columns = find_columns(opts, self._defaults(names), names, path, key=keys)
        if opts.key is None:
            columns["key"] = at
        inferred += [
            f"{what} is {names[columns[what]]}"
            for what, given_column in (("value", opts.value), ("weight", opts.weight))
            if columns[what] >= 0 and given_column is None
        ]
        if day is not None:
            if opts.time_format != "auto":
                raise UsageError(
                    f"{path}: --time-format: times of Lean are milliseconds since midnight", "leave it out"
                )
            inferred.append(f"the layout of Lean, its day in the path, clocks of {opts.timezone or _LEAN_ZONE}")
        return Layout(
            names=keys,
            **columns,
            width=width,
            header=number if header else 0,
            delimiter=delimiter,
            blank_after=blank_after,
            zone=_LEAN_ZONE if day is not None else None,
            inferred=tuple(inferred),
            extra=(symbol, "" if day is None else day.isoformat()),
        )

    def _defaults(self, names: tuple[str, ...]) -> Defaults:
        """Return the default columns as the file writes them, in any case; there is none for the key."""
        found = {what: (_default(wanted, names), wanted) for what, wanted in self.defaults._asdict().items()}
        written = {what: wanted if at < 0 else (names[at],) for what, (at, wanted) in found.items()}
        return Defaults(**written | {"key": ()})

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Take a block apart; symbols of the path and the times and prices of Lean are made here."""
        symbol, day = layout.extra
        of_path = symbol and layout.key == len(layout.names) - 1
        parsed = super().parse(block, layout._replace(key=layout.time) if of_path else layout, rows)
        if of_path:
            key = pa.scalar(symbol.encode("utf-8", "surrogateescape"), pa.binary())
            parsed = parsed._replace(key=pa.repeat(key, len(parsed.line)))
        if not day:
            return parsed
        if layout.value >= 0 and layout.names[layout.value] == "price":
            parsed = parsed._replace(value=pa.array(to_float(parsed.value) / _LEAN_PRICE))
        return parsed._replace(time=_of_day(parsed.time, dt.date.fromisoformat(day)))


def _default(defaults: tuple[str, ...], names: tuple[str, ...]) -> int:
    """Find the first of the names wanted that there is, once, whatever its case; -1 if none is."""
    folded = [name.lower() for name in names]
    return next((folded.index(name) for name in defaults if folded.count(name) == 1), -1)


def _lean_day(pieces: list[bytes], path: str) -> dt.date | None:
    """Return the day of a file of Lean, by six fields and eight digits in the name; None for other files."""
    numbers = [pieces[0], *pieces[1:3], pieces[-1]]
    found = _DATE.search(locate(path).name)
    if found is None or len(pieces) != len(_LEAN) or not all(map(_WHOLE.fullmatch, numbers)):
        return None
    try:
        return dt.datetime.strptime(found[0], "%Y%m%d").date()
    except ValueError:
        return None


def _of_day(texts: Any, day: dt.date) -> Any:
    """Turn milliseconds since midnight into local times; null where there is none on that day."""
    micros, status = to_fixed(texts, 3)
    wrong = (status != OK) | (micros < 0) | (micros >= _DAY)
    midnight = (day - dt.date(1970, 1, 1)).days * _DAY
    return pa.array(np.where(wrong, 0, micros) + midnight, mask=wrong).cast(pa.timestamp("us"))


def _symbol_of(path: str) -> str:
    """Take the symbol from a file's name, without dates and the word trades, or if nothing is left, from its folder."""
    stem = _ENDINGS.sub("", locate(path).name)
    symbol = _WORDS.sub("", _DATES.sub("", stem)).strip("-_. ") or locate(path).parent.name
    if not symbol:
        raise UsageError(f"{path}: neither the file nor its path has a symbol", "name it with --symbol")
    return symbol
