"""Azure Functions' invocations of 2019: a row for each function and day, with a count for each minute."""

import re
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.event_counts import MAX_COUNT, even_offsets
from streamgroup.ingest.parsing.lines import Block, LineReader
from streamgroup.ingest.parsing.numbers import OK, to_fixed
from streamgroup.ingest.readers.protocol import Defaults, Each, Layout, Parsed, ReaderOptions, Reject, find_columns

__all__ = ["Reader"]

I64 = NDArray[np.int64]

_MINUTES = 1440
_NAMES = ("HashOwner", "HashApp", "HashFunction", "Trigger")
_HEADER = ",".join((*_NAMES, *map(str, range(1, _MINUTES + 1)))).encode()
_MINUTE = 60_000_000
_DAY = _MINUTES * _MINUTE
_NUMBERED = re.compile(r"\.d(\d{2})(?!\d)")


class Options(ReaderOptions):
    """Options of the azure-functions reader."""

    day: int | None = Field(default=None, ge=1, le=366, description="number of the day, if no file name tells it")
    spread: Literal["minute", "none"] = Field(
        default="minute", description="when invocations come: evenly over the minute, or at its start"
    )


class Reader(LineReader):
    """Invocations by minute: invocation j = 0, 1, ... of c in a minute comes at floor((j + 1/2) / c x 60 s) of it."""

    Options: ClassVar[type[ReaderOptions]] = Options
    joins: ClassVar[tuple[str, ...]] = ("key",)
    unused: ClassVar[tuple[str, ...]] = (
        "time_format", "timezone", "delimiter", "header", "multiline", "cost", "cost_unit", "value", "weight",
    )  # fmt: skip
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
        """Cut rows into fields and expand their counts; a row without an invocation is filtered."""
        every = fields.find_lines(block.data)
        lines = every.take(slice(rows))
        blank = lines.start == lines.end
        header = (lines.number == layout.header) & block.at_start
        cut = fields.split_fields(block.data, lines, b",", quoting=False, blank_after=False)
        fits = ~blank & ~header & (cut.count == layout.width)
        keep = np.flatnonzero(fits)
        places = (cut.first[keep][:, None] + np.arange(len(_NAMES), layout.width)).ravel()
        texts = fields.column(block.buffer, cut.start[places], cut.end[places])
        values, status = to_fixed(texts, 0)
        counts = values.reshape(len(keep), _MINUTES)
        wrong = ((status != OK) | (values < 0) | (values > MAX_COUNT)).reshape(len(keep), _MINUTES).any(1)
        rejects = [
            Reject(int(lines.number[row]), reason, lines.text(block.data, row))
            for found, reason in (
                (np.flatnonzero(~fits & ~blank & ~header), "wrong number of fields"),
                (keep[wrong], "count is not a whole number"),
            )
            for row in found.tolist()
        ]
        idle = ~wrong & (counts.sum(1) == 0)
        keep, counts = keep[~wrong & ~idle], counts[~wrong & ~idle]

        def column(number: int) -> Any:
            return fields.column(block.buffer, cut.start[cut.first[keep] + number], cut.end[cut.first[keep] + number])

        start = (int(layout.extra[0]) - 1) * _DAY
        filtered = {"blank": int(blank.sum()), "header": int(header.sum()), "count is 0": int(idle.sum())}
        return Parsed(
            rows=len(lines.start),
            lines=len(every.start),
            consumed=len(block.data),
            line=lines.number[keep],
            time=pa.array(np.full(len(keep), start), pa.timestamp("us", "UTC")),
            key=layout.key_of(column),
            cost=None,
            value=None,
            text=lambda entry: lines.text(block.data, int(keep[entry])),
            rejects=sorted(rejects, key=lambda reject: reject.line),
            filtered={name: count for name, count in filtered.items() if count},
            repeat=counts.sum(1),
            each=self._each(counts, start),
            ascending=True,
            span=(start, start + _DAY),
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
