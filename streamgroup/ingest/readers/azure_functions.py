"""Azure Functions' invocations of 2019: a row for each function and day, with a count for each minute."""

import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.event_counts.count_rows import MAX_COUNT, Rows, even_offsets
from streamgroup.ingest.parsing.event_counts.event_count_reader import CountedReader
from streamgroup.ingest.parsing.lines import Block, LineReader
from streamgroup.ingest.parsing.numbers import OK, to_fixed
from streamgroup.ingest.readers.options import AzureFunctions
from streamgroup.ingest.readers.protocol import Defaults, Each, Layout, Parsed, find_columns

__all__ = ["Reader"]

I64 = NDArray[np.int64]

_MINUTES = 1440
_NAMES = ("HashOwner", "HashApp", "HashFunction", "Trigger")
_HEADER = ",".join((*_NAMES, *map(str, range(1, _MINUTES + 1)))).encode()
_MINUTE = 60_000_000
_DAY = _MINUTES * _MINUTE
_NUMBERED = re.compile(r"\.d(\d{2})(?!\d)")


class Reader(LineReader):
    """Invocations by minute: invocation j = 0, 1, ... of c in a minute comes at floor((j + 1/2) / c x 60 s) of it."""

    Options: ClassVar = AzureFunctions
    joins: ClassVar[tuple[str, ...]] = ("key",)
    instead = "times are minutes since the first day, fields are those of the format"
    about = "Azure Functions 2019: invocations by function and minute"
    defaults: ClassVar = Defaults(time=("minute",), key=("HashFunction",))

    def look(self, head: Block, path: str) -> Layout:
        """Check the header, and find the day in the name of the file (`...anon.d01.csv`)."""
        lines = fields.find_lines(head.data)
        first = lines.text(head.data, 0) if len(lines.start) else b""
        if first != _HEADER:
            raise DataError(
                f"{path}: line 1 is not HashOwner,HashApp,HashFunction,Trigger,1,...,1440", "is it of 2019?"
            )
        day = getattr(self.own, "day", None)
        numbered = _NUMBERED.search(Path(path).name)
        if day is None and numbered is None:
            raise UsageError(f"{path}: no day such as .d01 in the name", "give the number of the day with --day")
        names = (*_NAMES, "minute")
        found = find_columns(self.options, self.defaults, names, path, time=("minute",), key=_NAMES)
        return Layout(
            names=names,
            **found | {"time": len(_NAMES)},
            width=len(_NAMES) + _MINUTES,
            header=1,
            extra=(str(day if day is not None else int(numbered[1] if numbered else 0)),),
        )

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Expand the counts of rows; a row without an invocation is filtered."""
        found = Rows(block, b",", rows)
        found.blank()
        if block.at_start:
            found.filter(found.lines.number[found.at] == layout.header, "header")
        found.reject(found.width != layout.width, "wrong number of fields")
        places = (found.cut.first[found.at][:, None] + np.arange(len(_NAMES), layout.width)).ravel()
        texts = fields.column(block.buffer, found.cut.start[places], found.cut.end[places])
        values, status = to_fixed(texts, 0)
        wrong = ((status != OK) | (values < 0) | (values > MAX_COUNT)).reshape(-1, _MINUTES).any(1)
        found.reject(wrong, "count is not a whole number")
        counts = values.reshape(-1, _MINUTES)[~wrong]
        idle = counts.sum(1) == 0
        found.filter(idle, "count is 0")
        counts = counts[~idle]
        start = (int(layout.extra[0]) - 1) * _DAY
        parsed = CountedReader.parsed(found, layout, layout.key_of(found.column), np.full(len(counts), start))
        return parsed._replace(
            repeat=counts.sum(1), each=self._each(counts, start), ascending=True, span=(start, start + _DAY)
        )

    def _each(self, counts: I64, start: int) -> Any:
        """Return the function from row `entry` and invocation `place` to its time; cumulated counts give the minute."""
        ends = np.cumsum(counts)
        before = np.concatenate([[0], ends[_MINUTES - 1 :: _MINUTES]])[:-1] if len(counts) else np.zeros(0, np.int64)
        even = getattr(self.own, "spread", "minute") == "minute"

        def each(entry: I64, place: I64) -> Each:
            at = before[entry] + place
            cell = np.searchsorted(ends, at, "right")
            moment = start + cell % _MINUTES * _MINUTE
            if even:
                count = counts.ravel()[cell]
                moment = moment + even_offsets(at - ends[cell] + count, count, _MINUTE)
            return Each(moment)

        return each
