"""Reviews from Amazon as SNAP publishes them (`movies.txt`, `finefoods.txt`): blocks of `review/name: value` lines."""

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.lines import Block, LineReader
from streamgroup.ingest.parsing.multi_line_records import TOO_LONG, Records, find_records
from streamgroup.ingest.parsing.split_words import words
from streamgroup.ingest.readers.options import AmazonReviews
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Reject, find_columns

__all__ = ["Reader"]

I64 = NDArray[np.int64]

_FIELDS = (
    "product/productId",
    "review/userId",
    "review/profileName",
    "review/helpfulness",
    "review/score",
    "review/time",
    "review/summary",
    "review/text",
)
# Texts hold tags of HTML (`<br />` in most) and entities, which are no words.
_APOSTROPHE = "&(?:apos|#0?39);"
_MARKUP = "</?[A-Za-z][^<>]{0,100}>|&(?:[A-Za-z]{2,8}|#[0-9]{1,6});"
_SHORT_NAMES = {name: name.partition("/")[2] for name in _FIELDS}
_NAMES = tuple(_SHORT_NAMES.values())


class Reader(LineReader):
    """Reviews: a block of lines is a record; a line without a field's name goes on with the field before it."""

    Options: ClassVar = AmazonReviews
    about = "Amazon reviews of SNAP: blocks of `product/productId: ...`, `review/userId: ...` lines"
    defaults: ClassVar = Defaults(time=("time",), key=("productId",))

    def __init__(self, options: IngestOptions) -> None:
        """Check the options; UsageError when both the key and the field of the words are named."""
        super().__init__(options)
        own: Any = self.own
        self._words: str | None = own.words
        if self._words and options.key:
            raise UsageError("--key and --words: only one of them can give the keys", "leave one of them out")

    @property
    def splittable(self) -> bool:
        """A line of a text can look like anything."""
        return False

    def look(self, head: Block, path: str) -> Layout:
        """Find the columns by their names, with or without what stands before the slash; every file has the same."""
        lines = fields.find_lines(head.data)
        if not any(fields.starts_with(head.data, lines, f"{name}:".encode()).any() for name in _FIELDS):
            raise DataError(
                f"{path}: no line of it begins with one of {', '.join(_FIELDS)}",
                "this reader takes the .txt files of SNAP; reviews in JSON are for the reader jsonl, in CSV for csv",
            )
        asked = {what: getattr(self.options, what) for what in Defaults._fields}
        asked["key"] = self._words or asked["key"]
        short = {what: _SHORT_NAMES.get(text, text) for what, text in asked.items()}
        columns = find_columns(self.options.model_copy(update=short), self.defaults, _NAMES, path)
        return Layout(names=_NAMES, **columns)

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Find the fields of the records of a block."""
        found = find_records(block, rows)
        start, end, faults = _find_fields(block, found)
        keep = np.setdiff1d(np.arange(len(found.first)), np.fromiter(faults, np.int64, len(faults)))
        rejects = [
            Reject(int(found.number[record]), fault, found.text(block.data, record)) for record, fault in faults.items()
        ]

        def column(number: int) -> pa.Array:
            return _column(block, start[keep, number], end[keep, number])

        key = column(layout.key)
        return Parsed(
            rows=len(found.first),
            lines=found.physical,
            consumed=found.consumed,
            line=found.number[keep],
            time=column(layout.time),
            key=_words(key) if self._words else key,
            **layout.optional_of(column),
            text=lambda entry: found.text(block.data, int(keep[entry])),
            rejects=sorted(rejects, key=lambda reject: reject.line),
            filtered={},
        )


def _words(texts: pa.Array) -> pa.Array:
    texts = pc.replace_substring_regex(pc.fill_null(texts, b""), _APOSTROPHE, "'")
    return words(pc.replace_substring_regex(texts, _MARKUP, " "))


def _column(block: Block, start: I64, end: I64) -> pa.Array:
    """Make a column of slices of a block, null where there is none (start -1)."""
    there = start >= 0
    values = fields.column(block.buffer, start[there], end[there])
    if there.all():
        return values
    return values.take(pa.array(np.where(there, np.cumsum(there) - 1, 0), mask=~there))


def _find_fields(block: Block, found: Records) -> tuple[I64, I64, dict[int, str]]:
    """Find where each field of each record starts and ends, [records, fields], -1 where it is missing.

    A field goes on to the line before the next one. Returns also what is wrong with records that cannot be used.
    """
    data, lines = block.data, found.lines
    kind = np.full(len(lines.start), -1)
    for number, name in enumerate(_FIELDS):
        kind[fields.starts_with(data, lines, f"{name}:".encode())] = number
    owner = found.owners()
    begins = np.flatnonzero(kind >= 0)
    lengths = np.array([len(name) + 1 for name in _FIELDS])
    value = lines.start[begins] + lengths[kind[begins]]
    # One blank after the colon is not part of the value.
    value += (value < lines.end[begins]) & (data[np.minimum(value, len(data) - 1)] == ord(" "))
    following = np.append(begins[1:], len(lines.start))
    final = np.minimum(following, found.last[owner[begins]]) - 1
    shape = (len(found.first), len(_FIELDS))
    start, end = np.full(shape, -1), np.full(shape, -1)
    start[owner[begins], kind[begins]] = value
    end[owner[begins], kind[begins]] = lines.end[final]
    times = np.bincount(owner[begins] * len(_FIELDS) + kind[begins], minlength=shape[0] * shape[1]).reshape(shape)
    faults = dict.fromkeys(np.flatnonzero((times > 1).any(axis=1)).tolist(), "a field comes twice")
    faults |= dict.fromkeys(np.flatnonzero(kind[found.first] < 0).tolist(), "record does not begin with a field")
    faults |= dict.fromkeys(np.flatnonzero(found.too_long).tolist(), TOO_LONG)
    return start, end, faults
