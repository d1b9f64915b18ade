"""Cache and block I/O traces: those of Twitter's caches, the CSV of libCacheSim, and CloudPhysics."""

import re
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.delimited import header_names
from streamgroup.ingest.parsing.lines import Block, LineReader
from streamgroup.ingest.parsing.numbers import to_float
from streamgroup.ingest.readers.options import CacheTrace
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Reject, find_columns

__all__ = ["Reader"]

I64 = NDArray[np.int64]

_NUMBER = re.compile(rb"\s*-?[\d.]+\s*")

_TWITTER = ("timestamp", "key", "key_size", "value_size", "client", "operation", "ttl", "size")
_OPERATIONS = frozenset(b"get gets set add replace cas append prepend delete incr decr".split())
# The fields of a Twitter trace after the key, which may hold commas itself.
_BEHIND_KEY = 5


class _Table(NamedTuple):
    """Lines cut into fields, of the same number each but for a key that holds the delimiter."""

    buffer: pa.Buffer
    cut: fields.Fields
    twitter: bool

    def column(self, number: int, rows: I64) -> Any:
        """Return a column of some of the lines; the size of a request to Twitter's caches is that of key and value."""
        if self.twitter and number == len(_TWITTER) - 1:
            sizes = [to_float(self.column(_TWITTER.index(name), rows)) for name in ("key_size", "value_size")]
            return pa.array(sizes[0] + sizes[1])
        first, count = self.cut.first[rows], self.cut.count[rows]
        begin = end = first + number
        if self.twitter and number > 1:
            begin = end = first + count - 1 - _BEHIND_KEY + number - 1
        elif self.twitter and number == 1:
            end = first + count - 1 - _BEHIND_KEY
        return fields.column(self.buffer, self.cut.start[begin], self.cut.end[end])


class Reader(LineReader):
    """Cache traces in three layouts; the first line decides which."""

    Options: ClassVar = CacheTrace
    joins: ClassVar[tuple[str, ...]] = ("time", "key")
    about = "cache and block traces: Twitter (no header), libCacheSim CSV, CloudPhysics"
    defaults: ClassVar = Defaults(
        time=("timestamp", "time", "clock_time"), key=("key", "object", "obj_id", "obj", "lbn", "id")
    )

    def look(self, head: Block, path: str) -> Layout:
        """Recognise the layout: a header, with or without `#`, or the seven fields of a Twitter trace."""
        lines = fields.find_lines(head.data)
        filled = np.flatnonzero(lines.end > lines.start)
        if not len(filled):
            raise DataError(f"{path}: no rows in it", "give a file that has some")
        row = int(filled[0])
        line = lines.text(head.data, row)
        delimiter = (self.options.delimiter or ",").encode()
        pieces = line.split(delimiter)
        twitter = self.options.header is not True and _is_twitter(pieces)
        blank_after = not twitter and len(pieces) > 1 and all(piece.startswith(b" ") for piece in pieces[1:])
        names: tuple[str, ...] = _TWITTER
        if twitter:
            inferred = "a Twitter cache trace"
        elif self.options.header is False or _NUMBER.fullmatch(pieces[0]):
            raise UsageError(
                f"{path}: no header, and not the fields of a Twitter cache trace",
                "read it with the csv reader, --no-header and columns by number",
            )
        else:
            names = header_names(pieces)
            inferred = "a CloudPhysics trace" if "lbn" in names else "a trace with a header, as of libCacheSim"
        # The last name of a Twitter trace stands for a sum, which is no text.
        texts = names[:-1] if twitter else names
        layout = Layout(
            names=names,
            **find_columns(self.options, self.defaults, names, path, time=texts, key=texts),
            width=0 if twitter else len(names),
            header=0 if twitter else int(lines.number[row]),
            delimiter=delimiter,
            blank_after=blank_after,
            inferred=(inferred, *(("a blank follows each delimiter",) if blank_after else ())),
            extra=("twitter",) if twitter else (),
        )
        if self._wanted() is not None and _operation(names) < 0:
            raise UsageError(f"{path}: --operation: the trace has no operations", "leave it out")
        return layout

    def _wanted(self) -> Any:
        text = getattr(self.own, "operation", None)
        return None if text is None else pa.array([name.strip().encode() for name in text.split(",")], pa.binary())

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Cut the lines of a block into fields; those with too few or too many are rejected."""
        every = fields.find_lines(block.data)
        lines = every.take(slice(rows))
        blank = lines.start == lines.end
        header = (lines.number == layout.header) & block.at_start
        cut = fields.split_fields(block.data, lines, layout.delimiter, quoting=False, blank_after=layout.blank_after)
        fits = (cut.count == layout.width) if layout.width else (cut.count >= len(_TWITTER) - 1)
        rejects = []
        for row in np.flatnonzero(~blank & ~header & ~fits).tolist():
            text = lines.text(block.data, row)
            if text.strip(b" \t"):
                rejects.append(Reject(int(lines.number[row]), "wrong number of fields", text))
            else:
                blank[row] = True
        keep = np.flatnonzero(~blank & ~header & fits)
        filtered = {"blank": int(blank.sum()), "header": int((header & ~blank).sum())}
        table = _Table(block.buffer, cut, bool(layout.extra))
        wanted = self._wanted()
        if wanted is not None:
            asked = pc.is_in(table.column(_operation(layout.names), keep), value_set=wanted)
            mask = asked.to_numpy(zero_copy_only=False)
            filtered["operation not in --operation"] = int((~mask).sum())
            keep = keep[mask]

        def column(number: int) -> Any:
            return table.column(number, keep)

        return Parsed(
            rows=len(lines.start),
            lines=len(every.start),
            consumed=len(block.data),
            line=lines.number[keep],
            time=layout.time_of(column, len(keep)),
            key=layout.key_of(column),
            **layout.optional_of(column),
            text=lambda entry: lines.text(block.data, int(keep[entry])),
            rejects=rejects,
            filtered={name: count for name, count in filtered.items() if count},
        )


def _operation(names: tuple[str, ...]) -> int:
    return next((names.index(name) for name in ("operation", "op") if name in names), -1)


def _is_twitter(pieces: list[bytes]) -> bool:
    numbers = [pieces[0], *pieces[-5:-2], pieces[-1]]
    return len(pieces) >= len(_TWITTER) - 1 and pieces[-2] in _OPERATIONS and all(map(bytes.isdigit, numbers))
